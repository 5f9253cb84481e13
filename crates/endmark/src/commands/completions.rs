//! `endmark completions`: the completions for a shell.

use clap_complete::Shell;
use serde_json::json;

use crate::answer::Answer;
use crate::definition::definition;
use crate::error::CommandError;

/// Prints the completions for this shell.
pub(crate) fn run(shell: Shell) -> Result<Answer, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "endmark", &mut script);
    let script = String::from_utf8(script).map_err(|error| CommandError::Bug(error.to_string()))?;
    Ok(Answer::yes(json!({"shell": shell.to_string(), "script": script}), script.as_str()))
}
