//! Properties of all commands: exit codes, envelopes, colours and pipes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::TestFolder;

const COMMANDS: [&str; 11] =
    ["serve", "demo", "detect", "stitch", "resume", "exec", "log", "config", "doctor", "completions", "man"];

#[test]
fn every_command_has_help_with_examples() {
    let place = TestFolder::new();
    for command in COMMANDS {
        let run = place.run(&[command, "--help"]);
        assert_eq!((run.code, run.errors.as_str()), (0, ""), "{command}");
        assert!(run.output.contains("Examples:\n  endmark"), "{command}: {}", run.output);
    }
    let nothing = place.run(&[]);
    assert_eq!((nothing.code, nothing.output.as_str()), (2, ""));
    assert!(nothing.errors.contains("Usage: endmark"), "{}", nothing.errors);
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let place = TestFolder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = place.run(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.output.contains("endmark") && run.output.contains("detect"), "{shell}");
    }
    assert!(place.run(&["man"]).output.contains(".TH endmark 1"));
    for command in COMMANDS {
        assert!(
            place.run(&["man", command]).output.contains(&format!(".TH endmark-{command} 1")),
            "{command}"
        );
    }
    let unknown = place.run(&["man", "nonsense"]);
    assert_eq!((unknown.code, unknown.output.as_str()), (2, ""));
}

#[test]
fn every_command_always_answers_in_an_envelope() {
    let place = TestFolder::new().with_file("cut.json", "[1,").with_file("bad.toml", "[resume");
    let cases: &[(&[&str], i32)] = &[
        (&["detect", "cut.json"], 1),
        (&["detect", "missing.json"], 2),
        (&["stitch", "cut.json"], 2),
        (&["stitch", "cut.json", "cut.json"], 1),
        (&["resume", "cut.json", "-q", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], 3),
        (&["serve", "--store", "postgres://host/name"], 2),
        (&["log"], 4),
        (&["log", "show", "1"], 4),
        (&["config"], 0),
        (&["config", "path"], 1),
        (&["config", "check"], 0),
        (&["config", "--config", "bad.toml"], 2),
        (&["config", "--set", "nonsense"], 2),
        (&["doctor", "--config", "bad.toml"], 1),
        (&["doctor", "--set", "upstreams.openai.base_url=http://127.0.0.1:9/v1"], 1),
        (&["completions", "bash"], 0),
        (&["completions", "csh"], 2),
        (&["man"], 0),
        (&["nonsense"], 2),
        (&["detect", "--nonsense"], 2),
        (&[], 2),
    ];
    for (arguments, code) in cases {
        let run = place.run(&[*arguments, &["--json"]].concat());
        assert_eq!(run.code, *code, "{arguments:?}: {} {}", run.output, run.errors);
        run.envelope();
        assert_eq!(run.errors, "", "{arguments:?}");
    }
}

#[test]
fn colour_is_used_only_if_requested() {
    let place = TestFolder::new().with_file("cut.json", "[1,");
    let is_coloured = |place: &TestFolder, arguments: &[&str]| {
        let run = place.run(arguments);
        run.output.contains('\u{1b}') || run.errors.contains('\u{1b}')
    };
    assert!(!is_coloured(&place, &["detect", "cut.json"]));
    assert!(is_coloured(&place, &["detect", "cut.json", "--color", "always"]));
    assert!(is_coloured(&place, &["detect", "missing", "--color=always"]));
    assert!(!is_coloured(&place, &["detect", "cut.json", "--color", "never"]));
    assert!(!is_coloured(&place, &["--help", "--color", "never"]));
    assert!(!is_coloured(&place, &["detect", "cut.json", "--json", "--color", "always"]));
    let place = place.with_variable("NO_COLOR", "1");
    assert!(!is_coloured(&place, &["detect", "cut.json"]));
}

#[test]
#[cfg(target_os = "linux")]
fn unwritable_output_is_a_failure() {
    for arguments in [&["man"][..], &["config", "--json"], &["detect", "--batch"]] {
        let place = TestFolder::new();
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut child = place.command(arguments).stdout(full).spawn().unwrap();
        // Only `detect --batch` reads this line.
        let _ = child.stdin.take().unwrap().write_all(b"{\"text\":\"\"}\n");
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{arguments:?}");
        assert!(errors.starts_with("error: cannot write to standard output"), "{errors}");
    }
}

#[test]
fn a_closed_reader_is_not_an_error() {
    let place = TestFolder::new();
    let lines = "{\"id\":1,\"format\":\"json\",\"text\":\"[\"}\n".repeat(20_000);
    let place = place.with_file("lines.jsonl", lines);
    for arguments in
        [&["detect", "--batch", "lines.jsonl"][..], &["completions", "bash"], &["config", "--json"]]
    {
        let mut child = place.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn an_oversized_argument_is_refused_before_input_is_read() {
    let place = TestFolder::new();
    let cases: &[(&[&str], &str, u64, usize)] = &[
        (&["detect", "missing.json", "--marker"], "marker", 1024, 1025),
        (&["stitch", "missing.json", "missing.json", "--marker"], "marker", 1024, 1025),
        (&["resume", "missing.json", "--base-url", "http://127.0.0.1:9/v1", "--model"], "model", 255, 256),
        (&["serve", "--upstream"], "upstream", 2048, 2049),
    ];
    for (arguments, field, limit, actual) in cases {
        let value = "x".repeat(*actual);
        let run = place.run(&[*arguments, &[&value, "--json"]].concat());
        let error = &run.envelope()["error"];
        assert_eq!((run.code, &error["code"]), (2, &"FIELD_TOO_LARGE".into()), "{arguments:?}");
        assert_eq!((&error["phase"], &error["limit"]), (&"validation".into(), &(*limit).into()));
        assert!(error["field"].as_str().unwrap().ends_with(field), "{error}");
        assert_eq!(error["actual"], *actual);
    }
}

#[test]
#[cfg(unix)]
fn a_signal_produces_an_envelope() {
    for (signal, code, word) in [("-TERM", 143, "terminated"), ("-INT", 130, "interrupted")] {
        let mut child = TestFolder::new().command(&["detect", "-", "--json"]).spawn().unwrap();
        // A separate thread handles signals. Wait for it, because before it a signal ends any process.
        while std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count() < 2 {
            std::thread::yield_now();
        }
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let envelope: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert_eq!((&envelope["error"]["code"], &envelope["ok"]), (&word.into(), &false.into()));
        assert_eq!(envelope["error"]["exit_code"], code);
    }
}

#[test]
fn a_signal_ends_the_command_while_it_prints() {
    let text = format!("[\"{}\", \"", "é".repeat(500_000));
    let place = TestFolder::new().with_file("cut.json", text);
    let arguments = ["detect", "--complete", "--json", "cut.json"];
    let started = Instant::now();
    assert!(place.command(&arguments).stdout(Stdio::null()).status().unwrap().code() == Some(1));
    let whole = started.elapsed();
    for part in 1..=10 {
        let mut child = place.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * part / 10);
        // The process may already have ended.
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        let patience = Instant::now() + whole * 10 + Duration::from_secs(10);
        let ended = loop {
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            if Instant::now() > patience {
                child.kill().unwrap();
                panic!("it ends no more, with a signal after {part} tenths of its time");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // Until the command watches signals, a signal ends it as usual.
        assert!(matches!(ended.code(), None | Some(1 | 143)), "{ended}");
    }
}

#[test]
fn json_help_is_an_envelope_and_unwritable_help_fails() {
    let place = TestFolder::new();
    let answer = place.run(&["detect", "--json", "--help"]);
    assert_eq!(answer.code, 0);
    let envelope: serde_json::Value = serde_json::from_str(&answer.output).unwrap();
    assert!(envelope["data"]["text"].as_str().unwrap().contains("Usage: endmark detect"), "{envelope}");
    // `exec` always answers in JSON, but its help is text.
    assert!(place.run(&["exec", "--help"]).output.starts_with("Run any command"));
    for option in ["--help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let status = place.command(&[option]).stdout(full).status().unwrap();
        assert_eq!(status.code(), Some(3), "{option}");
    }
}

#[test]
fn an_empty_page_or_period_is_refused() {
    let place = TestFolder::new();
    assert_eq!(place.run(&["log", "--limit", "0"]).code, 2);
    assert_eq!(place.run(&["keys", "add", "first"]).code, 0);
    let turned = place.run(&["usage", "--since", "2026-11-20", "--until", "2026-11-10", "--json"]);
    assert_eq!(turned.envelope()["error"]["code"], "empty_period");
}

#[test]
fn without_a_home_folder_the_error_names_the_store_setting() {
    let place = TestFolder::new();
    let message = |variable: Option<(&str, &str)>| {
        let mut command = place.command(&["config"]);
        command.env_remove("HOME").envs(variable);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    assert!(message(None).contains("the store is `endmark.db` in the current one"), "{}", message(None));
    assert!(!message(Some(("ENDMARK_STORE", "sqlite:a.db"))).contains("in the current one"));
}
