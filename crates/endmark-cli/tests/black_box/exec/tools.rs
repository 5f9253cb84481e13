//! The documented manifests with the real tools. (EN-1, EN-3)

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use serde_json::{Value, json};

use super::{
    error_codes, exec, exec_builtin, exec_folder, exec_with, folder_with_manifest, manifest_path,
    warning_about,
};
use crate::run::TestFolder;

fn git(place: &TestFolder, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(place.path())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn git_log_output_is_text() {
    let place = exec_folder();
    let log = |arguments: &[&str]| exec_builtin(&place, &[&["git", "log"], arguments].concat(), "");
    let none = log(&[]);
    assert_eq!(error_codes(&none), ("git_refused", 3));
    assert!(none["error"]["hint"].as_str().unwrap().contains("not a git repository"));
    git(&place, &["init", "--quiet"]);
    for subject in ["One", "Zwölf Boxkämpfer…"] {
        git(&place, &["commit", "--quiet", "--allow-empty", "-m", subject]);
    }
    let answer = log(&["--format=%s", "-n", "20"]);
    assert_eq!(answer["data"]["text"], "Zwölf Boxkämpfer…\nOne\n");
    assert_eq!((&answer["warnings"], &answer["meta"]["truncated"]), (&json!([]), &json!(false)));
    assert_eq!(log(&["--format=%s", "--grep=One"])["data"]["text"], "One\n");
    assert_eq!(error_codes(&log(&["--grep", &"x".repeat(1025)])), ("FIELD_TOO_LARGE", 2));
    assert_eq!(error_codes(&log(&["--no-such-option"])).0, "git_refused");
}

#[test]
fn jq_output_is_a_list_of_values() {
    let place = exec_folder();
    let jq = |filter: &str, input: &str| exec_builtin(&place, &["jq", filter], input);
    assert_eq!(
        jq(".items[]", "{\"items\": [{\"a\": 1}, \"é\", null]}")["data"],
        json!([{"a": 1}, "é", null])
    );
    assert_eq!(jq("empty", "{}")["data"], json!([]));
    assert_eq!(error_codes(&jq(".[", "{}")), ("bad_filter", 2));
    let raw = |flag: &str| exec_builtin(&place, &["jq", flag, ".a"], r#"{"a": "[no JSON"}"#);
    for flag in ["-r", "-cr", "--raw-output"] {
        assert_eq!(raw(flag)["data"], json!({"text": "[no JSON\n"}), "{flag}");
    }
    assert_eq!(raw("-c")["data"], json!(["[no JSON"]));
    // A value of `--arg` that looks like an option is neither an option nor the filter.
    let named = ["jq", "-n", "--arg", "a", "-r", "[$a]"];
    assert_eq!(exec_builtin(&place, &named, "")["data"], json!([["-r"]]));
    let half = jq(".", "1 {\"a\": ");
    assert_eq!((error_codes(&half).1, &half["data"]), (3, &json!([1])));
}

/// Starts a server that answers each connection with the next of these responses, and closes it.
fn serve_responses(answers: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut client, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap() > 0 {
                head.push(byte[0]);
            }
            client.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

fn http_response(status: &str, length: usize, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

#[test]
fn curl_output_reports_a_cut_by_the_api() {
    let title = "t".repeat(255);
    let items = json!({
        "items": [
            {"title": title, "body": "whole", "body_bytes": 5},
            {"title": "short", "body": "héll", "body_bytes": 500, "body_characters": 480},
            {"title": "the rest is…", "body": "x"},
        ],
        "next": "page-2",
    })
    .to_string();
    let answers = vec![
        http_response("200 OK", items.len(), &items),
        http_response("200 OK", items.len(), &items[..items.len() - 40]),
        http_response("500 Oops", 4, "oops"),
        http_response("200 OK", 5, "plain"),
    ];
    let url = format!("http://{}/", serve_responses(answers));
    let place = exec_folder();
    let curl = |arguments: &[&str]| {
        let command = [&["curl", "--silent", "--show-error", "--noproxy", "*"], arguments].concat();
        exec_with(&place, &manifest_path("curl.toml"), &command, "")
    };
    let answer = curl(&[&url]);
    assert_eq!((&answer["ok"], &answer["meta"]["truncated"]), (&json!(true), &json!(true)));
    assert_eq!(answer["data"]["items"][0]["title"], format!("{title}…[truncated]"));
    assert_eq!(answer["data"]["items"][0]["body"], "whole");
    let reached = warning_about(&answer, "data.items[0].title");
    assert_eq!((&reached["returned_bytes"], &reached["truncated_length"]), (&json!(255), &json!(255)));
    let declared = warning_about(&answer, "data.items[1].body");
    assert_eq!((&declared["returned_bytes"], &declared["truncated_length"]), (&json!(5), &json!(4)));
    assert_eq!((&declared["original_bytes"], &declared["original_length"]), (&json!(500), &json!(480)));
    assert_eq!(answer["data"]["items"][1]["body"], "héll…[truncated]");
    assert_eq!(warning_about(&answer, "data.items")["code"], "FIELD_TRUNCATED");
    assert_eq!(answer["warnings"].as_array().unwrap().len(), 3, "a text may end with an ellipsis");
    let partial = curl(&[&url]);
    assert_eq!((error_codes(&partial), &partial["error"]["actual"]), (("truncated", 1), &json!(18)));
    assert_eq!(error_codes(&curl(&["--fail", &url])), ("http_error", 3));
    assert_eq!(curl(&[&url])["data"], json!({"text": "plain"}));
    assert_eq!(error_codes(&curl(&[&url])), ("not_reachable", 3));
    assert_eq!(error_codes(&curl(&["--data", &"x".repeat(65_537), &url])), ("FIELD_TOO_LARGE", 2));
}

#[test]
fn sqlite3_returns_rows_of_a_database_file() {
    let place = exec_folder();
    let sql = |sql: &str| exec_builtin(&place, &["sqlite3", "-json", "a.db", sql], "");
    assert_eq!(sql("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'é'), (NULL, 'two')")["ok"], true);
    assert_eq!(sql("SELECT * FROM t WHERE 0")["data"], json!([]));
    let text = exec_builtin(&place, &["sqlite3", "a.db", "SELECT * FROM t WHERE 0"], "");
    assert_eq!(text["data"], json!({"text": ""}));
    assert_eq!(sql("SELECT * FROM t")["data"], json!([{"a": 1, "b": "é"}, {"a": null, "b": "two"}]));
    assert_eq!(error_codes(&sql("SELECT * FROM nothing")), ("sql_error", 3));
    let script = "SELECT b FROM t WHERE a = 1;";
    let piped = exec_builtin(&place, &["sqlite3", "-json", "a.db"], script);
    assert_eq!(piped["data"], json!([{"b": "é"}]));
    let before = ["sqlite3", "-json", "-cmd", &"x".repeat(65_537), "a.db", script];
    let before = exec_builtin(&place, &before, "");
    assert_eq!(
        (error_codes(&before), &before["error"]["field"]),
        (("FIELD_TOO_LARGE", 2), &json!("arguments.command"))
    );
    // A command that may change data is not repeated for another page.
    let continue_reading = ["exec", "--cursor", "x", "--", "sqlite3", "a.db", script];
    assert_eq!(error_codes(&place.run(&continue_reading).envelope()), ("usage", 2));
}

#[test]
fn a_silent_cut_by_a_script_is_detected() {
    let place = exec_folder();
    let notes = |arguments: &[&str]| -> Value {
        let script = manifest_path("notes.py");
        let command = [&[script.as_str(), "notes.db"], arguments].concat();
        exec_with(&place, &manifest_path("notes.toml"), &command, "body")
    };
    // Another program stored this title, without the limits.
    let title = "é".repeat(300);
    // A complete title of exactly the maximum length.
    let full = "x".repeat(255);
    for title in [title.as_str(), "short", "third", full.as_str()] {
        let script = manifest_path("notes.py");
        let mut direct = Command::new(script);
        let direct = direct.args(["notes.db", "add", "--title", title]).current_dir(place.path());
        assert!(direct.stdin(std::process::Stdio::null()).output().unwrap().status.success());
    }
    let answer = notes(&["list", "--limit", "2"]);
    assert_eq!(answer["data"]["notes"][0]["title"], format!("{}…[truncated]", "é".repeat(127)));
    let cut = warning_about(&answer, "data.notes[0].title");
    assert_eq!((&cut["returned_bytes"], &cut["original_bytes"]), (&json!(254), &json!(600)));
    assert_eq!((&cut["truncated_length"], &cut["original_length"]), (&json!(127), &json!(300)));
    assert_eq!((&cut["code"], &cut["kind"]), (&json!("FIELD_TRUNCATED"), &json!("TRUNCATION")));
    assert_eq!(warning_about(&answer, "data.notes")["code"], "FIELD_TRUNCATED");
    let all = notes(&["list"]);
    assert_eq!((&all["data"]["next"], all["warnings"].as_array().unwrap().len()), (&Value::Null, 1));
    assert_eq!(all["data"]["notes"][3]["title"], full);
    assert_eq!(notes(&["show", "2"])["data"]["title"], "short");
    assert_eq!(error_codes(&notes(&["show", "9"])), ("no_such_note", 1));
    assert_eq!(error_codes(&notes(&["sing"])), ("bad_usage", 2));
}

#[test]
fn an_unknown_command_gets_the_defaults() {
    let place = exec_folder();
    assert_eq!(exec_builtin(&place, &["printf", "{\"a\": 1}"], "")["data"], json!({"a": 1}));
    // The manifest of `git log` does not apply to other git commands.
    assert_ne!(error_codes(&exec_builtin(&place, &["git", "no-such-command"], "")).0, "wrong_command");
}

#[test]
fn infinity_in_database_output_is_still_data() {
    let place = folder_with_manifest("[output]\nkind = \"json\"\n");
    let rows = r#"[{"id":1,"x":1e999},{"id":2,"x":-1E+400,"y":0.5}]"#;
    for answer in [exec_builtin(&place, &["printf", "%s", rows], ""), exec(&place, &["printf", "%s", rows])] {
        let expected = json!([{"id": 1, "x": "1e999"}, {"id": 2, "x": "-1E+400", "y": 0.5}]);
        assert_eq!((&answer["ok"], &answer["data"]), (&json!(true), &expected));
        let warning = warning_about(&answer, "data");
        assert_eq!(
            (&warning["code"], &answer["meta"]["truncated"]),
            (&json!("NUMBER_AS_TEXT"), &json!(false))
        );
        assert!(warning["message"].as_str().unwrap().starts_with("2 numbers are"), "{warning}");
    }
}
