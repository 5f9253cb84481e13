//! `count`: tokens and dollars of a text or a conversation, before it is sent.

use std::process::Command;

use serde_json::{Value, json};

use crate::run::{CommandOutput, TestFolder};

fn count(arguments: &[&str], input: &str) -> Value {
    let run = TestFolder::new().run_with_input(&[&["count", "--json"], arguments].concat(), input);
    assert_eq!(run.code, 0, "{}", run.output);
    run.envelope()["data"].clone()
}

#[test]
fn count_prints_tokens_and_cost_of_a_text() {
    // 1,000 tokens: OpenAI's vocabulary has one token for each word of this text.
    let text = " the".repeat(1_000);
    let data = count(&["--model", "gpt-5"], &text);
    assert_eq!((&data["tokens"], &data["exact"]), (&json!(1_000), &json!(true)));
    // $1.25 per million tokens.
    assert_eq!(data["usd"], "0.001250000");
    let data = count(&["--model", "claude-sonnet-5"], &text);
    assert!(data["tokens"].as_u64().unwrap() > 1_000);
    assert_eq!(data["exact"], false);
    let data = count(&["--model", "a-model-of-nobody"], &text);
    assert_eq!(data["usd"], Value::Null, "no price is not a price of 0");
}

#[test]
fn count_validates_and_counts_a_conversation() {
    let body = json!({"model": "gpt-5", "messages": [{"role": "user", "content": "the ".repeat(500)}]});
    let data = count(&["--model", "gpt-5", "--for", "openai_chat"], &body.to_string());
    let tokens = data["tokens"].as_u64().unwrap();
    assert!((500..=520).contains(&tokens), "{tokens}");
    assert_eq!(data["exact"], false);
    let place = TestFolder::new();
    let run = place.run_with_input(&["count", "--model", "m", "--for", "gemini", "--json"], body.to_string());
    assert_eq!((run.code, run.envelope()["error"]["code"].as_str()), (2, Some("not_a_conversation")));
    let people = place.run_with_input(&["count", "--model", "claude-sonnet-5"], "Keep the work whole.");
    assert!(people.output.starts_with("about "), "{}", people.output);
}

/// Regression test: this text once needed 1.6 GB of memory.
#[test]
fn a_text_of_forty_megabytes_without_a_space_needs_little_memory() {
    let place = TestFolder::new().with_file("long.txt", vec![b'a'; 40_000_000]);
    let limited = "ulimit -v 700000 && exec \"$0\" count --model gpt-5 --json long.txt";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_endmark")]).current_dir(place.path());
    let run = CommandOutput::new(&command.env_clear().env("HOME", place.path()).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.errors);
    let data = &run.envelope()["data"];
    let tokens = data["tokens"].as_u64().unwrap();
    assert!((4_900_000..5_100_000).contains(&tokens) && data["exact"] == false, "{data}");
}
