//! `compact`: which messages are condensed, which stay, and batches. (CX-1 to CX-4)

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::run::TestFolder;

/// Returns an agent's long history. Each step reads a file, and one of them fails.
fn long_history() -> Vec<Value> {
    let mut messages = vec![
        json!({"role": "system", "content": "You sort orders."}),
        json!({"role": "user", "content": "Sort the orders of account ac_77120, and never touch order ZX-9931."}),
    ];
    for number in 0..40 {
        let arguments = json!({"command": format!("sort --file orders/{number}.csv"), "order": format!("ord_{number}b{number}")});
        messages.push(
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("call_{number}"),
            "type": "function", "function": {"name": "run", "arguments": arguments.to_string()}}]}),
        );
        let mut output =
            if number == 11 { "error: orders/11.csv has no header\n".to_owned() } else { String::new() };
        for row in 0..12 {
            let _ = writeln!(output, "row {row} of a table that nobody will ever need again");
        }
        messages.push(json!({"role": "tool", "tool_call_id": format!("call_{number}"), "content": output}));
    }
    messages.push(json!({"role": "user", "content": "How far are you?"}));
    messages
}

#[test]
fn a_condensed_history_keeps_what_its_agent_needs() {
    let body = json!({"model": "m", "messages": long_history(), "temperature": 0.5}).to_string();
    let place = TestFolder::new().with_file("request.json", &body);
    let run = place.run(&["compact", "request.json", "--for", "openai_chat", "--trigger-tokens", "3500"]);
    assert_eq!(run.code, 0, "{}", run.errors);
    assert!(run.errors.contains("Compacted: "), "{}", run.errors);
    let request: Value = serde_json::from_str(&run.output).unwrap();
    let after = request["messages"].as_array().unwrap();
    let before = long_history();
    // The instructions, the task and the ten newest messages are unchanged.
    assert_eq!(after[..2], before[..2]);
    assert_eq!(after[after.len() - 10..], before[before.len() - 10..]);
    assert_eq!(request["temperature"], 0.5);
    let summary = after[2]["content"].as_str().unwrap();
    for needed in ["ord_0b0", "orders/11.csv has no header", "sort --file orders/11.csv"] {
        assert!(summary.contains(needed), "{needed} is lost: {summary}");
    }
    assert!(run.output.len() * 2 < body.len());
    // Compacting again changes nothing.
    let again = place.with_file("again.json", &run.output).run(&[
        "compact",
        "again.json",
        "--for",
        "openai_chat",
        "--trigger-tokens",
        "3500",
    ]);
    assert_eq!((again.code, again.output), (0, run.output));
    assert!(again.errors.contains("Nothing was compacted"), "{}", again.errors);
}

#[test]
fn the_original_is_kept_under_the_handle_of_the_receipt() {
    let body = json!({"model": "m", "messages": long_history()}).to_string();
    let place = TestFolder::new().with_file("request.json", &body);
    let command_line =
        ["compact", "request.json", "--for", "openai_chat", "--trigger-tokens", "3000", "--json"];
    let kept = place.run(&command_line).envelope();
    let handle = kept["data"]["receipt"]["handle"].as_str().unwrap();
    let read = place.run(&["read", handle, "--max-bytes", "10000000"]);
    assert_eq!((read.code, read.output), (0, body), "{}", read.errors);
    let without = place.run(&[&command_line[..], &["--no-store"]].concat()).envelope();
    assert_eq!(without["data"]["receipt"]["handle"], Value::Null);
    // If the original cannot be stored, the answer is still complete.
    let nowhere =
        place.run(&[&command_line[..], &["--store", "sqlite:/dev/null/endmark.db"]].concat()).envelope();
    assert_eq!(nowhere["warnings"][0]["code"], "NOT_KEPT", "{nowhere}");
    assert_eq!(nowhere["data"]["request"], kept["data"]["request"]);
}

#[test]
fn a_small_conversation_is_unchanged() {
    let body = "{ \"contents\" : [ {\"role\":\"user\",\"parts\":[{\"text\":\"Hi\\u0021\"}]} ],\"n\":1.0}";
    let place = TestFolder::new().with_file("request.json", body);
    let run = place.run(&["compact", "--for", "gemini", "request.json"]);
    assert_eq!((run.code, run.output.as_str()), (0, body));
    let envelope = place.run(&["compact", "--for", "gemini", "request.json", "--json"]).envelope();
    let receipt = &envelope["data"]["receipt"];
    assert_eq!(receipt["tokens_before"], receipt["tokens_after"]);
    assert_eq!(receipt["not_compacted"], "the history is below the trigger");
}

#[test]
fn a_bare_list_of_messages_is_condensed_to_the_requested_share() {
    let list = Value::from(long_history()).to_string();
    let place = TestFolder::new().with_file("messages.json", list);
    let envelope = place
        .run(&["compact", "messages.json", "--for", "openai_chat", "--keep-share", "0.2", "--json"])
        .envelope();
    let receipt = &envelope["data"]["receipt"];
    let [before, after] = ["tokens_before", "tokens_after"].map(|name| receipt[name].as_u64().unwrap());
    assert!(after * 5 <= before, "{receipt}");
    assert_eq!(receipt["over_budget"], false);
    assert!(receipt["dropped"]["tool_calls"].as_u64().unwrap() > 20, "{receipt}");
    assert!(receipt["anchors"]["identifiers"]["kept"].as_u64().unwrap() > 0, "{receipt}");
    let kept = envelope["data"]["request"].as_array().unwrap();
    assert_eq!(kept.last().unwrap()["content"], "How far are you?");
}

#[test]
fn the_threshold_counts_the_whole_request() {
    let tools: Vec<Value> = (0..400).map(|number| json!({"type": "function", "function": {"name": format!("tool_{number}"), "description": "does one thing and then another"}})).collect();
    let body = json!({"tools": tools, "messages": long_history()}).to_string();
    let place = TestFolder::new().with_file("request.json", body);
    let run = |mode| {
        place
            .run(&[
                "compact",
                "request.json",
                "--for",
                "openai_chat",
                "--mode",
                mode,
                "--trigger-tokens",
                "12000",
                "--json",
            ])
            .envelope()
    };
    assert_eq!(run("window")["data"]["receipt"]["not_compacted"], "the history is below the trigger");
    let braked = run("emergency");
    assert!(braked["data"]["receipt"]["not_compacted"].is_null(), "{}", braked["data"]["receipt"]);
    assert!(braked["data"]["request"]["messages"][2]["content"].as_str().unwrap().contains("- called run("));
}

#[test]
fn a_batch_continues_after_a_bad_line() {
    let good = json!({"id": 1, "for": "openai_chat", "request": long_history(), "keep_share": 0.3});
    let number = "{\"id\":\"n\",\"for\":\"openai_chat\",\"request\":{\"messages\":[],\"seed\":1e2}}";
    let bad = json!({"id": 2, "for": "gemini", "request": long_history()});
    let unknown = json!({"id": 3, "for": "smoke_signals", "request": []});
    let place =
        TestFolder::new().with_file("lines", format!("{good}\n{bad}\n{unknown}\nno json\n{number}\n"));
    let run = place.run(&["compact", "--batch", "lines"]);
    assert_eq!(run.code, 2);
    let lines: Vec<Value> = run.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["id"], &lines[0]["compacted"]), (&json!(1), &json!(true)));
    assert!(lines[0]["receipt"]["tokens_after"].as_u64() < lines[0]["receipt"]["tokens_before"].as_u64());
    assert!(
        lines[1]["error"]["message"].as_str().unwrap().contains("item 0 (byte 1) has no list of `parts`"),
        "{}",
        lines[1]
    );
    assert!(lines[2]["error"]["message"].as_str().unwrap().contains("unknown wire format `smoke_signals`"));
    assert_eq!(lines[3]["id"], Value::Null);
    assert!(run.output.ends_with("}\n") && run.output.contains("\"request\":{\"messages\":[],\"seed\":1e2}"));
}

#[test]
fn a_conversation_nested_too_deeply_is_bad_input() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let request = format!(r#"{{"messages":[{{"role":"user","content":"x"}}],"x":{deep}}}"#);
    let run = TestFolder::new().with_file("deep.json", &request).run(&[
        "compact",
        "--for",
        "openai_chat",
        "deep.json",
    ]);
    assert_eq!(run.code, 2, "{}", run.errors);
    assert!(run.errors.contains("is nested too deeply") && !run.errors.contains("bug"), "{}", run.errors);
}

#[test]
fn input_that_is_not_a_conversation_is_refused() {
    let place = TestFolder::new()
        .with_file("cut.json", "{\"messages\":[{\"role\"")
        .with_file("other.json", "{\"input\":7}");
    let cut = place.run(&["compact", "--for", "openai_chat", "cut.json"]);
    assert_eq!((cut.code, cut.output.as_str()), (2, ""));
    assert!(cut.errors.contains("invalid JSON at byte 20"), "{}", cut.errors);
    let other = place.run(&["compact", "--for", "openai_responses", "other.json"]);
    assert!(other.code == 2 && other.errors.contains("a request with `input`"), "{}", other.errors);
    assert_eq!(place.run(&["compact", "other.json"]).code, 2);
    for share in ["0", "1", "1.5", "NaN", "-1"] {
        let run = place.run(&["compact", "--for", "gemini", &format!("--keep-share={share}"), "other.json"]);
        assert!(run.code == 2 && run.errors.contains("share"), "{}", run.errors);
    }
}

/// Returns the searches `from..to` of a log, each with a conclusion. Every seventh search fails.
fn searches(from: usize, to: usize) -> Vec<Value> {
    let mut messages = Vec::new();
    for number in from..to {
        let arguments = json!({"filter": format!(r#"severity>=ERROR AND node="node-{number}""#)}).to_string();
        let call = json!({"id": format!("c{number}"), "type": "function", "function": {"name": "query", "arguments": arguments}});
        let rows: Vec<Value> =
            (0..20).map(|row| json!({"row": row, "text": "nothing of note was found here"})).collect();
        let content = match number % 7 {
            0 => json!({"exit_code": 3, "error": format!("timeout of shard {number}")}),
            _ => json!({"rows": rows}),
        };
        messages.extend([
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": format!("c{number}"), "content": content.to_string()}),
            json!({"role": "assistant", "content": format!("Node {number} is not the cause of the failures, as its pool was never full.")}),
            json!({"role": "user", "content": "Go on."}),
        ]);
    }
    messages
}

#[test]
fn calls_without_a_separate_line_are_grouped_and_counted() {
    let mut messages = vec![json!({"role": "user", "content": "Find why the checkout fails."})];
    let mut expected = 0;
    for (from, to) in [(0, 60), (60, 90)] {
        messages.extend(searches(from, to));
        let body = json!({"model": "m", "messages": messages}).to_string();
        let place = TestFolder::new().with_file("request.json", body);
        let words = ["compact", "request.json", "--for", "openai_chat", "--trigger-tokens", "4000", "--json"];
        let data = place.run(&words).envelope()["data"].take();
        let anchors = &data["receipt"]["anchors"];
        messages = data["request"]["messages"].as_array().unwrap().clone();
        let summary = messages[1]["content"].as_str().unwrap();
        let number = |kind: &str, name: &str| anchors[kind][name].as_u64().unwrap_or_default();
        let lines = summary.matches("The assistant called query(").count() as u64;
        assert!(lines > 0 && number("calls", "kept") >= lines, "{anchors}: {summary}");
        let of_group = |label: &str| {
            let (before, _) = summary.split_once(&format!(" × query → {label}")).unwrap_or(("0", ""));
            before.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        };
        let grouped = of_group("ok") + of_group("exit 3");
        assert_eq!((grouped, grouped), (number("grouped_calls", "kept"), number("grouped_calls", "found")));
        assert!(of_group("exit 3") > 2, "{summary}");
        // Every call appears: in its own line, in a group, or unchanged.
        let left = messages.iter().filter(|message| message["role"] == "tool").count() as u64;
        expected += (to - from) as u64;
        assert_eq!(number("calls", "kept") + grouped + left, expected, "{anchors}: {summary}");
    }
}
