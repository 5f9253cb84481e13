//! Runs the example in an empty folder, and parses its answers with Python.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a SQLite file.
pub(crate) struct Tracker {
    folder: TempDir,
}

/// The result of one run.
pub(crate) struct RunResult {
    pub(crate) code: i32,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

/// Returns the path of the built example.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples").join("tracker");
    assert!(program.exists(), "build it first: cargo build -p endmark-envelope --example tracker");
    program
}

impl Tracker {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("issues.db")
    }

    /// Opens the SQLite file as another program would.
    pub(crate) fn sqlite(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> RunResult {
        let output = self.command(arguments).output().unwrap();
        RunResult {
            code: output.status.code().unwrap(),
            output: output.stdout,
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that must succeed, and returns the data of its answer.
    pub(crate) fn data<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Value {
        let run = self.run(arguments);
        let envelope = run.envelope();
        assert_eq!(run.code, 0, "{envelope}");
        envelope["data"].clone()
    }
}

impl RunResult {
    /// Returns the envelope. It must be the only document on standard output and match the exit code (EN-1).
    pub(crate) fn envelope(&self) -> Value {
        envelope(&self.output, self.code)
    }
}

/// Returns the envelope in this output of a process with this exit code, with the same checks.
pub(crate) fn envelope(output: &[u8], code: i32) -> Value {
    let envelope: Value = serde_json::from_slice(&read_with_python(output)).unwrap();
    let names: Vec<&String> = envelope.as_object().unwrap().keys().collect();
    assert_eq!(names, ["ok", "data", "error", "warnings", "meta"]);
    assert_eq!(envelope["ok"], code == 0, "{envelope}");
    if code != 0 {
        assert_eq!(envelope["error"]["exit_code"], code, "{envelope}");
        let names: Vec<&String> = envelope["error"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["code", "exit_code", "phase", "message", "field", "limit", "actual", "hint"]);
    }
    let truncated =
        envelope["warnings"].as_array().unwrap().iter().any(|warning| warning["kind"] == "TRUNCATION");
    assert_eq!(envelope["meta"]["truncated"], truncated, "{envelope}");
    assert!(envelope["meta"]["duration_ms"].is_u64());
    envelope
}

/// Parses the output with Python's `json.loads`, because an independent reader must find one document.
fn read_with_python(output: &[u8]) -> Vec<u8> {
    let script = "import json, sys; json.dump(json.loads(sys.stdin.buffer.read().decode()), sys.stdout)";
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(output).unwrap();
    let read = python.wait_with_output().unwrap();
    assert!(read.status.success(), "no document: {}", String::from_utf8_lossy(output));
    read.stdout
}
