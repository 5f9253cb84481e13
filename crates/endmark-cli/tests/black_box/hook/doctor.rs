//! `doctor --hooks`: tests every installed hook with a canary.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::AGENTS;
use crate::run::TestFolder;

fn place() -> TestFolder {
    TestFolder::new().with_variable("PATH", "/usr/bin:/bin")
}

fn checks(place: &TestFolder) -> Vec<(String, bool, String)> {
    let envelope = place.run(&["doctor", "--hooks", "--json"]).envelope();
    let check = |check: &Value| {
        let text = |key: &str| check[key].as_str().unwrap().to_owned();
        (text("name"), check["ok"].as_bool().unwrap(), text("message"))
    };
    envelope["data"]["checks"].as_array().unwrap().iter().map(check).collect()
}

#[test]
fn doctor_passes_every_installed_hook_and_leaves_nothing() {
    let place = place();
    for agent in AGENTS {
        let installed = place.run(&[
            "hook",
            "install",
            "--agent",
            agent,
            "tool",
            "stop",
            "--artifact",
            "report.md",
            "--yes",
        ]);
        assert_eq!(installed.code, 0, "{}", installed.errors);
    }
    place.run(&["hook", "install", "--agent", "claude", "--project", "compact"]);
    let found = checks(&place);
    assert!(found.iter().all(|(_, is_ok, _)| *is_ok), "{found:?}");
    let count = |kind: &str| found.iter().filter(|(name, ..)| name.ends_with(kind)).count();
    assert_eq!(
        (count(".tool"), count(".stop"), count(".compact"), count(".version")),
        (3, 3, 2, 3),
        "{found:?}"
    );
    assert!(found.iter().any(|(_, _, message)| message.contains("and the error row")));
    // The report names the criteria that no canary can test.
    assert!(
        found.iter().any(|(name, _, message)| name == "hooks.codex.note" && message.contains("trust")),
        "{found:?}"
    );
    assert!(!place.path().join(".local").exists());
}

#[test]
fn a_failing_hook_is_reported_with_the_reason() {
    let none = checks(&place());
    assert_eq!(none.len(), 1);
    assert!(!none[0].1 && none[0].2.contains("no hook of Endmark is installed"), "{none:?}");

    let place = place().with_file("gone.md", "---\nsuccessCriteria:\n  minLines: 3\n---\n");
    place.run(&[
        "hook",
        "install",
        "--agent",
        "claude",
        "tool",
        "stop",
        "--artifact",
        "a.md",
        "--template",
        "gone.md",
        "--yes",
    ]);
    fs::remove_file(place.path().join("gone.md")).unwrap();
    let path = place.path().join(".claude/settings.json");
    let settings = fs::read_to_string(&path).unwrap();
    let program = env!("CARGO_BIN_EXE_endmark");
    fs::write(&path, settings.replace(&format!("{program} hook tool"), "/gone/endmark hook tool")).unwrap();
    let found = checks(&place);
    let reason = |kind: &str| {
        let (_, is_ok, message) = found.iter().find(|(name, ..)| name.ends_with(kind)).unwrap();
        assert!(!is_ok, "{message}");
        message.clone()
    };
    assert!(reason(".tool").contains("ends with exit status: 127"), "{found:?}");
    assert!(reason(".stop").contains("gone.md"), "{found:?}");
}

#[test]
fn a_version_that_ignores_its_hooks_is_named() {
    let place = TestFolder::new();
    let folder = place.path().join("bin");
    fs::create_dir(&folder).unwrap();
    let claude = folder.join("claude");
    fs::write(&claude, "#!/bin/sh\necho '2.1.170 (Claude Code)'\n").unwrap();
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
    let place = place.with_variable("PATH", &format!("{}:/usr/bin:/bin", folder.display()));
    place.run(&["hook", "install", "--agent", "claude"]);
    let found = checks(&place);
    let (_, is_ok, message) = found.iter().find(|(name, ..)| name.ends_with(".version")).unwrap();
    assert!(!is_ok && message.contains("2.1.170 ignores"), "{message}");
}
