//! A value that is too large is rejected before anything is written. (EN-4)

use std::fs;

use crate::tracker::Tracker;

/// Returns the name of each file in the folder and a hash of its bytes.
fn fingerprint(tracker: &Tracker) -> Vec<(String, u64)> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut files: Vec<(String, u64)> = fs::read_dir(tracker.folder())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mut hasher = DefaultHasher::new();
            fs::read(entry.path()).unwrap().hash(&mut hasher);
            (entry.file_name().into_string().unwrap(), hasher.finish())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_field_over_255_bytes_is_refused_and_the_file_is_unchanged() {
    let tracker = Tracker::new();
    tracker.data(["create", "--title", "The first"]);
    let before = fingerprint(&tracker);
    let run = tracker.run(["create", "--title", &"x".repeat(500)]);
    assert_eq!(run.code, 2);
    let error = &run.envelope()["error"];
    assert_eq!(error["code"], "FIELD_TOO_LARGE");
    assert_eq!(error["phase"], "validation");
    assert_eq!(error["field"], "title");
    assert_eq!((&error["limit"], &error["actual"]), (&255.into(), &500.into()));
    assert_eq!(fingerprint(&tracker), before);
    // The same command with a shorter value changes the file.
    tracker.data(["create", "--title", &"x".repeat(255)]);
    assert_ne!(fingerprint(&tracker), before);
}

#[test]
fn a_missing_file_is_not_created() {
    let tracker = Tracker::new();
    assert_eq!(tracker.run(["create", "--title", &"x".repeat(500)]).code, 2);
    assert!(!tracker.file().exists());
}

#[test]
fn limits_count_bytes_and_name_list_items() {
    let tracker = Tracker::new();
    assert_eq!(tracker.run(["create", "--title", &"ü".repeat(127)]).code, 0);
    let run = tracker.run(["create", "--title", &"ü".repeat(128)]);
    assert_eq!(run.envelope()["error"]["actual"], 256);
    let run = tracker.run(["create", "--title", "t", "--label", "bug", "--label", &"l".repeat(51)]);
    assert_eq!(run.envelope()["error"]["field"], "labels[1]");
    let labels: Vec<&str> = std::iter::repeat_n(["--label", "l"], 11).flatten().collect();
    let run = tracker.run([&["create", "--title", "t"], labels.as_slice()].concat());
    assert_eq!(run.envelope()["error"]["message"], "`labels` has 11 items, at most 10");
}
