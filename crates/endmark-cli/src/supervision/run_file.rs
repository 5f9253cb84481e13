//! Reads a file of runs. All of its tables are checked before any run is started.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use endmark_failure::CommandError;
use endmark_runs::Task;
use serde::Deserialize;
use toml::Spanned;

use super::run_options::{RunOptions, SharedContext};
use crate::input::Input;

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RunFile {
    /// Defaults for every run.
    defaults: RunOptions,
    run: Vec<Spanned<RunOptions>>,
}

/// Reads the runs of a file. Options missing in the file come from the command line.
pub(super) fn read_run_file(
    shared: &SharedContext<'_>,
    path: &Path,
    typed: &RunOptions,
) -> Result<Vec<Task>, CommandError> {
    let text = Input::open_file(path, shared.context.terminal)?.read_hand_written()?;
    let spec: RunFile = toml::from_str(&text).map_err(|error| {
        let line = line_number(&text, error.span().map_or(0, |span| span.start));
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        CommandError::input(
            "invalid_spec",
            format!("{}:{line}: {message}", path.display()),
            "A run is a table `[[run]]` with template, artifact and command; `[defaults]` has common options.",
        )
    })?;
    let given = spec.defaults.with_defaults(typed);
    let mut planned = Vec::new();
    let mut taken: HashMap<PathBuf, usize> = HashMap::new();
    for wish in spec.run {
        let line = line_number(&text, wish.span().start);
        let here = |error| with_line(path, line, error);
        let run = wish.into_inner().with_defaults(&given).check(shared).map_err(here)?;
        let artifact = run.folder.join(&run.artifact);
        if let Some(other) = taken.insert(artifact, line) {
            let message = format!("the run in line {other} has the same artifact");
            return Err(here(CommandError::input("usage", message, "Give each run a different artifact.")));
        }
        planned.push(run);
    }
    if planned.is_empty() {
        let message = format!("`{}` has no runs", path.display());
        return Err(CommandError::input("invalid_spec", message, "Write a table `[[run]]` for each run."));
    }
    Ok(planned)
}

/// Returns the line of a byte offset, counted from 1.
fn line_number(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Adds the line number of the run that caused an error.
fn with_line(path: &Path, line: usize, error: CommandError) -> CommandError {
    let place = format!("{}:{line}", path.display());
    match error {
        CommandError::Input { code, message, hint } => {
            CommandError::Input { code, message: format!("{place}: {message}"), hint }
        }
        CommandError::Read { path, source } => CommandError::Input {
            code: "unreadable",
            message: format!("{place}: cannot read `{}`: {source}", path.display()),
            hint: None,
        },
        other => other,
    }
}
