//! Runs the cases in `cases/*/*.md` with the built command.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod case;
mod page;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use case::{Case, CaseQuestion};
use serde_json::Value;

fn cases_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases")
}

/// Returns the paths in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Returns all cases, each with the name of its page, such as `detect/json`.
fn read_cases() -> Vec<(String, Case)> {
    let families = entries(&cases_folder()).into_iter().filter(|path| path.is_dir());
    let mut pages: Vec<PathBuf> = families.flat_map(|family| entries(&family)).collect();
    pages.sort();
    pages
        .iter()
        .flat_map(|path| {
            let page =
                path.strip_prefix(cases_folder()).unwrap().with_extension("").to_string_lossy().into_owned();
            let read = page::parse_cases(&std::fs::read_to_string(path).unwrap())
                .unwrap_or_else(|problem| panic!("cases/{page}.md: {problem}"));
            read.into_iter().map(move |case| (page.clone(), case))
        })
        .collect()
}

/// Returns the command's answers to these requests, in order.
fn run_batch(command: &str, requests: &[Value]) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_endmark"))
        .args([command, "--batch"])
        .args((command == "cap").then_some("--no-store"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    let writer = std::thread::spawn(move || input.write_all((lines.join("\n") + "\n").as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns a command's answer in a folder with these files.
fn run_in_folder(command: &str, arguments: &[String], files: &[(String, String)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_endmark"))
        .args(["--json", command])
        .args(arguments)
        .current_dir(folder.path())
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

#[test]
fn every_case_matches_its_page() {
    let cases = read_cases();
    let mut wrong = Vec::new();
    for command in ["detect", "stitch", "cap"] {
        let selected: Vec<&(String, Case)> =
            cases.iter().filter(|(_, case)| case.question.batch_command() == Some(command)).collect();
        let requests: Vec<Value> = selected.iter().map(|(_, case)| case.question.request()).collect();
        let answers = run_batch(command, &requests);
        assert_eq!(answers.len(), selected.len());
        for ((page, case), answer) in selected.into_iter().zip(&answers) {
            if let Err(problem) = case.check(answer) {
                wrong.push(format!("cases/{page}.md, {}: {problem}\n    {answer}", case.name));
            }
        }
    }
    for (page, case) in &cases {
        if let CaseQuestion::Command { command, arguments, files } = &case.question {
            let answer = run_in_folder(command, arguments, files);
            if let Err(problem) = case.check(&answer) {
                wrong.push(format!("cases/{page}.md, {}: {problem}\n    {answer}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_page_has_several_cases_with_unique_names() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (page, case) in read_cases() {
        names.entry(page).or_default().push(case.name);
    }
    assert!(names.len() >= 20, "{:?}", names.keys());
    for (page, mut names) in names {
        assert!(names.len() >= 2, "{page}");
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{page}");
    }
}

#[test]
fn a_case_with_different_output_fails() {
    let page = "## A\n\nstitch json, from cut\n\n``` first\n[1, 2\n```\n\n``` continuation\n3]\n```\n\n``` whole\n[1, 3]\n```\n";
    let case = page::parse_cases(page).unwrap().remove(0);
    assert!(matches!(case.question, CaseQuestion::Stitch { .. }));
    let answer = run_batch("stitch", &[case.question.request()]).remove(0);
    assert_eq!(answer["text"], "[1, 23]");
    assert!(case.check(&answer).is_err());
}
