//! Lists are returned in pages, and no item is lost between two pages. (EN-5)

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tracker::Tracker;

fn titles(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_issue_appears_once_while_issues_are_added() {
    let tracker = Tracker::new();
    for number in 0..7 {
        tracker.data(["create", "--title", &format!("issue {number}")]);
    }
    let mut seen = Vec::new();
    let mut page = tracker.data(["list", "--items", "3"]);
    while let Some(cursor) = page["next_cursor"].as_str() {
        seen.extend(titles(&page));
        if seen.len() == 3 {
            tracker.data(["create", "--title", "issue 7"]);
        }
        page = tracker.data(["list", "--items", "3", "--cursor", cursor]);
    }
    seen.extend(titles(&page));
    let expected: Vec<String> = (0..8).map(|number| format!("issue {number}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
}

#[test]
fn a_foreign_cursor_is_rejected_with_a_hint() {
    let tracker = Tracker::new();
    for _ in 0..2 {
        tracker.data(["create", "--title", "t", "--label", "bug"]);
    }
    let page = tracker.data(["list", "--items", "1"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    for (arguments, message) in [
        (["--cursor", "CAUQAA", "--items", "1"], "not made by this program"),
        (["--cursor", &cursor[..cursor.len() - 2], "--items", "1"], "damaged"),
        (["--cursor", cursor, "--label", "bug"], "other filters"),
    ] {
        let run = tracker.run([&["list"], arguments.as_slice()].concat());
        let error = &run.envelope()["error"];
        assert_eq!((run.code, &error["code"]), (2, &"INVALID_CURSOR".into()));
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("next_cursor"));
    }
}
