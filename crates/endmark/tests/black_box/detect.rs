//! `detect`: verdicts, formats, batches.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::run::Place;

fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_whole_text_is_a_yes_and_a_cut_one_a_no() {
    let place = Place::new().with_file("whole.json", "{\"a\": 1}").with_file("cut.json", "{\"a\": \"x");
    let whole = place.run(&["detect", "whole.json"]);
    assert_eq!((whole.code, whole.output.starts_with("whole\n")), (0, true));
    let cut = place.run(&["detect", "cut.json"]);
    assert_eq!((cut.code, cut.errors.as_str()), (1, ""));
    assert!(cut.output.starts_with("truncated: settled up to byte 8\n"), "{}", cut.output);
    let malformed = place.run_with_input(&["detect", "--format", "json", "-"], "[1}");
    assert_eq!(malformed.code, 1);
    assert!(malformed.output.starts_with("malformed at byte 2: "), "{}", malformed.output);
}

#[test]
fn the_envelope_has_the_verdict_also_where_the_answer_is_no() {
    let place = Place::new();
    let envelope = place.run_with_input(&["detect", "--json", "--format", "json"], "{\"a\": [\"x").envelope();
    assert_eq!(envelope["error"]["code"], "truncated");
    assert_eq!(
        envelope["data"],
        json!({
            "verdict": "truncated", "truncation_index": 9, "balanced_index": 0, "last_valid_token": "\"x",
            "open": ["{", "[", "\""], "in_token": "string", "index": null, "reason": null, "hint": null,
            "detected": null
        })
    );
    assert_eq!(place.run_with_input(&["detect", "--json"], "[]").envelope()["data"]["detected"], "json");
}

#[test]
fn a_marker_is_a_format_of_its_own() {
    let place = Place::new();
    assert_eq!(place.run_with_input(&["detect", "--marker", "<<END>>"], "text <<END>>\n").code, 0);
    assert_eq!(place.run_with_input(&["detect", "--marker", "<<END>>"], "text <<EN").code, 1);
    let missing = place.run_with_input(&["detect", "--format", "marker"], "text");
    assert_eq!(missing.code, 2);
    assert!(missing.errors.contains("needs a marker"), "{}", missing.errors);
}

#[test]
fn a_batch_answers_line_by_line_and_goes_on_after_an_invalid_one() {
    let input = concat!(
        "{\"id\":\"a\",\"format\":\"json\",\"text\":\"[1, 2]\"}\n",
        "this is no JSON\n",
        "{\"id\":7,\"format\":\"json\",\"text\":\"[1, \"}\n",
        "{\"id\":\"utf8\",\"format\":\"text\",\"base64\":\"w6TD\"}\n",
        "{\"id\":\"bad\",\"format\":\"yaml\",\"text\":\"\"}\n",
        "{\"id\":\"last\",\"format\":\"json\",\"text\":\"[}\"}",
    );
    let run = Place::new().run_with_input(&["detect", "--batch"], input);
    assert_eq!(run.code, 2);
    let answers = lines(&run.output);
    assert_eq!(answers[0]["verdict"], "whole");
    assert_eq!(answers[1]["id"], Value::Null);
    assert!(answers[1]["error"]["message"].is_string());
    assert_eq!(
        (&answers[2]["id"], &answers[2]["verdict"], &answers[2]["truncation_index"]),
        (&json!(7), &json!("truncated"), &json!(4))
    );
    assert_eq!((&answers[3]["verdict"], &answers[3]["in_token"]), (&json!("truncated"), &json!("utf8")));
    assert!(answers[4]["error"]["message"].as_str().unwrap().contains("yaml"));
    assert_eq!(answers[5]["verdict"], "malformed");
    assert_eq!(answers.len(), 6);
}

#[test]
fn a_batch_refuses_in_its_own_words_what_is_no_request() {
    let place = Place::new();
    let refused = |command, line: &str| {
        let run = place.run_with_input(&[command, "--batch"], line);
        let answer = lines(&run.output).remove(0);
        let message = answer["error"]["message"].as_str().unwrap().to_owned();
        for word in ["expected", "struct", "invalid type", "EOF", "column"] {
            assert!(!message.contains(word), "{message}");
        }
        assert_eq!(run.code, 2);
        (answer["id"].clone(), message)
    };
    for line in ["[1,\"json\",null,\"{\",null]\n", "[\"a\"]\n", "nothing\n", "12\n", "\n"] {
        for command in ["detect", "stitch"] {
            assert_eq!(
                refused(command, line),
                (Value::Null, "the line is no JSON object".to_owned()),
                "{line}"
            );
        }
    }
    let both = [
        ("{\"id\":3 \"text\":\"\"}", Value::Null, "no JSON: byte 8"),
        ("{\"id\":3,\"text\":\"", Value::Null, "it is cut off"),
        ("{\"id\":3,\"format\":5,\"text\":\"\",\"chunks\":[]}", json!(3), "`format` must be a string"),
    ];
    for (line, id, words) in both {
        for command in ["detect", "stitch"] {
            let (answered, message) = refused(command, line);
            assert_eq!((&answered, message.contains(words)), (&id, true), "{message}");
        }
    }
    assert_eq!(
        refused("detect", "{\"id\":4,\"text\":\"\",\"text\":\"\"}"),
        (json!(4), "a field is there twice".to_owned())
    );
    let surrogate = refused("detect", "{\"id\":5,\"text\":\"\\ud800\"}");
    assert_eq!((surrogate.0, surrogate.1.contains("beyond byte")), (json!(5), true), "{}", surrogate.1);
    assert_eq!(
        refused("stitch", "{\"id\":6,\"chunks\":[1]}"),
        (json!(6), "`chunks` must be a list of strings".to_owned())
    );
    assert_eq!(refused("stitch", "{\"id\":7}"), (json!(7), "`chunks` is missing".to_owned()));
    let unknown = "{\"id\":8,\"text\":\"[]\",\"format\":\"json\",\"more\":[1e999]}";
    let run = place.run_with_input(&["detect", "--batch"], unknown);
    assert_eq!((run.code, &lines(&run.output)[0]["verdict"]), (0, &json!("whole")), "{}", run.output);
}

#[test]
fn a_batch_ends_with_1_if_only_an_answer_is_no_and_with_0_if_none_is() {
    let place = Place::new();
    let whole = "{\"id\":1,\"format\":\"json\",\"text\":\"1 \"}\n";
    let cut = "{\"id\":2,\"format\":\"json\",\"text\":\"[\"}\n";
    assert_eq!(place.run_with_input(&["detect", "--batch"], whole).code, 0);
    assert_eq!(place.run_with_input(&["detect", "--batch"], format!("{whole}{cut}{whole}")).code, 1);
    assert_eq!(place.run_with_input(&["detect", "--batch"], "").code, 0);
    let not_utf8 = [b"{\"id\":3,\"text\":\"\xff\"}\n".as_slice(), whole.as_bytes()].concat();
    let run = place.run_with_input(&["detect", "--batch"], not_utf8);
    assert_eq!((run.code, lines(&run.output).len()), (2, 2));
}

#[test]
fn a_batch_answers_before_its_input_has_ended() {
    let mut child = Place::new().command(&["detect", "--batch"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for id in 0..3 {
        writeln!(input, "{{\"id\":{id},\"format\":\"json\",\"text\":\"[]\"}}").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["id"], id);
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
