//! Input that is too large does not reach the command. (EN-4)

use std::fs;

use serde_json::{Value, json};

use super::{error_codes, exec, exec_builtin, exec_folder, exec_with, folder_with_manifest, manifest_path};
use crate::run::TestFolder;

/// Adds a note with the documented script and manifest.
fn add_note(place: &TestFolder, title: &str, body: &str) -> Value {
    let command = [&manifest_path("notes.py"), "notes.db", "add", "--title", title];
    exec_with(place, &manifest_path("notes.toml"), &command, body)
}

fn assert_refused(answer: &Value, field: &str, limit: u64, actual: u64) {
    assert_eq!(error_codes(answer), ("FIELD_TOO_LARGE", 2));
    let error = &answer["error"];
    assert_eq!((&error["phase"], &error["field"]), (&json!("validation"), &json!(field)));
    assert_eq!((&error["limit"], &error["actual"]), (&json!(limit), &json!(actual)));
    assert!(error["hint"].as_str().unwrap().starts_with("The command was not started."));
    assert_eq!(answer["data"], Value::Null);
}

#[test]
fn a_value_over_its_limit_leaves_the_backend_unchanged() {
    let place = exec_folder();
    let file = place.path().join("notes.db");
    assert_eq!(add_note(&place, "short", "body")["data"], json!({"id": 1}));
    let before = fs::read(&file).unwrap();
    assert_refused(&add_note(&place, &"x".repeat(500), "body"), "arguments.title", 255, 500);
    assert_refused(&add_note(&place, &"é".repeat(128), "body"), "arguments.title", 255, 256);
    let long = add_note(&place, "short", &"b".repeat(10_001));
    assert_refused(&long, "stdin", 10_000, 10_001);
    assert_eq!(long["error"]["message"], "`stdin` has more than 10000 bytes, at most 10000");
    let named = TestFolder::new().with_variable("NOTES_AUTHOR", &"a".repeat(65));
    assert_refused(&add_note(&named, "short", "body"), "arguments.author", 64, 65);
    assert!(!named.path().join("notes.db").exists());
    assert_eq!(fs::read(&file).unwrap(), before);
    // Input of exactly the maximum size is accepted.
    assert_eq!(add_note(&place, &"x".repeat(255), &"b".repeat(10_000))["data"], json!({"id": 2}));
    assert_ne!(fs::read(&file).unwrap(), before);
}

#[test]
fn an_abbreviated_flag_cannot_bypass_its_limit() {
    let place = exec_folder();
    let (long, script) = ("x".repeat(300), manifest_path("notes.py"));
    let add = |arguments: &[&str]| {
        let command = [&[script.as_str(), "notes.db", "add"], arguments].concat();
        exec_with(&place, &manifest_path("notes.toml"), &command, "body")
    };
    for name in ["--titl", "--ti", "--t"] {
        assert_refused(&add(&[name, &long]), "arguments.title", 255, 300);
        assert_refused(&add(&[&format!("{name}={long}")]), "arguments.title", 255, 300);
        // The script itself accepts this abbreviation.
        assert_eq!(add(&[name, "short"])["ok"], true);
    }
    let shown = |arguments: &[&str]| exec_with(&place, &manifest_path("notes.toml"), arguments, "");
    let listed = shown(&[&script, "notes.db", "list"]);
    assert_eq!(listed["data"]["notes"].as_array().unwrap().len(), 3, "{listed}");
}

const PAYLOAD_MANIFEST: &str = r#"
[[arguments]]
name = "data"
flag = ["-d", "--data"]
max_bytes = 100_000
[[arguments.fields]]
path = "title"
max_bytes = 5
[stdin]
max_bytes = 100_000
[[stdin.fields]]
path = "items[*].title"
max_characters = 5
[[stdin.fields]]
path = "items"
max_items = 2
"#;

#[test]
fn payload_fields_are_limited_by_their_paths() {
    let place = folder_with_manifest(PAYLOAD_MANIFEST);
    let given = |data: &str, input: &str| {
        let command = ["sh", "-c", "touch started; cat", "x", "-d", data];
        let answer = exec_with(&place, "tool.toml", &command, input);
        let started = place.path().join("started");
        assert_eq!(started.exists(), answer["ok"] == true, "{answer}");
        let _ = fs::remove_file(started);
        answer
    };
    let fitting = r#"{"items": [{"title": "ééééé"}, {"title": 7}], "title": "not meant"}"#;
    assert_eq!(given(r#"{"title": "12345"}"#, fitting)["data"]["items"][0]["title"], "ééééé");
    assert_refused(&given(r#"{"title": "ééé"}"#, ""), "arguments.data.title", 5, 6);
    // It is unknown which of the two values the tool would use.
    assert_refused(&given(r#"{"title": "123456", "title": "1"}"#, ""), "arguments.data.title", 5, 6);
    // The name is spelled with an escape, and the value has the wrong type.
    assert_refused(&given(r#"{"t\u0069tle": ["1", "123456"]}"#, ""), "arguments.data.title[1]", 5, 6);
    let many = r#"{"items": [{"title": "a"}, {"title": "123456"}, 3]}"#;
    assert_refused(&given("{}", many), "stdin.items[1].title", 5, 6);
    assert_refused(&given("{}", r#"{} {"items": [1, 2, 3, 4]}"#), "stdin.items", 2, 3);
    // Input that cannot be parsed cannot be checked, so it is refused.
    for (data, input, field) in [("@file", "", "arguments.data"), ("{}", "{\"items\": [", "stdin")] {
        let answer = given(data, input);
        assert_eq!((error_codes(&answer), &answer["error"]["field"]), (("malformed", 2), &json!(field)));
        assert_eq!(answer["error"]["phase"], "validation");
    }
}

#[test]
fn oversized_sql_is_not_run() {
    let place = exec_folder();
    let run = |sql: &str| exec_builtin(&place, &["sqlite3", "-json", "a.db", sql], "");
    assert_eq!(run("CREATE TABLE t (a)")["ok"], true);
    let before = fs::read(place.path().join("a.db")).unwrap();
    let insert = format!("INSERT INTO t VALUES ('{}')", "x".repeat(65_536));
    assert_refused(&run(&insert), "arguments.sql", 65_536, insert.len() as u64);
    assert_eq!(fs::read(place.path().join("a.db")).unwrap(), before);
    assert_eq!(run("SELECT count(*) AS n FROM t")["data"], json!([{"n": 0}]));
}

#[test]
fn the_default_argument_limit_applies_to_all_others() {
    let place = folder_with_manifest("max_argument_bytes = 4\n");
    assert_eq!(exec(&place, &["echo", "1234"])["data"]["text"], "1234\n");
    assert_refused(&exec(&place, &["echo", "1", "12345"]), "arguments[1]", 4, 5);
}

#[test]
fn endless_standard_input_is_not_waited_for() {
    let place = folder_with_manifest("timeout_seconds = 0.3\n[stdin]\nmax_bytes = 10\n");
    let mut child =
        place.command(&["exec", "--manifest", "tool.toml", "--", "touch", "started"]).spawn().unwrap();
    let held = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(held);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((error_codes(&answer), output.status.code()), (("timeout", 2), Some(2)));
    assert_eq!(answer["error"]["phase"], "validation");
    assert!(!place.path().join("started").exists());
}

#[test]
fn oversized_standard_input_is_not_forwarded_in_part() {
    let place = folder_with_manifest("[stdin]\nmax_bytes = 10\n").with_variable("TMPDIR", "/nowhere/at/all");
    let answer = super::exec_with(&place, "tool.toml", &["touch", "started"], "x");
    assert_eq!(error_codes(&answer), ("upstream", 3));
    assert!(!place.path().join("started").exists());
}

#[test]
fn another_command_is_refused_and_a_manifest_error_has_its_position() {
    let place = folder_with_manifest("command = [\"git\", \"log\"]\n");
    assert_eq!(error_codes(&exec(&place, &["git", "push"])), ("wrong_command", 2));
    let place = folder_with_manifest("[output]\nkin = \"json\"\n");
    let answer = exec(&place, &["true"]);
    assert_eq!(error_codes(&answer), ("unknown_key", 2));
    assert_eq!(answer["error"]["message"], "tool.toml:2: unknown key `kin` in `output`");
    assert_eq!(answer["error"]["hint"], "Did you mean `kind`?");
    assert_eq!(error_codes(&exec_with(&place, "missing.toml", &["true"], "")), ("unreadable", 2));
    let none = place.run(&["exec", "--manifest", "tool.toml"]);
    assert_eq!(error_codes(&super::checked_envelope(&none)), ("usage", 2));
}
