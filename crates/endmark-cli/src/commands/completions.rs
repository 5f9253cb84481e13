//! `endmark completions`: completion scripts for a shell.

use clap_complete::Shell;
use endmark_failure::CommandError;
use serde::Serialize;

use crate::definition::definition;
use crate::view::answer::{Answer, to_data};

/// A completion script.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CompletionsReport<'a> {
    shell: String,
    script: &'a str,
}

/// Prints the completions for this shell.
pub(crate) fn run(shell: Shell) -> Result<Answer, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "endmark", &mut script);
    let script = String::from_utf8(script).map_err(|error| CommandError::Bug(error.to_string()))?;
    let report = CompletionsReport { shell: shell.to_string(), script: &script };
    Ok(Answer::yes(to_data(&report)?, script.as_str()))
}
