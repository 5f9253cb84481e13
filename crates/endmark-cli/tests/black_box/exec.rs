//! `endmark exec` with real commands: every answer is one document that Python's `json.loads` reads. (EN-1 to EN-5)

mod capped;
mod ends;
mod limits;
mod pipes;
mod sizes;
mod tools;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{Place, Run};

/// A separate folder, with the `PATH` of the test.
fn place() -> Place {
    Place::new().with_variable("PATH", &std::env::var("PATH").unwrap())
}

/// A folder with this manifest.
fn place_with(manifest: &str) -> Place {
    place().with_file("tool.toml", manifest)
}

/// Returns the path of a file in the documented manifests.
fn manifest_path(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/manifests");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Runs a command under the manifest in the folder.
fn exec(place: &Place, command: &[&str]) -> Value {
    exec_with(place, "tool.toml", command, "")
}

/// Runs a command under this manifest.
fn exec_with(place: &Place, manifest: &str, command: &[&str], input: impl AsRef<[u8]>) -> Value {
    let arguments = [&["exec", "--manifest", manifest, "--"], command].concat();
    checked_envelope(&place.run_with_input(&arguments, input))
}

/// Runs a command under its built-in manifest.
fn exec_builtin(place: &Place, command: &[&str], input: impl AsRef<[u8]>) -> Value {
    checked_envelope(&place.run_with_input(&[&["exec", "--"], command].concat(), input))
}

/// Returns the envelope of a run, after a check that Python reads it.
fn checked_envelope(run: &Run) -> Value {
    assert_python_reads(run.output.as_bytes());
    run.envelope()
}

/// Fails if Python does not read exactly one document.
fn assert_python_reads(output: &[u8]) {
    let mut python = Command::new("python3");
    python.args(["-c", "import json, sys; json.loads(sys.stdin.buffer.read())"]);
    let mut python = python.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    python.stdin.take().unwrap().write_all(output).unwrap();
    let ended = python.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// Returns the code and the exit code of the error.
fn error(envelope: &Value) -> (&str, u64) {
    let error = &envelope["error"];
    (error["code"].as_str().unwrap_or_default(), error["exit_code"].as_u64().unwrap_or_default())
}

/// Returns the warning about this field.
fn warning<'a>(envelope: &'a Value, field: &str) -> &'a Value {
    let warnings = envelope["warnings"].as_array().unwrap();
    warnings.iter().find(|warning| warning["field"] == field).unwrap_or_else(|| panic!("{envelope:#}"))
}
