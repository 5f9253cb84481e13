//! `read`: returns what `cap` omitted, in every supported way (CX-5).

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::run::TestFolder;

/// Returns numbered lines, one of which is an error.
fn log(lines: usize) -> String {
    (1..=lines).fold(String::new(), |log, line| {
        log + &format!("{line}: {}\n", if line == 4_567 { "ERROR gone" } else { "é is well" })
    })
}

/// Caps a text, and returns the handle of the stored original.
fn store_output(place: &TestFolder, value: impl AsRef<[u8]>) -> String {
    let run = place.run_with_input(&["cap", "--json", "--max-chars", "2000"], value);
    run.envelope()["data"]["handle"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_marker_names_a_command_that_reads_the_rest() {
    let place = TestFolder::new();
    let text = log(20_000);
    let capped = place.run_with_input(&["cap", "--max-chars", "2000"], &text);
    assert!(capped.output.chars().count() <= 2_000);
    let first = capped.output.lines().next().unwrap();
    let way = first.split_once("left out …] endmark ").unwrap().1;
    let arguments: Vec<&str> = way.split(' ').collect();
    let mut whole = String::new();
    for page in 1.. {
        let run = place.run(&[&arguments[..], &["--page", &page.to_string()]].concat());
        assert_eq!(run.code, if run.output.is_empty() { 2 } else { 0 }, "{}", run.errors);
        if run.output.is_empty() {
            break;
        }
        assert!(run.output.chars().count() <= 200_000);
        assert!(run.output.ends_with('\n'), "a page ends with a line");
        whole += &run.output;
    }
    assert_eq!(whole, text);
    let mode = std::fs::metadata(place.store()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn lines_bytes_and_patterns_are_found() {
    let place = TestFolder::new();
    let text = log(20_000);
    let handle = store_output(&place, &text);
    let read = |arguments: &[&str]| place.run(&[&["read", &handle], arguments].concat());
    let line = |from: usize, to: usize| {
        text.lines().skip(from - 1).take(to + 1 - from).fold(String::new(), |lines, line| lines + line + "\n")
    };
    assert_eq!(read(&["--lines", "4566:4568"]).output, line(4_566, 4_568));
    assert_eq!(read(&["--lines", "19999:"]).output, line(19_999, 20_000));
    assert_eq!(read(&["--lines", ":2"]).output, line(1, 2));
    assert_eq!(read(&["--bytes", "0:8"]).output.as_bytes(), &text.as_bytes()[..8]);
    assert_eq!(read(&["--grep", "ERR[O]R"]).output, "4567:4567: ERROR gone\n");
    let found = read(&["--grep", "is well", "--max-chars", "1000", "--json"]).envelope();
    assert_eq!(found["data"]["matches"], 19_999);
    let shown = found["data"]["text"].as_str().unwrap();
    assert!(shown.chars().count() <= 1_000 && shown.contains(&handle), "{shown}");
    let lines = read(&["--lines", "1:20000", "--max-chars", "1000"]).output;
    assert!(lines.chars().count() <= 1_000 && lines.contains("4567: ERROR gone\n"), "{lines}");
    assert_eq!(read(&["--grep", "nowhere"]).code, 1);
    for bad in [
        ["--grep", "("],
        ["--lines", "7:3"],
        ["--lines", "0:3"],
        ["--lines", "20001:"],
        ["--lines", "x"],
        ["--bytes", "0:300001"],
        ["--bytes", "9999999:"],
        ["--page", "0"],
        ["--page", "99"],
        ["--pointer", "/a"],
    ] {
        let run = read(&bad);
        assert_eq!((run.code, run.output.as_str()), (2, ""), "{bad:?}: {}", run.errors);
        assert!(run.errors.starts_with("error: "), "{}", run.errors);
    }
}

#[test]
fn a_pointer_reads_a_part_of_a_document() {
    let place = TestFolder::new();
    let rows: Vec<Value> = (0..3_000).map(|id| json!({"id": id, "body": format!("row {id}")})).collect();
    let handle = store_output(&place, json!({"rows": rows, "a/b": [1.50]}).to_string());
    let read = |arguments: &[&str]| place.run(&[&["read", &handle], arguments].concat());
    assert_eq!(read(&["--pointer", "/rows/2718"]).output, r#"{"id":2718,"body":"row 2718"}"#);
    assert_eq!(read(&["--pointer", "/a~1b/0"]).output, "1.5");
    let rows = read(&["--pointer", "/rows", "--json"]).envelope();
    assert_eq!(rows["data"]["format"], "json");
    let shown: Value = serde_json::from_str(rows["data"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(shown[500]["endmark_omitted"], json!({"items": 2500, "of": 3000, "handle": handle}));
    for bad in ["rows", "/rows/3000", "/nope", "/rows/x", "/~"] {
        assert_eq!(read(&["--pointer", bad]).code, 2, "{bad}");
    }
}

#[test]
fn binary_output_is_returned_byte_for_byte() {
    let place = TestFolder::new();
    let bytes: Vec<u8> = (0..50_000_u32).map(|number| u8::try_from(number % 251).unwrap()).collect();
    let handle = store_output(&place, &bytes);
    let output = place.command(&["read", &handle, "--bytes", "100:40000"]).output().unwrap();
    assert_eq!(output.stdout, &bytes[100..40_000]);
    let envelope = place.run(&["read", &handle, "--bytes", "200:204", "--json"]).envelope();
    assert_eq!(
        (&envelope["data"]["base64"], &envelope["data"]["format"]),
        (&json!("yMnKyw=="), &json!("binary"))
    );

    // Output that is not UTF-8 is refused but stored, because a pipe cannot be read again.
    let refused = place.run_with_input(&["cap", "--format", "text"], b"a\xFFb");
    assert_eq!(refused.code, 2);
    let handle = refused.errors.split("endmark read ").nth(1).unwrap().trim_end_matches(['`', '.', '\n']);
    let output = place.command(&["read", handle]).output().unwrap();
    assert_eq!(output.stdout, b"a\xFFb");
}

#[test]
fn unknown_foreign_and_expired_handles_are_refused() {
    let place = TestFolder::new();
    let handle = store_output(&place, log(2_000));
    assert_eq!(place.run(&["read", &handle]).code, 0);
    let other = "h0123456789abcdef0123456789abcdef";
    let refused = |handle: &str| {
        let run = place.run(&["read", handle, "--json"]);
        assert_eq!(run.code, 2, "{}", run.output);
        let error = run.envelope()["error"].clone();
        (error["code"].clone(), error["message"].as_str().unwrap().replace(handle, ""))
    };
    let unknown = refused(other);
    assert_eq!(unknown.0, "unknown_handle");
    assert_eq!(refused("7"), unknown);
    let change = |sql: &str| {
        let changed = std::process::Command::new("sqlite3").arg(place.store()).arg(sql).status();
        assert!(changed.unwrap().success());
    };
    change("UPDATE outputs SET owner = 'somebody'");
    assert_eq!(refused(&handle), unknown);
    // A user who can read the file can also read the outputs that a gateway stores for its clients.
    change("UPDATE outputs SET owner = 'client:0123456789abcdef'");
    assert_eq!(place.run(&["read", &handle]).code, 0);
    change("UPDATE outputs SET owner = 'local', last_used = last_used - 40 * 86400");
    assert_eq!(refused(&handle).0, "expired_handle");
    change("UPDATE outputs SET keep_days = 0");
    assert_eq!(place.run(&["read", &handle]).code, 0);
    let empty = TestFolder::new();
    assert_eq!(empty.run(&["read", other]).code, 4);
    assert!(!empty.path().join(".local").exists(), "a reader creates no store");
}

#[test]
fn only_shortened_output_is_stored_and_a_store_failure_is_reported() {
    let place = TestFolder::new();
    assert_eq!(store_output(&place, "all is well\n"), "");
    assert!(!place.store().exists());
    // This output exceeds the memory buffer, but not the storage limit.
    let large = "x\n".repeat(800_000);
    let run = place.run_with_input(&["cap", "--max-chars", "2000000"], &large);
    assert_eq!(run.output, large);
    let kept = std::process::Command::new("sqlite3")
        .args([place.store().to_str().unwrap(), "SELECT count(*) FROM outputs"])
        .output()
        .unwrap();
    assert_eq!(kept.stdout, b"0\n");

    let broken = TestFolder::new()
        .with_variable("ENDMARK_STORE", "sqlite:broken.db")
        .with_file("broken.db", "this is no database, and long enough to be seen as none".repeat(99));
    let run = broken.run_with_input(&["cap", "--max-chars", "2000"], log(20_000));
    assert_eq!(run.code, 0);
    assert!(
        run.output.contains("4567: ERROR gone\n") && !run.output.contains("endmark read"),
        "{}",
        run.output
    );
    assert!(run.errors.contains("warning: the full output is not kept: "), "{}", run.errors);
}

#[test]
fn a_batch_keeps_each_output_that_it_shortens() {
    let place = TestFolder::new();
    let text = log(3_000);
    let input = format!(
        "{}\n{}\n",
        json!({"id": 1, "text": text, "max_chars": 1000}),
        json!({"id": 2, "text": "small"})
    );
    let run = place.run_with_input(&["cap", "--batch"], input);
    let answers: Vec<Value> = run.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let handle = answers[0]["handle"].as_str().unwrap();
    assert_eq!(answers[0]["warnings"][0]["handle"], handle);
    assert_eq!(answers[1]["handle"], Value::Null);
    assert_eq!(place.run(&["read", handle]).output, text);
}

#[test]
fn kept_outputs_stay_within_their_limit_and_removals_are_reported() {
    let place = TestFolder::new().with_file("endmark.toml", "[store_policy]\noutputs_max_bytes = 40_000\n");
    // The lines are almost incompressible.
    let value = |seed: u64| {
        let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let words = std::iter::successors(Some(seed), next).take(3_000);
        words.fold(String::new(), |text, word| text + &format!("{word:016x}\n"))
    };
    let first = store_output(&place, value(1));
    assert!(!first.is_empty());
    // All outputs were used within the last hour, so the new output is shortened but not stored.
    let run = place.run_with_input(&["cap", "--json", "--max-chars", "2000"], value(2));
    let answer = run.envelope();
    assert_eq!((run.code, &answer["data"]["handle"]), (0, &Value::Null), "{answer}");
    assert!(answer["warnings"].to_string().contains("store_policy.outputs_max_bytes"), "{answer}");
    let sql = "UPDATE outputs SET last_used = last_used - 4000";
    let changed = std::process::Command::new("sqlite3").arg(place.store()).arg(sql).status().unwrap();
    assert!(changed.success());
    let second = store_output(&place, value(3));
    assert_eq!(place.run(&["read", &second]).code, 0);
    let removed = place.run(&["read", &first, "--json"]);
    assert_eq!((removed.code, &removed.envelope()["error"]["code"]), (2, &json!("removed_handle")));
    assert!(removed.output.contains("store_policy.outputs_max_bytes"), "{}", removed.output);
    let unknown = place.run(&["read", "h00000000000000000000000000000000", "--json"]);
    assert_eq!(unknown.envelope()["error"]["code"], "unknown_handle");
}
