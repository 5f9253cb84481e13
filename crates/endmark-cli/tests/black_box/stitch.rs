//! `stitch`: joined texts, refused ones, and batches.

use serde_json::{Value, json};

use crate::run::TestFolder;

#[test]
fn only_the_whole_text_goes_to_standard_output() {
    let place = TestFolder::new()
        .with_file("first", "{\"city\": \"Mün")
        .with_file("rest", "Sure, here is the rest:\n```json\nchen\"}\n```");
    let run = place.run(&["stitch", "first", "rest"]);
    assert_eq!((run.code, run.output.as_str()), (0, "{\"city\": \"München\"}"));
    assert_eq!(
        run.errors,
        "warning: 36 bytes are omitted at the seam at byte 14 (preamble): Sure, here is the rest:\\n```json\\n\\n```\n"
    );
    let envelope = place.run(&["stitch", "--json", "first", "rest"]).envelope();
    assert_eq!(envelope["data"]["outcome"], "whole");
    assert_eq!(envelope["data"]["seams"][0]["at"], 14);
}

#[test]
fn the_prompted_position_decides_an_ambiguous_seam() {
    let place = TestFolder::new().with_file("first", "[1, 2").with_file("rest", "3]");
    let run = |from| place.run(&["stitch", "--format", "json", "--from", from, "first", "rest"]);
    assert_eq!((run("cut").code, run("cut").output), (0, "[1, 23]".to_owned()));
    assert_eq!((run("token").code, run("token").output), (0, "[1, 3]".to_owned()));
    let unknown = run("unknown");
    assert_eq!((unknown.code, unknown.output.as_str()), (1, ""));
    assert!(unknown.errors.contains("ambiguous") && unknown.errors.contains("--from"), "{}", unknown.errors);
    // The candidates are shown as text and as JSON.
    assert!(
        unknown.errors.contains("% [1, 23]\n") && unknown.errors.contains("% [1, 3]\n"),
        "{}",
        unknown.errors
    );
    let envelope = place.run(&["stitch", "--format", "json", "--json", "first", "rest"]).envelope();
    let candidates = envelope["data"]["candidates"].as_array().unwrap();
    let texts: Vec<&Value> = candidates.iter().map(|candidate| &candidate["text"]).collect();
    assert_eq!(texts, ["[1, 23]", "[1, 3]"]);
    assert!(candidates[0]["seam"]["confidence"].as_f64() > candidates[1]["seam"]["confidence"].as_f64());
    let decided = place.run(&["stitch", "--format", "json", "--from", "cut", "--json", "first", "rest"]);
    assert_eq!(decided.envelope()["data"].get("candidates"), None);
}

#[test]
fn an_incomplete_text_is_refused_with_position_and_reason() {
    let place = TestFolder::new().with_file("first", "{\"a\": [1, ").with_file("rest", "2, ");
    let run = place.run(&["stitch", "--format", "json", "--from", "cut", "first", "rest"]);
    assert_eq!((run.code, run.output.as_str()), (1, ""));
    assert!(run.errors.contains("verified up to byte 13, inside `[`"), "{}", run.errors);
    let envelope =
        place.run(&["stitch", "--format", "json", "--from", "cut", "--json", "first", "rest"]).envelope();
    assert_eq!(envelope["error"]["code"], "still_truncated");
    assert_eq!(envelope["data"]["text"], "{\"a\": [1, 2, ");
}

#[test]
fn a_character_split_between_parts_is_joined() {
    let whole = "{\"a\": \"ñ\"}".as_bytes();
    let place = TestFolder::new().with_file("first", &whole[..8]).with_file("rest", &whole[8..]);
    assert_eq!(
        place.run(&["stitch", "--from", "cut", "--format", "json", "first", "rest"]).output.as_bytes(),
        whole
    );
}

#[test]
fn too_few_pieces_are_a_usage_error() {
    let place = TestFolder::new().with_file("first", "[");
    assert_eq!(place.run(&["stitch"]).code, 2);
    assert_eq!(place.run(&["stitch", "first"]).code, 2);
    assert_eq!(place.run(&["stitch", "first", "missing"]).code, 2);
    assert_eq!(place.run(&["stitch", "--batch", "first", "first"]).code, 2);
}

#[test]
fn a_batch_continues_after_an_invalid_line() {
    let input = concat!(
        "{\"id\":1,\"format\":\"json\",\"chunks\":[\"{\\\"a\\\": [1, 2\",\", 3\",\", 4]}\"],\"from\":\"cut\"}\n",
        "{\"id\":2,\"format\":\"json\",\"chunks\":[\"[1, 2\",\"3]\"]}\n",
        "{\"id\":3,\"format\":\"json\",\"chunks\":\"no list\"}\n",
        "nothing\n",
        "{\"id\":5,\"format\":\"json\",\"chunks\":[\"[1\",\"]\"],\"from\":\"nowhere\"}\n",
        "{\"id\":6,\"format\":\"json\",\"chunks\":[\"[1\",\"I cannot help with that.\"],\"from\":\"cut\"}\n",
    );
    let run = TestFolder::new().run_with_input(&["stitch", "--batch"], input);
    assert_eq!(run.code, 2);
    let answers: Vec<Value> = run.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 6);
    assert_eq!(
        (&answers[0]["outcome"], &answers[0]["text"]),
        (&json!("whole"), &json!("{\"a\": [1, 2, 3, 4]}"))
    );
    assert_eq!(answers[0]["seams"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&answers[1]["outcome"], &answers[1]["error"]["code"]),
        (&json!("ambiguous"), &json!("ambiguous"))
    );
    assert_eq!((&answers[2]["id"], answers[2]["error"]["message"].is_string()), (&json!(3), true));
    assert_eq!(answers[3]["id"], Value::Null);
    assert!(answers[4]["error"]["message"].as_str().unwrap().contains("nowhere"));
    assert_eq!(answers[5]["outcome"], "error");
    let refused = "{\"id\":2,\"format\":\"json\",\"chunks\":[\"[1, 2\",\"3]\"]}\n";
    assert_eq!(TestFolder::new().run_with_input(&["stitch", "--batch"], refused).code, 1);
}

#[test]
fn more_than_a_hundred_parts_are_refused() {
    let line = |parts: usize| json!({"format": "json", "chunks": vec!["["; parts]}).to_string() + "\n";
    let run = TestFolder::new().run_with_input(&["stitch", "--batch"], line(100) + &line(101));
    let answers: Vec<Value> = run.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, &answers[1]["error"]["code"]), (2, &json!("invalid_line")));
    assert_ne!(answers[0]["error"]["code"], "invalid_line");
}

#[test]
fn a_whole_text_is_not_joined_with_another_part() {
    let place = TestFolder::new()
        .with_file("data", "IMPORTANT DATA")
        .with_file("fence", "\n```\n")
        .with_file("object", "{\"a\":1}")
        .with_file("list", "[1, 2]\n")
        .with_file("string", "\"done\"")
        .with_file("number", "12")
        .with_file("ended", "The harbour.\nEND\n")
        .with_file("prose", "The harbour was quiet.")
        .with_file("more", " The boats lay still.");
    for (arguments, first) in [
        (&["--format", "auto"][..], "object"),
        (&["--format", "json"], "object"),
        (&["--format", "json", "--from", "cut"], "list"),
        (&["--format", "json"], "string"),
        (&["--format", "marker", "--marker", "END"], "ended"),
    ] {
        let run = |more: &[&str]| place.run(&[&["stitch"], arguments, more].concat());
        let refused = run(&[first, "data"]);
        assert_eq!((refused.code, refused.output.as_str()), (1, ""), "{first}");
        assert!(refused.errors.contains("nothing to join"), "{}", refused.errors);
        let envelope = run(&["--json", first, "data"]).envelope();
        assert_eq!(envelope["error"]["code"], "nothing_to_join", "{first}");
        assert_eq!(envelope["data"]["outcome"], "error");
        let fenced = run(&[first, "fence"]);
        assert!(!fenced.errors.contains("nothing to join"), "{first}: {}", fenced.errors);
    }
    let run = place.run(&["stitch", "--format", "json", "number", "object"]);
    assert!(!run.errors.contains("nothing to join"), "a number may go on: {}", run.errors);
    let run = place.run(&["stitch", "--format", "text", "--from", "cut", "prose", "more"]);
    assert_eq!((run.code, run.output.as_str()), (0, "The harbour was quiet. The boats lay still."));
    // The previous part completed the text, so nothing can be joined to it.
    let place = place.with_file("first", "{\"a\":").with_file("rest", "1}");
    let run = place.run(&["stitch", "--json", "first", "rest", "data"]);
    assert_eq!(run.envelope()["error"]["code"], "nothing_to_join");
}

#[test]
fn the_texts_of_saved_replies_are_joined() {
    let chat = |text: &str, stop: &str| {
        json!({"object": "chat.completion", "model": "m", "choices": [
            {"index": 0, "finish_reason": stop, "message": {"role": "assistant", "content": text}}]})
    };
    let messages = json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "max_tokens",
        "content": [{"type": "text", "text": "{\"city\": \"San Fr"}], "usage": {"input_tokens": 1, "output_tokens": 4}});
    let place = TestFolder::new()
        .with_file("chat", chat("{\"city\": \"San Fr", "length").to_string())
        .with_file("messages", messages.to_string())
        .with_file("rest", "ancisco\"}")
        .with_file("saved_rest", chat("ancisco\"}", "stop").to_string())
        .with_file("refused", chat("", "content_filter").to_string());
    for parts in [["chat", "rest"], ["messages", "rest"], ["chat", "saved_rest"]] {
        for format in ["auto", "json"] {
            let run = place.run(&["stitch", "--from", "cut", "--format", format, parts[0], parts[1]]);
            assert_eq!(
                (run.code, run.output.as_str()),
                (0, "{\"city\": \"San Francisco\"}"),
                "{}",
                run.errors
            );
        }
    }
    let run = place.run(&["stitch", "--json", "refused", "rest"]);
    assert_eq!((run.code, &run.envelope()["error"]["code"]), (2, &json!("invalid_reply")));
}

#[test]
fn half_a_character_without_its_rest_is_reported() {
    let place =
        TestFolder::new().with_file("first", &"The ñ".as_bytes()[..5]).with_file("rest", "umber one.");
    let run = place.run(&["stitch", "--format", "text", "--from", "cut", "first", "rest"]);
    assert_eq!((run.code, run.output.as_str()), (0, "The umber one."), "{}", run.errors);
    assert!(run.errors.contains("1 bytes are omitted"), "{}", run.errors);
}
