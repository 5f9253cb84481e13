//! `hook install`: adds hooks to an agent's settings next to existing ones, and removes them.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::AGENTS;
use crate::run::TestFolder;

const EXISTING_SETTINGS: [(&str, &str); 3] = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
];

fn settings_file(agent: &str) -> &'static str {
    EXISTING_SETTINGS.iter().find(|(name, _)| *name == agent).unwrap().1
}

fn settings_text(place: &TestFolder, agent: &str) -> String {
    fs::read_to_string(place.path().join(settings_file(agent))).unwrap()
}

fn folder_with_settings(agent: &str, text: &str) -> TestFolder {
    let place = TestFolder::new();
    fs::create_dir_all(place.path().join(settings_file(agent)).parent().unwrap()).unwrap();
    place.with_file(settings_file(agent), text)
}

const HOOK_EVENTS: [(&str, [&str; 2]); 3] = [
    ("claude", ["PostToolUse", "Stop"]),
    ("codex", ["PostToolUse", "Stop"]),
    ("gemini", ["AfterTool", "AfterAgent"]),
];

#[test]
fn a_stop_hook_with_unreadable_criteria_is_not_installed() {
    let place = folder_with_settings("claude", "{}\n");
    let install =
        ["hook", "install", "--agent", "claude", "stop", "--artifact", "report.md", "--template", "none.md"];
    let ran = place.run(&install);
    assert_eq!((ran.code, settings_text(&place, "claude").as_str()), (2, "{}\n"), "{}", ran.errors);
    assert!(ran.errors.contains("none.md"), "{}", ran.errors);
}

#[test]
fn a_global_stop_hook_is_written_only_after_consent() {
    let place = TestFolder::new();
    let install = ["hook", "install", "--agent", "claude", "stop", "--artifact", "report.md"];
    let ran = place.run(&install);
    assert!(ran.code == 2 && ran.errors.contains("in every project"), "{}", ran.errors);
    assert!(ran.errors.contains("--project") && !place.path().join(".claude").exists(), "{}", ran.errors);
    assert_eq!(place.run(&[&install[..], &["--yes"]].concat()).code, 0);
    assert_eq!(place.run(&["hook", "install", "--agent", "claude", "--remove"]).code, 0);
    assert_eq!(place.run(&[&install[..], &["--project"]].concat()).code, 0);
}

#[test]
fn uninstalling_restores_the_file_byte_for_byte() {
    for (agent, [tool, stop]) in HOOK_EVENTS {
        let others = format!(
            "{{\n  // mine\n  \"theme\": \"dark\",\n  \"hooks\": {{\n    \"{tool}\": [\n      {{\n        \"matcher\": \"x\",\n        \
             \"hooks\": [{{\"type\": \"command\", \"command\": \"lint\"}}]\n      }}\n    ]\n  }}\n}}\n"
        );
        for found in [others.as_str(), "{\n  \"theme\": \"dark\"\n}\n"] {
            let place = folder_with_settings(agent, found);
            let install =
                ["hook", "install", "--agent", agent, "tool", "stop", "--artifact", "the report.md", "--yes"];
            let written = place.run(&install);
            assert_eq!(written.code, 0, "{}", written.errors);
            assert!(written.output.contains(&format!("+ hooks.{tool}: ")), "{}", written.output);
            let after = settings_text(&place, agent);
            assert!(
                after.contains(found.trim_start_matches('{').lines().nth(1).unwrap_or_default()),
                "{after}"
            );
            let bare: String = after.lines().filter(|line| !line.contains("//")).collect();
            let settings: Value = serde_json::from_str(&bare).unwrap();
            let ours = |event: &str| {
                let entries = settings["hooks"][event].as_array().unwrap();
                entries.last().unwrap()["hooks"][0]["command"].as_str().unwrap().to_owned()
            };
            assert!(ours(tool).ends_with(&format!("endmark hook tool --agent {agent}")), "{}", ours(tool));
            assert!(ours(stop).contains("--artifact 'the report.md' --attempts 3"), "{}", ours(stop));

            let again = place.run(&[&install[..], &["--json"]].concat()).envelope();
            assert_eq!(
                (&again["data"]["action"], &again["data"]["changes"]),
                (&json!("unchanged"), &json!([]))
            );
            assert_eq!(settings_text(&place, agent), after);

            let removed = place.run(&["hook", "install", "--agent", agent, "--remove"]);
            assert_eq!(removed.code, 0, "{}", removed.errors);
            assert_eq!(settings_text(&place, agent), found, "{agent}");
        }
    }
}

#[test]
fn a_one_line_file_keeps_its_value() {
    let found = "{\"hooks\":{\"Other\":[]},\"theme\":\"dark\"}";
    let place = folder_with_settings("gemini", found);
    place.run(&["hook", "install", "--agent", "gemini"]);
    place.run(&["hook", "install", "--agent", "gemini", "--remove"]);
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&settings_text(&place, "gemini")), value(found));
}

#[test]
fn a_created_file_is_removed_and_a_project_has_its_own() {
    for agent in AGENTS {
        let place = TestFolder::new();
        let install = ["hook", "install", "--agent", agent, "--project"];
        let shown = place.run(&[&install[..], &["--dry-run"]].concat());
        assert!(shown.output.contains("Would write to"), "{}", shown.output);
        assert!(!place.path().join(settings_file(agent)).exists());
        assert_eq!(place.run(&install).code, 0);
        assert!(place.path().join(settings_file(agent)).exists());
        assert_eq!(place.run(&[&install[..], &["--remove"]].concat()).code, 0);
        assert!(!place.path().join(settings_file(agent)).exists(), "{agent}");
    }
}

#[test]
fn new_arguments_replace_the_hook_and_each_kind_is_removed_alone() {
    let place = TestFolder::new();
    let installed =
        |place: &TestFolder| -> Value { serde_json::from_str(&settings_text(place, "claude")).unwrap() };
    place.run(&["hook", "install", "--agent", "claude", "tool", "compact"]);
    let replaced = place.run(&["hook", "install", "--agent", "claude", "tool", "--max-chars", "9000"]);
    assert!(
        replaced.output.contains("  - hooks.PostToolUse")
            && replaced.output.contains("  + hooks.PostToolUse")
    );
    let settings = installed(&place);
    let entries = settings["hooks"]["PostToolUse"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert!(entries[0]["hooks"][0]["command"].as_str().unwrap().ends_with("--max-chars 9000"));
    place.run(&["hook", "install", "--agent", "claude", "tool", "--remove"]);
    let names: Vec<String> = installed(&place)["hooks"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["PreCompact", "SessionStart"]);
}

#[test]
fn a_renamed_program_recognises_its_own_entries() {
    for name in ["endmark-dev", "the new endmark's"] {
        let place = TestFolder::new();
        let program = place.path().join(name);
        fs::copy(env!("CARGO_BIN_EXE_endmark"), &program).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            command.args(["hook", "install", "--agent", "claude"]).args(arguments).env_clear();
            let output = command.env("HOME", place.path()).current_dir(place.path()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        run(&["tool", "compact", "--findings"]);
        run(&["tool", "--findings=audit.*"]);
        let settings: Value = serde_json::from_str(&settings_text(&place, "claude")).unwrap();
        for event in ["PostToolUse", "PreCompact", "SubagentStart", "SubagentStop"] {
            assert_eq!(settings["hooks"][event].as_array().unwrap().len(), 1, "{settings}");
        }
        run(&["--remove"]);
        assert!(!place.path().join(settings_file("claude")).exists());
    }
}

#[test]
fn foreign_entries_beside_our_hook_are_kept() {
    let place = TestFolder::new();
    place.run(&["hook", "install", "--agent", "claude"]);
    let lint = json!({"type": "command", "command": "lint"});
    let mut settings: Value = serde_json::from_str(&settings_text(&place, "claude")).unwrap();
    settings["hooks"]["PostToolUse"][0]["hooks"].as_array_mut().unwrap().push(lint.clone());
    fs::write(place.path().join(settings_file("claude")), settings.to_string()).unwrap();
    place.run(&["hook", "install", "--agent", "claude", "--remove"]);
    let settings: Value = serde_json::from_str(&settings_text(&place, "claude")).unwrap();
    assert_eq!(settings["hooks"]["PostToolUse"][0]["hooks"], json!([lint]));
}

#[test]
fn unusable_input_is_refused_and_nothing_is_written() {
    for (settings, arguments, said) in [
        ("{\"hooks\": ]}", &["tool"][..], "settings.json` cannot be used"),
        ("{\"hooks\": {\"PostToolUse\": {}}}", &["tool"], "is not a list"),
        ("{\"hooks\": 3}", &["tool"], "is not a table"),
        ("{}", &["stop"], "needs an artifact"),
    ] {
        let place = folder_with_settings("claude", settings);
        let run = place.run(&[&["hook", "install", "--agent", "claude"], arguments].concat());
        assert_eq!(run.code, 2, "{}", run.output);
        assert!(run.errors.contains(said), "{}", run.errors);
        assert_eq!(settings_text(&place, "claude"), settings);
    }
    let run = TestFolder::new().run(&["hook", "install", "--agent", "codex", "compact"]);
    assert_eq!(run.code, 2);
    assert!(run.errors.contains("Codex has no hook for `compact`"), "{}", run.errors);
}

/// Codex truncates longer text, so a higher limit would have no effect.
#[test]
fn a_limit_above_that_of_codex_is_lowered_with_a_message() {
    for (option, asked, written, is_lowered) in [
        ("--max-chars", "50000", "10000", true),
        ("--max-bytes", "50000", "10000", true),
        ("--max-tokens", "9000", "2500", true),
        ("--max-chars", "8000", "8000", false),
    ] {
        let place = TestFolder::new();
        let install = place.run(&["hook", "install", "--agent", "codex", "tool", option, asked]);
        assert_eq!(install.code, 0, "{}", install.errors);
        assert!(settings_text(&place, "codex").contains(&format!("{option} {written}")), "{option} {asked}");
        assert_eq!(install.output.contains("was lowered"), is_lowered, "{}", install.output);
    }
    let place = TestFolder::new();
    let install = place.run(&["hook", "install", "--agent", "claude", "tool", "--max-chars", "50000"]);
    assert!(settings_text(&place, "claude").contains("--max-chars 50000"));
    assert!(!install.output.contains("was lowered"));
}
