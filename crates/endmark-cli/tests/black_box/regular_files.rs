//! Files that are not regular: a pipe without a writer, and a device without an end.
//!
//! No command blocks on one of these, unless it is the main input.

use std::fs;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{CommandOutput, TestFolder};

/// A hanging command is killed after this time, so that the test fails.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

fn add_pipe(place: TestFolder, name: &str) -> TestFolder {
    let made = Command::new("mkfifo").arg(place.path().join(name)).status().unwrap();
    assert!(made.success());
    place
}

fn run(place: &TestFolder, arguments: &[&str]) -> CommandOutput {
    let mut child = place.command(arguments).spawn().unwrap();
    drop(child.stdin.take());
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > COMMAND_TIMEOUT {
            child.kill().unwrap();
            let _: ExitStatus = child.wait().unwrap();
            panic!("it hangs: {arguments:?}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    CommandOutput::new(&child.wait_with_output().unwrap())
}

fn folder_with_pipe() -> TestFolder {
    let place = TestFolder::new()
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .with_file("criteria.yaml", "min_lines: 1\n")
        .with_file("report.md", "All is well.\n")
        .with_file("key.toml", "[upstreams.a]\nformat = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\napi_key = {file = \"NAMED\"}\n")
        .with_file("ca.toml", "ca_file = \"NAMED\"\n")
        .with_file("schema.toml", "[schemas]\na = \"NAMED\"\n");
    add_pipe(place, "pipe")
}

#[test]
fn a_pipe_or_device_is_refused_instead_of_a_file() {
    for (named, what) in [("pipe", "it is a pipe"), ("/dev/zero", "it is a device")] {
        let place = folder_with_pipe();
        for file in ["key.toml", "ca.toml", "schema.toml"] {
            let text = fs::read_to_string(place.path().join(file)).unwrap().replace("NAMED", named);
            fs::write(place.path().join(file), text).unwrap();
        }
        let supervised = |options: &[&'static str]| {
            [&["run", "--template", "criteria.yaml", "--artifact", "report.md"], options, &["--", "true"]]
                .concat()
        };
        for arguments in [
            vec!["guard", named],
            vec!["guard", "--template", named, "report.md"],
            vec!["exec", "--manifest", named, "--", "true"],
            vec!["config", "check", "--config", named],
            vec!["run", "--template", named, "--artifact", "report.md", "--", "true"],
            vec!["run", "--spec", named],
            supervised(if named == "pipe" {
                &["--prompt-file", "pipe"]
            } else {
                &["--prompt-file", "/dev/zero"]
            }),
            vec!["findings", "merge", "--team", named, "report.md"],
            vec!["detect", "--state", named, "report.md"],
            vec!["serve", "--config", "key.toml"],
            vec!["serve", "--config", "ca.toml"],
            vec!["serve", "--config", "schema.toml"],
            vec!["serve", "--set", &format!("tls.certificate={named}"), "--set", &format!("tls.key={named}")],
        ] {
            let ran = run(&place, &arguments);
            assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.errors);
            let all_output = ran.output + &ran.errors;
            assert!(all_output.contains(what), "{arguments:?}: {all_output}");
        }
    }
}

#[test]
fn a_pipe_at_a_configured_path_is_refused_or_skipped() {
    let place = add_pipe(folder_with_pipe(), "endmark.toml");
    let ran = run(&place, &["config", "check"]);
    assert_eq!(ran.code, 2, "{}", ran.errors);
    assert!(ran.errors.contains("endmark.toml") && ran.errors.contains("it is a pipe"), "{}", ran.errors);

    let place = self::folder_with_pipe();
    fs::create_dir(place.path().join(".claude")).unwrap();
    let place = add_pipe(place, ".claude/settings.json");
    for command in [&["setup", "claude", "--write"][..], &["hook", "install", "--agent", "claude"]] {
        let ran = run(&place, command);
        assert_eq!(ran.code, 2, "{}", ran.errors);
        assert!(ran.errors.contains("it is a pipe"), "{}", ran.errors);
    }

    // The agent creates a pipe instead of its artifact, and another one at the path of its output.
    let place = self::folder_with_pipe();
    let place = add_pipe(place, "1.out");
    let agent = "rm report.md; mkfifo report.md; exec sleep 0";
    let options = [
        "--template",
        "criteria.yaml",
        "--artifact",
        "report.md",
        "--max-attempts",
        "1",
        "--output-folder",
        ".",
    ];
    let events = ["--events", "events.jsonl", "--", "sh", "-c", agent];
    let ran = run(&place, &[&["run"], &options[..], &events].concat());
    assert_eq!(ran.code, 1, "{}", ran.errors);
    assert!(
        ran.errors.contains("`report.md` cannot be read") || ran.errors.contains("it is a pipe"),
        "{}",
        ran.errors
    );

    // The pipe for the events has no reader.
    let ran = run(&place, &[&["run"], &options[..], &["--events", "pipe", "--", "true"]].concat());
    assert_eq!(ran.code, 2, "{}", ran.errors);
    assert!(ran.errors.contains("cannot write events to `pipe`"), "{}", ran.errors);
}

#[test]
fn the_input_data_of_a_command_may_be_a_pipe() {
    let place = folder_with_pipe();
    for command in [&["detect"][..], &["cap"], &["count", "--model", "gpt-4o"]] {
        let with = |file: &'static str| [command, &[file]].concat();
        let pipe = place.path().join("pipe");
        let writer = thread::spawn(move || fs::write(pipe, "[1, 2]").unwrap());
        let ran = run(&place, &with("pipe"));
        assert!(ran.code == 0 && !ran.output.is_empty(), "{command:?}: {}", ran.errors);
        writer.join().unwrap();
        let ran = place.run_with_input(&with("/dev/stdin"), "[1, 2]");
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.errors);
        let ran = run(&place, &with("/dev/zero"));
        assert_eq!(ran.code, 2, "{command:?}");
        assert!(ran.errors.contains("it is a device"), "{command:?}: {}", ran.errors);
    }
    for guarded in ["-", "/dev/stdin"] {
        let ran = place.run_with_input(&["guard", guarded], "All is well.\n");
        assert_eq!(ran.code, 0, "{}", ran.errors);
    }
}
