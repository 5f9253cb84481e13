//! The arguments of `endmark runs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use endmark_config::Override;
use endmark_envelope::Limits;
use endmark_runs::ReportedEvent;

use crate::arguments::store::StoreArgument;

/// The examples at the end of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark runs
  endmark runs show run_4f0c
  endmark runs resume run_4f0c       (after its supervisor was killed)
  endmark runs record --event started < run.json     (for a run of another scheduler)
  endmark runs watch                 (live; without a terminal it prints one line per event)
  endmark runs --json | jq '.data.runs[] | select(.contextExhaustionRisk)'";

/// The arguments of `runs`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Runs {
    #[command(subcommand)]
    #[limits(skip)]
    pub(crate) command: Option<RunsCommand>,
    /// Show at most N runs, the newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

impl Runs {
    /// Returns the configuration overrides, typed before or after the subcommand.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        let of_subcommand = match &self.command {
            Some(RunsCommand::Show { store, .. } | RunsCommand::Watch { store, .. }) => store.overrides(),
            Some(RunsCommand::Resume(resume)) => resume.store.overrides(),
            Some(RunsCommand::Record(record)) => record.store.overrides(),
            None => Vec::new(),
        };
        self.store.overrides().into_iter().chain(of_subcommand).collect()
    }

    /// Whether the command handles signals itself.
    pub(crate) fn ends_by_itself(&self) -> bool {
        matches!(self.command, Some(RunsCommand::Watch { .. } | RunsCommand::Resume(_)))
    }
}

/// The subcommands of `runs`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Show all that is known about a run, with its events
    Show {
        /// The run's id, or its beginning
        id: String,
        #[command(flatten)]
        store: StoreArgument,
    },
    /// Continue runs whose supervisor was killed, within their remaining attempts, time and money
    Resume(Resume),
    /// Record an event of a run that another scheduler supervises, described by a JSON object on standard input
    #[command(after_help = RECORD_HELP)]
    Record(Record),
    /// Show the progress of runs, until the interrupt key is pressed
    Watch {
        /// End when no run is active any more
        #[arg(long)]
        until_idle: bool,
        #[command(flatten)]
        store: StoreArgument,
    },
}

/// The text at the end of the help of `runs record`.
const RECORD_HELP: &str = "\
Example:
  echo '{\"id\": \"nightly-7\", \"agent\": \"codex\", \"artifact\": \"report.md\"}' | endmark runs record --event started

Fields: id, agent and artifact (required for the first event), name, command (a list), folder, template, attempt, maxAttempts,
process, session, model, tokenUsage {input, output} of all attempts, largestCallTokens, limitTokens, costUsd, verdict,
evidence (a list), missing (a list: what the artifact lacks), reason (for retry-queued, released and failed).
Omitted fields keep their recorded values.";

/// The arguments of `runs record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The event
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: EventChoice,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The events of a run of another scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventChoice {
    /// An attempt began
    Started,
    /// The current attempt used more tokens
    Used,
    /// The attempt has ended, and another one follows
    RetryQueued,
    /// The artifact is finished
    Succeeded,
    /// The run was released with an unfinished artifact
    Released,
    /// The agent failed
    Failed,
}

impl From<EventChoice> for ReportedEvent {
    fn from(choice: EventChoice) -> Self {
        match choice {
            EventChoice::Started => Self::Started,
            EventChoice::Used => Self::UsageReported,
            EventChoice::RetryQueued => Self::RetryQueued,
            EventChoice::Succeeded => Self::Succeeded,
            EventChoice::Released => Self::Released,
            EventChoice::Failed => Self::Failed,
        }
    }
}

/// The arguments of `runs resume`.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The ids of the runs, or their beginnings
    #[arg(required_unless_present = "all")]
    pub(crate) ids: Vec<String>,
    /// All runs whose supervisor was killed
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
    /// Run at most this many of them at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) parallel: u16,
    /// Append events to this file, as JSON Lines
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}
