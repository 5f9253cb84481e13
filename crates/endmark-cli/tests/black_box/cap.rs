//! `cap` with a pipe, a file, an envelope and a batch (CX-5).

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::run::TestFolder;

/// Returns a log of about `bytes` bytes, with an error in the middle.
fn log(bytes: usize) -> String {
    let mut log = String::new();
    let (mut number, mut has_error) = (0, false);
    while log.len() < bytes {
        let is_error = log.len() >= bytes / 2 && !has_error;
        has_error |= is_error;
        let level = if is_error { "ERROR" } else { "INFO" };
        let _ = writeln!(log, "2026-11-24 12:00:00 {level} worker {number}: request served in 12 ms");
        number += 1;
    }
    log
}

fn batch(place: &TestFolder, requests: &[Value]) -> (i32, Vec<Value>) {
    let input = requests.iter().fold(String::new(), |input, request| input + &format!("{request}\n"));
    let run = place.run_with_input(&["cap", "--batch", "--no-store"], input);
    (run.code, run.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn a_capped_pipe_keeps_its_error() {
    let place = TestFolder::new();
    let run = place.run_with_input(&["cap", "--no-store", "--max-chars", "3000"], log(400_000));
    assert_eq!(run.code, 0, "{}", run.errors);
    assert!(run.output.chars().count() <= 3_000);
    assert_eq!(run.output.matches("ERROR").count(), 1);
    assert!(run.output.starts_with("[… ") && run.output.lines().next().unwrap().ends_with(" left out …]"));
    assert!(run.errors.contains(" characters are left out"), "{}", run.errors);
    // If the marker has no room for the handle, a warning contains it.
    let short = place.run_with_input(&["cap", "--max-chars", "80"], log(40_000));
    let handle = short.errors.split("endmark read ").nth(1).unwrap().split('`').next().unwrap();
    assert!(!short.output.contains(handle));
    assert_eq!(place.run(&["read", handle]).code, 0);
    let small = place.run_with_input(&["cap", "--no-store"], "all is well\n");
    assert_eq!((small.output.as_str(), small.errors.as_str()), ("all is well\n", ""));
}

#[test]
fn the_envelope_has_the_format_and_a_warning_for_a_cut() {
    let rows: Vec<Value> =
        (0..2_000).map(|id| json!({"id": id, "state": if id == 999 { "lost" } else { "ok" }})).collect();
    let place = TestFolder::new()
        .with_file("rows.json", json!({"rows": rows, "log": "x".repeat(300_000)}).to_string());
    let envelope = place.run(&["cap", "--json", "--no-store", "rows.json"]).envelope();
    assert_eq!(envelope["data"]["format"], "json");
    assert_eq!(envelope["data"]["handle"], Value::Null);
    let shown: Value = serde_json::from_str(envelope["data"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(shown["rows"].as_array().unwrap().len(), 501);
    assert!(shown["rows"].as_array().unwrap().contains(&rows[999]));
    assert_eq!(shown["rows"][500], json!({"endmark_omitted": {"items": 1500, "of": 2000, "handle": null}}));
    let fields: Vec<&Value> =
        envelope["warnings"].as_array().unwrap().iter().map(|warning| &warning["field"]).collect();
    assert_eq!(fields, ["data.text.rows", "data.text.log"]);
    assert_eq!(envelope["warnings"][1]["original_length"], 300_000);
    assert_eq!(envelope["meta"]["truncated"], true);
}

#[test]
fn a_batch_accepts_limits_in_every_unit() {
    let place = TestFolder::new();
    let text = log(20_000);
    let (code, answers) = batch(
        &place,
        &[
            json!({"id": 1, "format": "text", "text": text, "max_chars": 500}),
            json!({"id": 2, "format": "auto", "text": text, "max_bytes": 500}),
            json!({"id": 3, "format": "text", "text": text, "max_tokens": 200}),
            json!({"id": 4, "format": "json", "text": "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]", "max_items": 3}),
            json!({"id": 5, "format": "text", "base64": "/w=="}),
            json!({"id": 6, "base64": "AAAA".repeat(27)}),
            json!({"id": 7, "text": "a", "max_chars": 0}),
            json!({"id": 8, "text": "a", "max_chars": 100, "max_bytes": 100}),
            json!({"id": 9, "text": "a", "format": "xml"}),
            json!({"id": 10, "text": "a", "max_items": "x"}),
            json!({"id": 11, "text": "a"}),
        ],
    );
    assert_eq!(code, 2);
    assert_eq!(answers.len(), 11);
    for answer in &answers[..3] {
        let text = answer["text"].as_str().unwrap();
        assert!(text.chars().count() <= 1_000 && text.contains("ERROR"), "{text}");
        assert_eq!((&answer["warnings"][0]["field"], &answer["handle"]), (&json!("text"), &Value::Null));
    }
    assert!(answers[0]["text"].as_str().unwrap().chars().count() <= 500);
    assert!(answers[1]["text"].as_str().unwrap().len() <= 500);
    let items: Value = serde_json::from_str(answers[3]["text"].as_str().unwrap()).unwrap();
    assert_eq!(items[items.as_array().unwrap().len() - 1]["endmark_omitted"]["of"], 25);
    assert_eq!(answers[5]["format"], "binary");
    for (index, words) in
        [(4, "not UTF-8"), (6, "no room"), (7, "exclude"), (8, "unknown format"), (9, "whole number")]
    {
        let error = &answers[index]["error"];
        assert_eq!(error["code"], "invalid_line", "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
    assert_eq!(answers[10]["text"], "a");
}

#[test]
fn limits_are_configurable_and_impossible_ones_are_refused() {
    let text = log(400_000);
    let place =
        TestFolder::new().with_file("endmark.toml", "[cap]\nmax_chars = 1000\n").with_file("log", &text);
    assert!(place.run(&["cap", "--no-store", "log"]).output.chars().count() <= 1_000);
    let place = TestFolder::new().with_variable("MAX_RESULT_CHARS", "2000").with_file("log", &text);
    let size = place.run(&["cap", "--no-store", "log"]).output.chars().count();
    assert!((1_000..=2_000).contains(&size), "{size}");
    let tokens = place.run(&["cap", "--no-store", "--max-tokens", "300", "log"]);
    assert!(tokens.output.contains("ERROR"), "{}", tokens.errors);
    for arguments in [
        &["--max-chars", "0"][..],
        &["--max-bytes", "50"],
        &["--max-items", "0"],
        &["--max-chars", "500", "--max-bytes", "500"],
    ] {
        let run = place.run(&[&["cap", "log", "--no-store"], arguments].concat());
        assert_eq!((run.code, run.output.as_str()), (2, ""), "{arguments:?}");
    }
    let foreign = place.run_with_input(&["cap", "--no-store", "--format", "text"], b"ab\xFFc");
    assert_eq!(foreign.code, 2);
    assert!(foreign.errors.contains("byte 2"), "{}", foreign.errors);
}

/// Returns the peak memory (`VmHWM`) of a process, in bytes.
fn peak_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// `ENDMARK_TEST_CAP_BYTES` sets a larger size. The published figures use 5 GB.
#[test]
fn an_endless_pipe_uses_bounded_memory() {
    let most: u64 = std::env::var("ENDMARK_TEST_CAP_BYTES").map_or(2 << 20, |bytes| bytes.parse().unwrap());
    let rows = (0..1_000).fold(String::new(), |rows, id| {
        rows + &format!(
            "{{\"id\": {id}, \"state\": \"ok\", \"ms\": {}}}
",
            id % 9
        )
    });
    let place = TestFolder::new();
    for chunk in [log(64 << 10), rows, "x".repeat(64 << 10)] {
        let mut child = place.command(&["cap", "--no-store"]).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut written = 0;
        while written < most {
            input.write_all(chunk.as_bytes()).unwrap();
            written += chunk.len() as u64;
        }
        let peak = peak_bytes(child.id());
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().chars().count() <= 200_000);
        assert!(peak < 50_000_000, "{peak} bytes at the peak");
    }
}
