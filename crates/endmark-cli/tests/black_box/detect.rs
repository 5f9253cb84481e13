//! `detect`: verdicts, formats, batches.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::run::TestFolder;

fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_whole_text_exits_with_0_and_a_cut_one_with_1() {
    let place = TestFolder::new().with_file("whole.json", "{\"a\": 1}").with_file("cut.json", "{\"a\": \"x");
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
fn a_negative_answer_has_the_verdict_in_its_envelope() {
    let place = TestFolder::new();
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

/// The saved reply is valid JSON, but its text was cut by the limit. The text decides.
#[test]
fn a_saved_reply_is_judged_by_its_text_and_finish_reason() {
    let text = "The harbour was quiet, and the gu";
    let replies = [
        (
            "openai_chat",
            json!({"object": "chat.completion", "model": "m", "choices": [
            {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": text}}]}),
        ),
        (
            "openai_responses",
            json!({"object": "response", "model": "m", "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "message", "role": "assistant",
            "status": "incomplete", "content": [{"type": "output_text", "text": text, "annotations": []}]}]}),
        ),
        (
            "anthropic_messages",
            json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "max_tokens",
            "content": [{"type": "text", "text": text}]}),
        ),
        (
            "gemini",
            json!({"modelVersion": "m", "candidates": [
            {"finishReason": "MAX_TOKENS", "content": {"role": "model", "parts": [{"text": text}]}}]}),
        ),
    ];
    let place = TestFolder::new();
    for (format, reply) in replies {
        let envelope = place.run_with_input(&["detect", "--json"], reply.to_string()).envelope();
        let data = &envelope["data"];
        assert_eq!(
            (&data["verdict"], &data["truncation_index"], &data["reply"]["cut"], &data["reply"]["format"]),
            (&json!("truncated"), &json!(text.len()), &json!("limit"), &json!(format)),
            "{format}: {data}"
        );
        // An explicit `--format` applies to the document itself.
        assert_eq!(place.run_with_input(&["detect", "--format", "json"], reply.to_string()).code, 0);
    }
}

#[test]
fn whole_and_falsely_finished_saved_replies_are_recognised() {
    let reply = |finish: &str, message: Value| {
        json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": finish, "message": message}]}).to_string()
    };
    let place = TestFolder::new();
    let whole = reply("stop", json!({"role": "assistant", "content": "All is well."}));
    let run = place.run_with_input(&["detect"], &whole);
    assert_eq!(
        (run.code, run.output.contains("a reply of openai_chat: choice 0, text")),
        (0, true),
        "{}",
        run.output
    );
    // The limit was reached after a complete document, so nothing is missing.
    let document = reply("length", json!({"role": "assistant", "content": "{\"a\": 1}"}));
    assert_eq!(place.run_with_input(&["detect"], &document).code, 0);
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "save", "arguments": "{\"path\": \"a"}});
    let cut = reply("tool_calls", json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    let data = place.run_with_input(&["detect", "--json"], &cut).envelope()["data"].clone();
    assert_eq!(
        (&data["verdict"], &data["reply"]["part"], &data["reply"]["cut"]),
        (&json!("truncated"), &json!("choice 0, arguments of save"), &json!("format"))
    );
    // The limit cuts only the last part, not the text before it.
    let both = json!({"role": "assistant", "content": "I write.", "tool_calls": [call]});
    let data = place.run_with_input(&["detect", "--json"], reply("length", both)).envelope()["data"].clone();
    assert_eq!(
        (&data["reply"]["part"], &data["reply"]["cut"]),
        (&json!("choice 0, arguments of save"), &json!("limit"))
    );
    // The reply itself cannot be closed or continued; only the text in it could be.
    for flags in [&["--complete"][..], &["--save-state", "state"]] {
        let run = place.run_with_input(&[&["detect"], flags].concat(), &whole);
        assert_eq!((run.code, run.output.as_str()), (2, ""), "{flags:?}: {}", run.errors);
    }
}

/// Covers replies that the provider reports as failed, broken off, in progress or paused.
#[test]
fn a_saved_reply_unfinished_by_its_provider_is_not_whole() {
    let text = "The steps are: first open it, then";
    let chat = |word: &str| {
        json!({"object": "chat.completion", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": word}]})
    };
    let response = |status: &str| {
        json!({"object": "response", "status": status, "error": null, "output": [{"type": "message",
            "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}]})
    };
    let message = |word: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": word});
    let gemini = |word: &str| json!({"candidates": [{"index": 0, "finishReason": word, "content": {"role": "model", "parts": [{"text": text}]}}]});
    let mut beside_an_error = chat("stop");
    beside_an_error["error"] = json!({"message": "Provider returned error", "code": 502});
    let place = TestFolder::new();
    for (reply, cut) in [
        (chat("network_error"), json!("dropped")),
        (chat("repetition"), json!("limit")),
        (chat("TOKEN_LIMIT"), json!("limit")),
        (chat("model_context_window_exceeded"), json!("window")),
        (chat("cancelled"), json!("dropped")),
        (beside_an_error, json!("dropped")),
        (response("failed"), json!("dropped")),
        (response("in_progress"), json!("dropped")),
        (response("queued"), json!("dropped")),
        (message("pause_turn"), Value::Null),
        (gemini("MALFORMED_FUNCTION_CALL"), json!("dropped")),
        (gemini("OTHER"), json!("dropped")),
    ] {
        let data = &place.run_with_input(&["detect", "--json"], reply.to_string()).envelope()["data"];
        assert_eq!((&data["verdict"], &data["reply"]["cut"]), (&json!("truncated"), &cut), "{reply}");
    }
    let data = &place.run_with_input(&["detect", "--json"], chat("stop").to_string()).envelope()["data"];
    assert_eq!(data["verdict"], "whole");
}

/// A complete JSON value does not prove that the reply was complete.
#[test]
fn a_failed_reply_with_whole_json_is_not_whole() {
    let chat = |word: &str, message: Value| {
        json!({"object": "chat.completion", "choices": [
            {"index": 0, "finish_reason": word, "message": message}]})
    };
    let text = json!({"role": "assistant", "content": "{\"a\": 1}"});
    let call = json!({"role": "assistant", "content": "I save.", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "save", "arguments": "{\"a\": 1}"}}]});
    let response = |status: &str| {
        json!({"object": "response", "status": status, "output": [
            {"type": "function_call", "call_id": "c", "name": "save", "arguments": "{\"a\": 1}"}]})
    };
    let gemini = |word: &str| {
        json!({"candidates": [{"finishReason": word, "content": {"role": "model", "parts": [
            {"functionCall": {"name": "save", "args": {"a": 1}}}]}}]})
    };
    let without_choices =
        json!({"object": "chat.completion", "choices": [], "error": {"message": "overloaded"}});
    let place = TestFolder::new();
    for (reply, part) in [
        (chat("error", text.clone()), "choice 0, text"),
        (chat("abort", call.clone()), "choice 0, arguments of save"),
        (response("failed"), "choice 0, arguments of save"),
        (response("cancelled"), "choice 0, arguments of save"),
        (response("queued"), "choice 0, arguments of save"),
        (gemini("OTHER"), "choice 0, arguments of save"),
        (without_choices, "choice 0, text"),
    ] {
        let data = &place.run_with_input(&["detect", "--json"], reply.to_string()).envelope()["data"];
        assert_eq!(
            (&data["verdict"], &data["reply"]["cut"], &data["reply"]["part"]),
            (&json!("truncated"), &json!("dropped"), &json!(part)),
            "{reply}"
        );
    }
    for (word, message) in [("stop", text), ("tool_calls", call)] {
        assert_eq!(place.run_with_input(&["detect"], chat(word, message).to_string()).code, 0, "{word}");
    }
}

/// A provider's error and a rejected prompt are not whole, but another document with a field of that name is.
#[test]
fn a_saved_error_or_refused_prompt_is_not_whole() {
    let choice = |word: Value, error: Value| {
        json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": word, "error": error,
            "message": {"role": "assistant", "content": "All is well."}}]})
    };
    let error = json!({"message": "Provider returned error", "code": 502});
    let call = |word: &str| {
        json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": word, "message": {"role": "assistant",
            "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "save", "arguments": "{}"}}]}}]})
    };
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"});
    let place = TestFolder::new();
    for (reply, verdict, cut) in [
        (choice(json!("stop"), error.clone()), "truncated", json!("dropped")),
        (choice(Value::Null, error.clone()), "truncated", json!("dropped")),
        (choice(json!("stop"), json!({})), "whole", Value::Null),
        (json!({"error": error}), "truncated", json!("dropped")),
        (
            json!({"error": {"message": "Quota", "status": "RESOURCE_EXHAUSTED", "code": 429}}),
            "truncated",
            json!("dropped"),
        ),
        (
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}),
            "truncated",
            json!("dropped"),
        ),
        (blocked, "truncated", Value::Null),
        (call("tool_calls"), "whole", Value::Null),
        (call("length"), "truncated", json!("limit")),
    ] {
        let run = place.run_with_input(&["detect", "--json"], reply.to_string());
        let data = &run.envelope()["data"];
        assert_eq!((&data["verdict"], &data["reply"]["cut"]), (&json!(verdict), &cut), "{reply}");
        assert_eq!(run.code, i32::from(verdict != "whole"), "{reply}");
    }
    for document in
        [json!({"error": "none", "rows": 3}), json!({"error": {"message": "x", "code": 1}, "rows": 3})]
    {
        assert_eq!(place.run_with_input(&["detect"], document.to_string()).code, 0, "{document}");
    }
    let place =
        place.with_file("error.json", json!({"error": error}).to_string()).with_file("rest.txt", "the rest.");
    let stitched = place.run(&["stitch", "error.json", "rest.txt"]);
    assert_eq!(stitched.code, 2);
    assert!(stitched.errors.contains("is an error of the provider"), "{}", stitched.errors);
}

#[test]
fn prose_cut_in_mid_sentence_is_undecided_for_detect_and_guard() {
    let prose = "The quick brown fox jumps over the laz";
    let place = TestFolder::new();
    for (text, is_undecided) in [
        (prose.to_owned(), true),
        (format!("{prose}\n"), true),
        (format!("# Foxes\n\n- One.\n- Two.\n\n{prose}"), true),
        ("Der schnelle braune Fuchs springt über den faulen Hu".to_owned(), true),
        (format!("{prose}y dog."), false),
        (format!("# {prose}"), false),
        (format!("Foxes:\n\n- {prose}"), false),
        (format!("> {prose}"), false),
        (format!("| fox |\n|---|\n| {prose} |"), false),
        (format!("```text\n{prose}\n```"), false),
        ("The fox jumps over the laz".to_owned(), false),
        // The author does not end paragraphs with a full stop.
        (format!("{prose}y dog\n\n{prose}y dog"), false),
        // The link target is not a part of the paragraph.
        (format!("{prose}y [dog][1]\n\n[1]: https://example.org/a/very/long/address"), false),
    ] {
        let run = place.run_with_input(&["detect", "--json"], &text);
        let envelope = run.envelope();
        let data = &envelope["data"];
        assert_eq!(
            (run.code, data["verdict"] == "undecided"),
            (i32::from(is_undecided), is_undecided),
            "{text}"
        );
        if is_undecided {
            assert_eq!(
                (&data["hint"], &envelope["error"]["code"]),
                (&json!("mid_sentence"), &json!("undecided"))
            );
            assert!(data["reason"].as_str().unwrap().contains("mid-sentence"), "{data}");
        }
        let line = json!({"id": 1, "text": text}).to_string();
        let batch = place.run_with_input(&["detect", "--batch"], &line);
        assert_eq!(
            (batch.code, lines(&batch.output)[0]["verdict"].clone()),
            (run.code, data["verdict"].clone())
        );
        let guard = place.run_with_input(&["guard", "-", "--json"], &text).envelope();
        let found = guard["data"]["findings"].as_array().unwrap();
        let stops = found.iter().any(|finding| finding["check"] == "mid_sentence");
        assert_eq!(stops, is_undecided, "{text}: {guard}");
    }
    let printed = place.run_with_input(&["detect"], prose).output;
    assert!(printed.starts_with("undecided: the last paragraph stops in mid-sentence"), "{printed}");
    // The provider's finish reason decides, as in the gateway. For code, the file extension decides.
    let reply = json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": prose}]});
    assert_eq!(place.run_with_input(&["detect"], reply.to_string()).code, 1);
    let mut ended = reply;
    ended["stop_reason"] = json!("end_turn");
    assert_eq!(place.run_with_input(&["detect"], ended.to_string()).code, 0);
    assert_eq!(place.with_file("fox.yaml", prose).run(&["detect", "fox.yaml"]).code, 0);
}

/// A refusal, a filter or an unknown finish reason proves nothing about the text.
#[test]
fn a_refused_or_oddly_finished_saved_reply_is_undecided() {
    let place = TestFolder::new();
    for word in ["content_filter", "moon_phase"] {
        let reply = json!({"object": "chat.completion", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "All is well."}, "finish_reason": word}]});
        let run = place.run_with_input(&["detect", "--json"], reply.to_string());
        let data = &run.envelope()["data"];
        assert_eq!(
            (run.code, &data["verdict"], &data["reply"]["stop"]),
            (1, &json!("undecided"), &json!(word))
        );
    }
}

/// Models write raw line feeds into JSON strings.
#[test]
fn raw_control_characters_are_repairable_and_optionally_accepted() {
    let place = TestFolder::new();
    let cut = "{\"action\":\"write_file\",\"parameters\":{\"path\":\"/src/foo.ts\",\"content\":\"line1\nline";
    let strict = place.run_with_input(&["detect", "--json", "--format", "json"], cut).envelope();
    assert_eq!(
        (&strict["data"]["verdict"], &strict["data"]["repairable"]),
        (&json!("malformed"), &json!(true))
    );
    let printed = place.run_with_input(&["detect", "--format", "json"], cut).output;
    assert!(printed.starts_with("malformed, repairable, at byte "), "{printed}");
    let broken = place.run_with_input(&["detect", "--json", "--format", "json"], "[1}").envelope();
    assert_eq!(broken["data"]["repairable"], false);
    let lenient = ["detect", "--json", "--lenient", "--format", "json"];
    let data = place.run_with_input(&lenient, cut).envelope()["data"].clone();
    assert_eq!(
        (&data["verdict"], &data["hint"], &data["truncation_index"]),
        (&json!("truncated"), &json!("control_characters"), &json!(cut.len()))
    );
    assert_eq!(place.run_with_input(&lenient, format!("{cut}\"}}}}")).code, 0);
    let closed = place.run_with_input(&["detect", "--lenient", "--complete"], cut);
    assert_eq!(closed.output.trim_end(), format!("{}\"}}}}", cut.replace('\n', "\\n")));
    assert!(closed.errors.contains("1 raw control character"), "{}", closed.errors);
    let strictly = place.run_with_input(&["detect", "--complete"], cut);
    assert_eq!((strictly.code, strictly.output.as_str()), (1, ""));
    let batch = format!(
        "{}\n{}\n",
        json!({"id": 1, "format": "json", "text": cut}),
        json!({"id": 2, "format": "json", "text": cut, "lenient": true})
    );
    let verdicts: Vec<Value> = lines(&place.run_with_input(&["detect", "--batch"], batch).output)
        .iter()
        .map(|line| line["verdict"].clone())
        .collect();
    assert_eq!(verdicts, [json!("malformed"), json!("truncated")]);
}

#[test]
fn an_empty_text_is_reported_as_empty() {
    let place = TestFolder::new().with_file("nothing", "");
    let run = place.run(&["detect", "nothing"]);
    assert_eq!(
        (run.code, run.output.starts_with("truncated: the text is empty\n")),
        (1, true),
        "{}",
        run.output
    );
    for format in ["json", "jsonl", "markdown", "text", "tags", "auto"] {
        let data = &place.run_with_input(&["detect", "--json", "--format", format], " \n").envelope()["data"];
        assert_eq!(
            (&data["verdict"], &data["reason"], &data["truncation_index"]),
            (&json!("truncated"), &json!("the text is empty"), &json!(0)),
            "{format}"
        );
    }
}

#[test]
fn an_end_marker_selects_its_own_format() {
    let place = TestFolder::new();
    assert_eq!(place.run_with_input(&["detect", "--marker", "<<END>>"], "text <<END>>\n").code, 0);
    assert_eq!(place.run_with_input(&["detect", "--marker", "<<END>>"], "text <<EN").code, 1);
    let missing = place.run_with_input(&["detect", "--format", "marker"], "text");
    assert_eq!(missing.code, 2);
    assert!(missing.errors.contains("needs a marker"), "{}", missing.errors);
}

#[test]
fn a_batch_continues_after_an_invalid_line() {
    let input = concat!(
        "{\"id\":\"a\",\"format\":\"json\",\"text\":\"[1, 2]\"}\n",
        "this is no JSON\n",
        "{\"id\":7,\"format\":\"json\",\"text\":\"[1, \"}\n",
        "{\"id\":\"utf8\",\"format\":\"text\",\"base64\":\"w6TD\"}\n",
        "{\"id\":\"bad\",\"format\":\"yaml\",\"text\":\"\"}\n",
        "{\"id\":\"last\",\"format\":\"json\",\"text\":\"[}\"}",
    );
    let run = TestFolder::new().run_with_input(&["detect", "--batch"], input);
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
fn a_batch_explains_why_a_line_is_not_a_request() {
    let place = TestFolder::new();
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
                (Value::Null, "the line is not a JSON object".to_owned()),
                "{line}"
            );
        }
    }
    let both = [
        ("{\"id\":3 \"text\":\"\"}", Value::Null, "not JSON: byte 8"),
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
        (json!(4), "a field occurs twice".to_owned())
    );
    let halves = refused("stitch", r#"{"id":5,"chunks":["a \ud83d","\ude00 b"]}"#);
    assert_eq!((halves.0, halves.1.contains("half a character")), (json!(5), true), "{}", halves.1);
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
fn a_batch_exits_with_1_only_after_a_negative_answer() {
    let place = TestFolder::new();
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
fn a_batch_answers_before_its_input_ends() {
    let mut child = TestFolder::new().command(&["detect", "--batch"]).spawn().unwrap();
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

#[test]
fn a_closed_text_goes_to_standard_output_and_notes_do_not() {
    let place = TestFolder::new().with_file("cut.json", "{\"path\": \"a.rs\", \"size\": [1, 20");
    let cut = place.run(&["detect", "--complete", "cut.json"]);
    assert_eq!((cut.code, cut.output.as_str()), (1, "{\"path\": \"a.rs\", \"size\": [1]}"));
    assert_eq!(
        cut.errors,
        "error: truncated: settled up to byte 29; \
         unfinished: /size/1 (number, left out), /size (array), the root (object)\n"
    );
    let whole = place.run_with_input(&["detect", "--complete"], " [1, 2.50]\n");
    assert_eq!((whole.code, whole.output.as_str(), whole.errors.as_str()), (0, " [1, 2.50]\n", ""));
    let number = place.run_with_input(&["detect", "--complete", "--format", "json"], "12");
    assert_eq!((number.code, number.output.as_str()), (0, "12"));
    assert_eq!(number.errors, "warning: whole, but the number at its end may continue\n");
}

#[test]
fn unclosable_text_leaves_standard_output_empty() {
    for (arguments, input, message) in [
        (&["--format", "json"][..], "[1,}", "error: malformed at byte 3: not a value\n"),
        (&["--format", "json"][..], "", "error: no part of a value is settled yet\n"),
        (
            &[][..],
            "just prose",
            "error: the text does not begin with JSON: remove the prose or fence around the JSON\n",
        ),
        (
            &["--format", "text"][..],
            "[1",
            "error: a text of the format `text` cannot be closed: only json, jsonl and auto can\n",
        ),
    ] {
        let run = TestFolder::new().run_with_input(&[&["detect", "--complete"], arguments].concat(), input);
        assert_eq!((run.code, run.output.as_str(), run.errors.as_str()), (1, "", message), "{input}");
    }
}

#[test]
fn the_envelope_has_the_closed_text_and_unfinished_pointers() {
    let arguments = &["detect", "--json", "--complete", "--format", "json"];
    let envelope = TestFolder::new().run_with_input(arguments, "{\"a/b\": [\"x").envelope();
    assert_eq!(
        (&envelope["error"]["code"], &envelope["data"]["verdict"]),
        (&json!("truncated"), &json!("truncated"))
    );
    assert_eq!(
        envelope["data"]["completed"],
        json!({
            "text": "{\"a/b\": [\"x\"]}", "value": 0, "unfinished_omitted": 0,
            "unfinished": [
                {"pointer": "", "kind": "object", "left_out": false},
                {"pointer": "/a~1b", "kind": "array", "left_out": false},
                {"pointer": "/a~1b/0", "kind": "string", "left_out": false},
            ]
        })
    );
    let malformed = TestFolder::new().run_with_input(arguments, "[}").envelope();
    assert_eq!(malformed["data"]["completed"], Value::Null);
    assert_eq!(malformed["data"]["completed_error"]["code"], "malformed");
}

#[test]
fn a_hundred_thousand_levels_are_closed_and_counted() {
    let arguments = &["detect", "--json", "--complete", "--format", "json"];
    let envelope = TestFolder::new().run_with_input(arguments, "[".repeat(100_000)).envelope();
    let completed = &envelope["data"]["completed"];
    assert_eq!(completed["text"], format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    let listed = completed["unfinished"].as_array().unwrap();
    assert_eq!(listed.last().unwrap()["pointer"], "/0".repeat(99_999));
    let omitted = usize::try_from(completed["unfinished_omitted"].as_u64().unwrap()).unwrap();
    assert_eq!(listed.len() + omitted, 100_000);
    assert!(listed.len() > 300, "{}", listed.len());
    assert_eq!(envelope["warnings"][0]["code"], "UNFINISHED_OMITTED");
    assert_eq!(envelope["meta"]["truncated"], true);
}

#[test]
fn a_batch_closes_lines_that_request_it() {
    let input = concat!(
        "{\"id\":1,\"format\":\"jsonl\",\"text\":\"{}\\n{\\\"a\\\"\",\"complete\":true}\n",
        "{\"id\":2,\"format\":\"json\",\"text\":\"[\",\"complete\":false}\n",
        "{\"id\":3,\"format\":\"json\",\"text\":\"\",\"complete\":true}\n",
        "{\"id\":4,\"format\":\"json\",\"text\":\"\",\"complete\":\"yes\"}\n",
    );
    let run = TestFolder::new().run_with_input(&["detect", "--batch"], input);
    let answers = lines(&run.output);
    assert_eq!(
        answers[0]["completed"],
        json!({
            "text": "{}\n{}", "value": 1, "unfinished_omitted": 0,
            "unfinished": [
                {"pointer": "", "kind": "object", "left_out": false},
                {"pointer": "/a", "kind": "key", "left_out": true},
            ]
        })
    );
    assert!(answers[1].get("completed").is_none());
    assert_eq!(
        (&answers[2]["completed"], &answers[2]["completed_error"]["code"]),
        (&Value::Null, &json!("no_value"))
    );
    assert_eq!(answers[3]["error"]["message"], "`complete` must be true or false");
    let all = TestFolder::new()
        .run_with_input(&["detect", "--batch", "--complete"], "{\"format\":\"json\",\"text\":\"[\"}");
    assert_eq!(lines(&all.output)[0]["completed"]["text"], "[]");
}

/// PC-2: a growing text is read once and judged as a whole.
#[test]
fn a_detector_state_is_kept_between_two_runs() {
    let text = "Here:\n```json\n{\"path\": \"grün 😀\", \"lines\": [1, 23]}\n```\nThat is all.\n```sh\nls";
    for format in ["auto", "markdown", "text"] {
        for cut in [0, 3, 17, 28, 33, 34, 50, text.len()] {
            let place = TestFolder::new();
            let whole = place.run_with_input(&["detect", "--json", "--format", format], text);
            let (head, rest) = text.as_bytes().split_at(cut);
            let first =
                place.run_with_input(&["detect", "--json", "--format", format, "--save-state", "kept"], head);
            let alone = place.run_with_input(&["detect", "--json", "--format", format], head);
            assert_eq!(first.envelope()["data"], alone.envelope()["data"], "{format} cut at {cut}");
            let grown = place.run_with_input(&["detect", "--json", "--state", "kept"], rest);
            assert_eq!(grown.envelope()["data"], whole.envelope()["data"], "{format} cut at {cut}");
            assert_eq!(grown.code, whole.code);
            let again =
                place.run_with_input(&["detect", "--json", "--state", "kept", "--format", format], "");
            assert_eq!(again.envelope()["data"], whole.envelope()["data"], "{format} cut at {cut}");
        }
    }
    let place = TestFolder::new().with_file("foreign", "{\"version\": 1, \"machine\": {\"Text\": {}}}");
    let foreign = place.run_with_input(&["detect", "--state", "foreign"], "");
    assert_eq!(foreign.code, 2);
    assert!(foreign.errors.contains("is not a saved detector"), "{}", foreign.errors);
    assert_eq!(place.run_with_input(&["detect", "--state", "missing"], "").code, 2);
    assert_eq!(place.run_with_input(&["detect", "--save-state", "kept"], "[1").code, 1);
    let other = place.run_with_input(&["detect", "--state", "kept", "--format", "json"], "]");
    assert_eq!(
        (other.code, other.errors.contains("was saved for the format auto")),
        (2, true),
        "{}",
        other.errors
    );
    assert_eq!(place.run_with_input(&["detect", "--state", "kept"], "]").code, 0);
    assert_eq!(place.run_with_input(&["detect", "--save-state", "missing/kept"], "[]").code, 4);
}
