//! Values that the SQLite file already cut are reported. (EN-2, EN-3)

use serde_json::json;

use crate::tracker::Tracker;

#[test]
fn a_title_cut_at_its_column_is_reported_as_cut() {
    let tracker = Tracker::new();
    tracker.data(["create", "--title", "whole"]);
    let cut = "ü".repeat(127) + "x";
    let insert = "INSERT INTO issues (title, labels) VALUES (?1, '[]')";
    tracker.sqlite().execute(insert, [&cut]).unwrap();

    let envelope = tracker.run(["show", "--number", "2"]).envelope();
    assert_eq!(envelope["meta"]["truncated"], true);
    assert_eq!(envelope["data"]["title"], format!("{cut}…[truncated]"));
    assert_eq!(
        envelope["warnings"],
        json!([{
            "code": "FIELD_TRUNCATED", "kind": "TRUNCATION", "message": "it is as large as the backend can keep",
            "field": "data.title", "returned_bytes": 255, "truncated_length": 128,
        }])
    );
    let whole = tracker.run(["show", "--number", "1"]).envelope();
    assert_eq!((&whole["meta"]["truncated"], &whole["warnings"]), (&json!(false), &json!([])));
}

#[test]
fn an_excerpt_reports_the_original_size_in_bytes_and_characters() {
    let tracker = Tracker::new();
    tracker.data(["create", "--title", "long", "--body", &"ü".repeat(300)]);
    tracker.data(["create", "--title", "short", "--body", "ü"]);
    let envelope = tracker.run(["list"]).envelope();
    assert_eq!(envelope["data"]["items"][0]["excerpt"], format!("{}…[truncated]", "ü".repeat(40)));
    assert_eq!(envelope["data"]["items"][1]["excerpt"], "ü");
    assert_eq!(
        envelope["warnings"],
        json!([{
            "code": "FIELD_TRUNCATED", "kind": "TRUNCATION", "message": "the backend returned less than it declares",
            "field": "data.items[0].excerpt", "returned_bytes": 80, "truncated_length": 40,
            "original_bytes": 600, "original_length": 300,
        }])
    );
}

#[test]
fn a_body_that_ends_in_a_marker_is_reported_as_cut() {
    let tracker = Tracker::new();
    tracker.data(["create", "--title", "t", "--body", "The harbour was (output truncated)"]);
    let envelope = tracker.run(["show", "--number", "1"]).envelope();
    assert_eq!(envelope["data"]["body"], "The harbour was (output truncated)");
    assert_eq!(envelope["warnings"][0]["field"], "data.body");
}
