//! Checks the results of the README's commands.

use std::process::Command;

use serde_json::Value;

use crate::tracker::{Tracker, program};

/// A command of the README and its documented answer.
struct ReadmeStep {
    command: String,
    answer: Value,
    code: i32,
}

fn steps(text: &str) -> Vec<ReadmeStep> {
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let steps = blocks.flat_map(|block| block.split("$ ").skip(1)).map(|step| {
        let (command, rest) = step.split_once('\n').unwrap();
        let (answer, code) = match rest.rsplit_once("[exit code ") {
            Some((answer, code)) => (answer, code.trim().trim_end_matches(']').parse().unwrap()),
            None => (rest, 0),
        };
        let answer = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error} in {answer}"));
        ReadmeStep { command: command.to_owned(), answer, code }
    });
    steps.collect()
}

#[test]
fn every_command_of_the_readme_prints_the_stated_answer() {
    let tracker = Tracker::new();
    let examples = program().parent().unwrap().to_owned();
    let path = std::env::join_paths(
        std::iter::once(examples).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let path = path.unwrap();
    let steps = steps(include_str!("../../README.md"));
    assert!(steps.len() >= 6, "the README shows {} commands", steps.len());
    for ReadmeStep { command, answer, code } in steps {
        let run = || {
            let output = Command::new("sh")
                .args(["-c", &command])
                .env("PATH", &path)
                .current_dir(tracker.folder())
                .output()
                .unwrap();
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            (found, output.status.code())
        };
        let (mut found, mut status) = run();
        // If the answer reaches its size limit, a longer number in `duration_ms` leaves fewer bytes for the
        // text. So repeat a slow run.
        for _ in 0..20 {
            if !command.contains("--max-response-bytes") || found["meta"]["duration_ms"].as_u64() < Some(10) {
                break;
            }
            (found, status) = run();
        }
        found["meta"]["duration_ms"] = answer["meta"]["duration_ms"].clone();
        assert_eq!((found, status), (answer, Some(code)), "{command}");
    }
}
