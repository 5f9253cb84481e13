//! What can be typed behind `endmark runs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use endmark_config::Override;
use endmark_envelope::Limits;

use crate::arguments::store::StoreArgument;

/// What its help ends with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark runs
  endmark runs show run_4f0c
  endmark runs resume run_4f0c       (where its supervisor was killed)
  endmark runs watch                 (live; where there is no terminal, a line for each event)
  endmark runs --json | jq '.data.runs[] | select(.contextExhaustionRisk)'";

/// The arguments of `runs`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Runs {
    #[command(subcommand)]
    #[limits(skip)]
    pub(crate) command: Option<RunsCommand>,
    /// Show at most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

impl Runs {
    /// What is typed of the configuration, wherever it stands.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        let of_subcommand = match &self.command {
            Some(RunsCommand::Show { store, .. } | RunsCommand::Watch { store, .. }) => store.overrides(),
            Some(RunsCommand::Resume(resume)) => resume.store.overrides(),
            None => Vec::new(),
        };
        self.store.overrides().into_iter().chain(of_subcommand).collect()
    }

    /// Whether it has a way of its own of ending at a signal.
    pub(crate) fn ends_by_itself(&self) -> bool {
        matches!(self.command, Some(RunsCommand::Watch { .. } | RunsCommand::Resume(_)))
    }
}

/// What can be done with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Show all that is known of a run, with its events
    Show {
        /// The run's id, or its beginning
        id: String,
        #[command(flatten)]
        store: StoreArgument,
    },
    /// Go on with runs whose supervisor was killed, with the tries, the time and the money that are left
    Resume(Resume),
    /// Show runs as they go on, until the interrupt key is pressed
    Watch {
        /// End when no run is under way any more
        #[arg(long)]
        until_idle: bool,
        #[command(flatten)]
        store: StoreArgument,
    },
}

/// Which runs go on, and how.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The runs' ids, or their beginnings
    #[arg(required_unless_present = "all")]
    pub(crate) ids: Vec<String>,
    /// All runs whose supervisor was killed
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
    /// Have so many of them under way at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) parallel: u16,
    /// Append what happens to this file, as JSON Lines
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}
