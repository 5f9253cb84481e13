//! `exec --cap`: caps a command's output in the envelope, and stores the full output. (CX-5, EN-2)

use serde_json::{Value, json};

use super::{checked_envelope, error_codes, exec_folder, folder_with_manifest, warning_about};
use crate::run::TestFolder;

/// 200,000 lines, which exceed the memory buffer. One of them is an error.
const LOG_SCRIPT: &str = "awk 'BEGIN { for (i = 1; i <= 200000; i++) print i, (i == 77777 ? \"ERROR disk gone\" : \"all is well here\") }'";

fn exec_capped(place: &TestFolder, limits: &[&str], command: &[&str]) -> Value {
    let answer = checked_envelope(&place.run(&[&["exec", "--cap"], limits, &["--"], command].concat()));
    assert!(answer["data"].to_string().len() < 30_000, "{}", answer["data"].to_string().len());
    answer
}

fn read(place: &TestFolder, handle: &Value, part: &[&str]) -> String {
    place.run(&[&["read", handle.as_str().unwrap()], part].concat()).output
}

#[test]
fn a_capped_log_keeps_its_error_and_stays_readable() {
    let place = exec_folder();
    let answer = exec_capped(&place, &["--max-chars", "5000"], &["sh", "-c", LOG_SCRIPT]);
    assert_eq!((&answer["ok"], &answer["meta"]["truncated"]), (&json!(true), &json!(true)));
    let text = answer["data"]["text"].as_str().unwrap();
    assert!(text.chars().count() <= 5_000);
    assert!(
        text.contains("\n77777 ERROR disk gone\n") && text.ends_with("\n200000 all is well here\n"),
        "{text}"
    );
    let cut = warning_about(&answer, "data.text");
    assert_eq!(answer["warnings"].as_array().unwrap().len(), 1, "{}", answer["warnings"]);
    assert!(cut["original_bytes"].as_u64().unwrap() > 4 << 20);
    let handle = &cut["handle"];
    assert!(
        text.lines()
            .next()
            .unwrap()
            .ends_with(&format!("left out …] endmark read {}", handle.as_str().unwrap()))
    );
    assert_eq!(
        read(&place, handle, &["--lines", "100000:100001"]),
        "100000 all is well here\n100001 all is well here\n"
    );
    assert_eq!(read(&place, handle, &["--grep", "disk"]), "77777:77777 ERROR disk gone\n");
}

#[test]
fn capped_json_stays_json_and_is_read_by_pointer() {
    let place = exec_folder();
    let script = "import json; print(json.dumps({'rows': [{'id': i, 'state': 'lost' if i == 4321 else 'ok'} for i in range(9000)]}))";
    let answer = exec_capped(&place, &["--max-items", "40"], &["python3", "-c", script]);
    let rows = answer["data"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 41);
    assert!(rows.contains(&json!({"id": 4321, "state": "lost"})));
    let handle = &warning_about(&answer, "data.rows")["handle"];
    assert_eq!(rows[40]["endmark_omitted"], json!({"items": 8960, "of": 9000, "handle": handle}));
    assert_eq!(read(&place, handle, &["--pointer", "/rows/8000"]), r#"{"id": 8000, "state": "ok"}"#);
    // The output exceeds the memory buffer.
    let lines = script
        .replace("print(json.dumps({'rows': [", "[print(json.dumps(")
        .replace(" for i in range(9000)]}))", ")) for i in range(200000)]");
    let answer = exec_capped(&place, &["--max-items", "40"], &["python3", "-c", &lines]);
    let rows = answer["data"].as_array().unwrap();
    assert!(rows.len() == 41 && rows.contains(&json!({"id": 4321, "state": "lost"})), "{rows:?}");
    assert_eq!(rows[40]["endmark_omitted"]["of"], 200_000);
    // A long text in the output is shortened and reported once.
    let long = "import json; print(json.dumps({'a': 'x' * 100000, 'b': 1}))";
    let answer = exec_capped(&place, &["--max-chars", "2000"], &["python3", "-c", long]);
    assert_eq!(answer["data"]["b"], 1);
    assert!(answer["data"]["a"].as_str().unwrap().ends_with(" left out …]"), "{answer}");
    assert_eq!(answer["warnings"].as_array().unwrap().len(), 1, "{answer}");
    assert!(warning_about(&answer, "data.a")["handle"].is_string());
}

#[test]
fn a_failure_is_kept_and_small_output_is_unchanged() {
    let place = exec_folder();
    let small = exec_capped(&place, &[], &["sh", "-c", "echo well; exit 3"]);
    assert_eq!((error_codes(&small), &small["data"]), (("command_failed", 3), &json!({"text": "well\n"})));
    assert!(!place.store().exists());
    let answer = exec_capped(&place, &["--max-bytes", "1000"], &["sh", "-c", "seq 9000; exit 3"]);
    assert_eq!(error_codes(&answer), ("command_failed", 3));
    assert!(
        read(&place, &warning_about(&answer, "data.text")["handle"], &["--lines", "8888:8888"]) == "8888\n"
    );
    // Truncated JSON is capped, and still reported as truncated.
    let cut = folder_with_manifest("[output]\nkind = \"json\"\n");
    let script = "printf '['; seq 9000 | tr '\\n' ','";
    let limits = ["--max-items", "40", "--max-chars", "5000"];
    let arguments = [&["exec", "--manifest", "tool.toml", "--cap"], &limits[..], &["--", "sh", "-c", script]];
    let arguments = arguments.concat();
    let answer = checked_envelope(&cut.run(&arguments));
    assert_eq!(error_codes(&answer), ("truncated", 1));
    assert_eq!(answer["data"].as_array().unwrap().len(), 41);
    for bad in [["--max-chars", "10", "--cap"], ["--max-chars", "1000", "--quiet"]] {
        let refused =
            checked_envelope(&place.run(&[&["exec"], &bad[..], &["--", "touch", "started"]].concat()));
        assert_eq!(refused["error"]["exit_code"], 2, "{refused}");
    }
    assert!(!place.path().join("started").exists());
    let broken = super::exec_folder()
        .with_variable("ENDMARK_STORE", "sqlite:broken.db")
        .with_file("broken.db", "this is no database, and long enough to be seen as none".repeat(99));
    let answer = exec_capped(&broken, &["--max-chars", "1000"], &["seq", "9000"]);
    assert_eq!((&answer["ok"], &warning_about(&answer, "data.text")["handle"]), (&json!(true), &Value::Null));
    assert!(answer["warnings"].to_string().contains("NOT_KEPT"), "{answer}");
}

#[test]
fn the_output_of_a_stopped_command_is_capped_with_one_warning() {
    let place = exec_folder();
    for (limit, most) in [("--max-chars", "2000"), ("--max-bytes", "2000"), ("--max-tokens", "500")] {
        let answer = exec_capped(&place, &[limit, most], &["sh", "-c", "seq 90000; kill -9 $$"]);
        let text = answer["data"]["text"].as_str().unwrap();
        assert!(text.ends_with("90000\n…[truncated]"), "{text}");
        let counted = place.run_with_input(&["cap", "--no-store", limit, most], text);
        assert_eq!(counted.output, text, "{limit}");
        assert_eq!(answer["warnings"].as_array().unwrap().len(), 1, "{}", answer["warnings"]);
        let cut = warning_about(&answer, "data.text");
        assert!(cut["message"].as_str().unwrap().contains("made to end"), "{cut}");
        assert!(cut["handle"].is_string() && cut["original_bytes"] == 528_894, "{cut}");
    }
}

#[test]
fn an_output_without_a_stored_copy_is_not_capped() {
    let place = exec_folder().with_variable("TMPDIR", "/nowhere");
    let answer =
        checked_envelope(&place.run(&["exec", "--cap", "--max-chars", "2000", "--", "sh", "-c", LOG_SCRIPT]));
    let warnings = answer["warnings"].as_array().unwrap();
    let found = warnings.iter().find(|warning| warning["code"] == "NOT_CAPPED").unwrap();
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("set TMPDIR to a folder") && message.contains("endmark cap"), "{message}");
    assert!(answer["data"]["text"].as_str().unwrap().starts_with("1 all is well here\n"));
    // Output that fits into the memory buffer needs no such warning.
    let small = exec_capped(&place, &["--max-chars", "2000"], &["seq", "9000"]);
    assert!(!small["warnings"].to_string().contains("NOT_CAPPED"), "{small}");
}
