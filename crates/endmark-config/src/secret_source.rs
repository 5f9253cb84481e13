//! Reads secrets from the configuration itself, the environment or a separate file.

use std::io;
use std::path::{Path, PathBuf};

use endmark_failure::CommandError;
use endmark_gateway::Secret;
use endmark_process::read_regular_text;
use serde_json::{Value, json};

use super::environment::Environment;

/// The maximum size of a file with a secret. A larger file is probably the wrong one.
const MAX_SECRET_FILE_BYTES: u64 = 64 * 1024;

/// Where a secret is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The configuration contains the secret.
    Value(Secret),
    /// The environment variable of this name contains the secret.
    Environment(String),
    /// This file contains only the secret.
    File(PathBuf),
}

impl SecretSource {
    /// Reads the secret. `what` names it in errors, for example "the key of the upstream `a`".
    pub fn read(&self, environment: &Environment, what: &str) -> Result<Secret, CommandError> {
        let text = match self {
            Self::Value(secret) => return Ok(secret.clone()),
            Self::Environment(variable) => environment.get(variable).map(str::to_owned).ok_or_else(|| {
                let message =
                    format!("the environment variable `{variable}` is not set, and should hold {what}");
                CommandError::input("missing_key", message, format!("Set `{variable}`, or name another one."))
            })?,
            Self::File(path) => read_secret_file(path).map_err(|error| {
                let message =
                    format!("the file `{}`, which holds {what}, cannot be read: {error}", path.display());
                CommandError::input("missing_key", message, "Name a file that exists and may be read.")
            })?,
        };
        // Editors add a line break to the end of a file. It is not part of the secret.
        let text = text.trim();
        if text.is_empty() {
            let message = format!("{} is empty, and should hold {what}", self.describe());
            return Err(CommandError::input("missing_key", message, "Write it there, and nothing else."));
        }
        if text.chars().any(char::is_control) {
            let message = format!("{}, which holds {what}, has more than one line", self.describe());
            return Err(CommandError::input(
                "invalid_key",
                message,
                "Write the secret there, and nothing else.",
            ));
        }
        Ok(Secret::new(text.to_owned()))
    }

    /// Returns the source for display: a reference, or `***` for a secret in the configuration.
    pub fn display_value(&self) -> Value {
        match self {
            Self::Value(_) => json!("***"),
            Self::Environment(name) => json!({"env": name}),
            Self::File(path) => json!({"file": path}),
        }
    }

    /// Describes the source for people.
    fn describe(&self) -> String {
        match self {
            Self::Value(_) => "the configuration".to_owned(),
            Self::Environment(variable) => format!("the environment variable `{variable}`"),
            Self::File(path) => format!("the file `{}`", path.display()),
        }
    }
}

fn read_secret_file(path: &Path) -> io::Result<String> {
    read_regular_text(path, MAX_SECRET_FILE_BYTES)
}
