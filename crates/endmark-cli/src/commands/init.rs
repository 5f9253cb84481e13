//! `endmark init`: writes a small initial configuration.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

use endmark_failure::CommandError;
use serde::Serialize;

use crate::arguments::init::Init;
use crate::view::answer::{Answer, to_data};

/// The configuration. Commented-out lines are defaults or examples.
const TEMPLATE: &str = include_str!("init/endmark.toml");

/// Answer data: the written file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct InitReport {
    /// The path of the file.
    file: String,
}

/// Writes the configuration, unless the file exists.
pub(super) fn run(arguments: &Init) -> Result<Answer, CommandError> {
    let path = &arguments.file;
    let shown = path.display();
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
    written.map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            let hint = "Name another file, or edit the existing one: `endmark config` shows every key.";
            return CommandError::input(
                "exists",
                format!("`{shown}` already exists and was not changed"),
                hint,
            );
        }
        CommandError::input("unwritable", format!("cannot write `{shown}`: {error}"), "Name another file.")
    })?;
    let text =
        format!("Written to {shown}. Next: edit it, then `endmark config check` and `endmark serve`.\n");
    Ok(Answer::yes(to_data(&InitReport { file: shown.to_string() })?, text))
}
