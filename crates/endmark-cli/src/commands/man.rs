//! `endmark man`: the manual pages.

use clap::Command;
use clap_mangen::Man;
use endmark_failure::CommandError;
use serde::Serialize;

use crate::definition::definition;
use crate::view::answer::{Answer, to_data};

/// A manual page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ManReport<'a> {
    name: &'a str,
    page: &'a str,
}

/// Prints the page of the named command, or of the whole program.
pub(crate) fn run(named: Option<&str>) -> Result<Answer, CommandError> {
    let mut all = definition();
    // Subcommands get their global options and full names only once the whole command is built.
    all.build();
    let command = match named {
        None => all,
        Some(name) => man_page(&all, name)?,
    };
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| CommandError::Bug(error.to_string()))?;
    let page = String::from_utf8(page).map_err(|error| CommandError::Bug(error.to_string()))?;
    Ok(Answer::yes(to_data(&ManReport { name: &name, page: &page })?, page.as_str()))
}

fn man_page(all: &Command, name: &str) -> Result<Command, CommandError> {
    all.find_subcommand(name).cloned().ok_or_else(|| {
        CommandError::input(
            "unknown_command",
            format!("there is no command `{name}`"),
            "`endmark --help` lists the commands.",
        )
    })
}
