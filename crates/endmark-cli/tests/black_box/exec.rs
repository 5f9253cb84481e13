//! `endmark exec` with real commands: every answer is one document that Python's `json.loads` accepts. (EN-1
//! to EN-5)

mod capped;
mod endings;
mod limits;
mod pipes;
mod sizes;
mod tools;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{CommandOutput, TestFolder};

/// Returns an empty folder whose commands use the `PATH` of the test.
fn exec_folder() -> TestFolder {
    TestFolder::new().with_variable("PATH", &std::env::var("PATH").unwrap())
}

/// Returns a folder with this manifest, whose commands use the `PATH` of the test.
fn folder_with_manifest(manifest: &str) -> TestFolder {
    exec_folder().with_file("tool.toml", manifest)
}

/// Returns the path of a documented manifest.
fn manifest_path(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/manifests");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Runs a command with the manifest in the folder.
fn exec(place: &TestFolder, command: &[&str]) -> Value {
    exec_with(place, "tool.toml", command, "")
}

/// Runs a command with this manifest.
fn exec_with(place: &TestFolder, manifest: &str, command: &[&str], input: impl AsRef<[u8]>) -> Value {
    let arguments = [&["exec", "--manifest", manifest, "--"], command].concat();
    checked_envelope(&place.run_with_input(&arguments, input))
}

/// Runs a command with its built-in manifest.
fn exec_builtin(place: &TestFolder, command: &[&str], input: impl AsRef<[u8]>) -> Value {
    checked_envelope(&place.run_with_input(&[&["exec", "--"], command].concat(), input))
}

/// Returns the envelope of a run, after a check that Python can parse it.
fn checked_envelope(run: &CommandOutput) -> Value {
    assert_python_reads(run.output.as_bytes());
    run.envelope()
}

/// Fails unless Python parses exactly one document.
fn assert_python_reads(output: &[u8]) {
    let mut python = Command::new("python3");
    python.args(["-c", "import json, sys; json.loads(sys.stdin.buffer.read())"]);
    let mut python = python.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    python.stdin.take().unwrap().write_all(output).unwrap();
    let ended = python.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// Returns the code and the exit code of the error.
fn error_codes(envelope: &Value) -> (&str, u64) {
    let error = &envelope["error"];
    (error["code"].as_str().unwrap_or_default(), error["exit_code"].as_u64().unwrap_or_default())
}

/// Returns the warning about this field.
fn warning_about<'a>(envelope: &'a Value, field: &str) -> &'a Value {
    let warnings = envelope["warnings"].as_array().unwrap();
    warnings.iter().find(|warning| warning["field"] == field).unwrap_or_else(|| panic!("{envelope:#}"))
}
