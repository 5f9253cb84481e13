//! Half an emoji in JSON: grammatically valid, but not a character. It comes from software that cuts text by
//! UTF-16 units.

use serde_json::{Value, json};

use crate::run::TestFolder;

const HALF_SURROGATE_PAIR: &str = r"\ud83d";

fn result_line(output: &str) -> Value {
    serde_json::from_str(output.lines().next().unwrap()).unwrap()
}

#[test]
fn half_characters_in_a_conversation_are_counted_and_compacted() {
    let turn = format!(r#"{{"role":"user","content":"{}"}}"#, "lorem ipsum ".repeat(200));
    let turns = vec![format!(r#"{{"role":"assistant","content":"a step"}},{turn}"#); 20].join(",");
    let body =
        format!(r#"{{"messages":[{{"role":"user","content":"start {HALF_SURROGATE_PAIR}"}},{turns}]}}"#);
    let place = TestFolder::new();
    let counted = place.run_with_input(&["count", "--model", "gpt-5", "--for", "openai_chat"], &body);
    assert_eq!(counted.code, 0, "{}", counted.output);
    let compact = ["compact", "--for", "openai_chat", "--keep-share", "0.2", "--no-store"];
    for form in [&[] as &[&str], &["--json"]] {
        let compacted = place.run_with_input(&[&compact, form].concat(), &body);
        assert_eq!(compacted.code, 0, "{}", compacted.output);
        assert!(compacted.output.len() < body.len() / 2);
    }
    let line = format!(r#"{{"id":1,"for":"openai_chat","keep_share":0.2,"request":{body}}}"#);
    let batch = place.run_with_input(&["compact", "--batch", "--no-store"], line);
    assert_eq!(batch.code, 0, "{}", batch.output);
    assert!(batch.output.contains(&format!("start {HALF_SURROGATE_PAIR}")), "the first turn has other bytes");
}

#[test]
fn a_batch_line_with_half_a_character_is_answered() {
    let place = TestFolder::new();
    let text = format!("{}{HALF_SURROGATE_PAIR} end", r"some line\n".repeat(3_000));
    let cap = format!(r#"{{"id":1,"text":"{text}","max_chars":4000}}"#);
    let capped = place.run_with_input(&["cap", "--batch", "--no-store"], cap);
    assert_eq!(capped.code, 0, "{}", capped.output);
    assert!(result_line(&capped.output)["text"].as_str().unwrap().contains("\u{FFFD} end"));
    let detected = place.run_with_input(
        &["detect", "--batch"],
        format!(r#"{{"id":2,"text":"[\"{HALF_SURROGATE_PAIR}","format":"json"}}"#),
    );
    assert_eq!(result_line(&detected.output)["verdict"], json!("truncated"), "{}", detected.output);
    let guarded = place.run_with_input(
        &["guard", "--batch"],
        format!(r##"{{"id":3,"text":"# A\n\n{HALF_SURROGATE_PAIR} and so on."}}"##),
    );
    assert!(result_line(&guarded.output)["verdict"].is_string(), "{}", guarded.output);
    let chunks = format!(
        r#"{{"id":4,"format":"text","chunks":["a whole {HALF_SURROGATE_PAIR} sen","tence."],"from":"cut"}}"#
    );
    let joined = place.run_with_input(&["stitch", "--batch"], chunks);
    assert_eq!(result_line(&joined.output)["text"], json!("a whole \u{FFFD} sentence."), "{}", joined.output);
}

#[test]
fn tool_output_with_half_a_character_is_capped() {
    let output = r"some line\n".repeat(3_000);
    let event = format!(
        r#"{{"session_id":"s","hook_event_name":"PostToolUse","cwd":"/tmp","transcript_path":"/x","tool_name":"Bash","tool_input":{{"command":"x"}},"tool_response":{{"stdout":"{output}\ud800 end","stderr":"","interrupted":false,"isImage":false}}}}"#
    );
    let run = TestFolder::new()
        .run_with_input(&["hook", "tool", "--agent", "claude", "--max-chars", "4000"], event);
    assert!(run.output.contains("updatedToolOutput"), "{}", run.output);
}

#[test]
fn a_command_may_print_half_a_character() {
    let place = TestFolder::new();
    let print = format!("printf '%s' '{{\"a\":\"{HALF_SURROGATE_PAIR} b\"}}'");
    let run = place.run(&["exec", "--json", "--", "sh", "-c", &print]);
    assert_eq!((run.code, &run.envelope()["data"]["a"]), (0, &json!("\u{FFFD} b")), "{}", run.output);
}
