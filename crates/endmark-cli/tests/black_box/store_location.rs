//! The default location of the store, and how to select another one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::run::TestFolder;

/// Enough lines to be shortened and therefore stored.
const OUTPUT_LINES: usize = 5_000;

/// Caps an output, and returns the handle of the stored original.
fn store_output(place: &TestFolder, more: &[&str]) -> String {
    let output = "one more line of an output\n".repeat(OUTPUT_LINES);
    let run = place.run_with_input(&[&["cap", "--max-chars", "2000", "--json"], more].concat(), output);
    assert_eq!(run.code, 0, "{}", run.errors);
    run.envelope()["data"]["handle"].as_str().unwrap().to_owned()
}

#[test]
fn the_store_is_in_the_users_state_folder_by_default() {
    let place = TestFolder::new();
    store_output(&place, &[]);
    let folder = place.store().parent().unwrap().to_owned();
    assert_eq!(folder, place.path().join(".local/state/endmark"));
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(place.store()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!place.path().join("endmark.db").exists(), "nothing is left in the current folder");

    let state = place.path().join("state");
    let place = TestFolder::new().with_variable("XDG_STATE_HOME", state.to_str().unwrap());
    let handle = store_output(&place, &[]);
    assert!(state.join("endmark/endmark.db").is_file());
    assert!(!place.store().exists());
    // Another working folder uses the same store.
    let elsewhere = tempfile::tempdir().unwrap();
    let read = place.command(&["read", &handle]).current_dir(elsewhere.path()).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn every_command_that_reads_the_store_accepts_another_path() {
    let place = TestFolder::new();
    let other = ["--store", "sqlite:other.db"];
    let handle = store_output(&place, &other);
    assert!(place.path().join("other.db").is_file() && !place.store().exists());
    for command in [&["read", &handle][..], &["log"], &["report"], &["usage"]] {
        let run = place.run(&[command, &other].concat());
        assert_eq!(run.code, 0, "{command:?}: {}", run.errors);
    }
    let doctor = place.run(&["doctor", "--json", "--store", "sqlite:other.db"]);
    let shown = place.path().join("other.db").display().to_string();
    assert!(doctor.output.contains(&format!("`sqlite:{shown}` is intact")), "{}", doctor.output);
}

#[test]
fn a_store_error_names_the_absolute_path_and_the_option() {
    let place = TestFolder::new();
    for command in ["log", "report", "usage"] {
        let run = place.run(&[command, "--store", "sqlite:missing/none.db", "--json"]);
        assert_eq!(run.code, 4);
        let message = run.envelope()["error"]["message"].as_str().unwrap().to_owned();
        let path = place.path().join("missing/none.db");
        assert!(message.contains(&format!("`{}`", path.display())), "{message}");
        assert!(message.contains("--store"), "{message}");
    }
    // Only Endmark's own folder is created, because any other missing folder may be an unmounted volume.
    let run = place.run(&["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:missing/none.db"]);
    assert_eq!(run.code, 4);
    assert!(!place.path().join("missing").exists());
}
