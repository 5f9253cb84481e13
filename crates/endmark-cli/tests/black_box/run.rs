//! Runs the command in an empty folder with an empty environment.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder that is isolated from the machine's configuration.
pub(crate) struct TestFolder {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// The result of one run.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) errors: String,
    /// The schema of the answer, if the command is known.
    schema: Option<PathBuf>,
}

impl TestFolder {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(crate) fn with_file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the default store.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join(".local/state/endmark/endmark.db")
    }

    /// Returns the command with these arguments, ready to start.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_endmark"));
        command
            .args(arguments)
            .args(free_port_options(arguments))
            .current_dir(self.folder.path())
            .env_clear();
        command.env("HOME", self.folder.path()).envs(self.variables.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with_input(arguments, "")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> CommandOutput {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        let writer = std::thread::spawn(move || {
            // The pipe is closed if the command does not read its input.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        CommandOutput { schema: schema_path(arguments), ..CommandOutput::new(&output) }
    }
}

impl CommandOutput {
    pub(crate) fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            output: String::from_utf8(output.stdout.clone()).unwrap(),
            errors: String::from_utf8(output.stderr.clone()).unwrap(),
            schema: None,
        }
    }

    /// Returns the envelope on standard output.
    ///
    /// It is checked against the exit code and the schema of its command (EN-1).
    pub(crate) fn envelope(&self) -> Value {
        let envelope: Value = serde_json::from_str(&self.output)
            .unwrap_or_else(|error| panic!("{error} in {:?}, standard error {:?}", self.output, self.errors));
        let names: Vec<&String> = envelope.as_object().unwrap().keys().collect();
        assert_eq!(names, ["ok", "data", "error", "warnings", "meta"]);
        assert_eq!(envelope["ok"], self.code == 0, "{}", self.output);
        if self.code == 0 {
            assert!(envelope["error"].is_null(), "{}", self.output);
        } else {
            assert_eq!(envelope["error"]["exit_code"], self.code, "{}", self.output);
            assert!(!envelope["error"]["code"].as_str().unwrap().is_empty());
        }
        assert!(envelope["meta"]["truncated"].is_boolean() && envelope["meta"]["duration_ms"].is_u64());
        if let Some(file) = &self.schema {
            let schema = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            let validator = jsonschema::validator_for(&schema).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&envelope).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{} does not fit: {errors:?} in {}", file.display(), self.output);
        }
        envelope
    }
}

/// Returns options that select a free port, because the user's own gateway may use the default port.
fn free_port_options(arguments: &[&str]) -> &'static [&'static str] {
    let is_placed =
        arguments.iter().any(|argument| *argument == "--listen" || argument.starts_with("listen="));
    match arguments.first() {
        Some(&"serve") if !is_placed => &["--listen", "127.0.0.1:0"],
        Some(&"doctor") if !is_placed => &["--set", "listen=127.0.0.1:0"],
        _ => &[],
    }
}

/// Returns the path of the schema for the answer to these arguments.
fn schema_path(arguments: &[&str]) -> Option<PathBuf> {
    let (command, rest) = arguments.split_first()?;
    let name = match (*command, rest.first()) {
        ("config", Some(sub @ (&"path" | &"check"))) => format!("config-{sub}"),
        ("findings", Some(sub)) => format!("findings-{sub}"),
        ("config", _) => "config-show".to_owned(),
        (command, _) => command.to_owned(),
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{name}.json"));
    file.exists().then_some(file)
}
