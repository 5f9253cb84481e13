//! The arguments of `endmark hook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use endmark_agents::hooks::{HookAgent, HookKind};
use endmark_envelope::{Limits, TooLarge};

use crate::arguments::cap::Most;
use crate::arguments::store::StoreArgument;

/// The examples at the end of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark hook install --agent claude --dry-run tool            what would be written, and where
  endmark hook install --agent claude tool --max-chars 20000    results of tools are capped
  endmark hook install --agent codex --project stop --artifact report.md --template stages/report.md
  endmark hook install --agent claude tool compact              both at once
  endmark hook install --agent claude --findings='audit.*'       sub-agents hand over whole findings
  endmark hook install --agent claude stop --artifact report.md --yes     for every project of the user
  endmark hook install --agent gemini --remove                  all of it goes again
  endmark doctor --hooks                                        does it work?

`tool`, `stop`, `compact` and `findings` are what agents run: they read an event on standard input, and answer in the agent's own
spelling, or not at all. An error of theirs changes nothing for the agent: one line on standard error, and exit code 0.";

/// The arguments of `hook`.
#[derive(Debug, Args)]
pub(crate) struct Hook {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

/// What agents run, and what brings it into their settings.
#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Cap a tool's result before the model reads it
    Tool(Tool),
    /// Let an agent stop only when its artifact is whole, or after N attempts
    Stop(Stop),
    /// Keep the values of a conversation over the agent's own compaction
    Compact(Compact),
    /// Give sub-agents the form of findings, and have them do again what was cut
    Findings(Findings),
    /// Write hooks into an agent's settings, or take them out
    Install(Install),
}

impl Hook {
    /// Fails if an argument exceeds its size limit (EN-4).
    pub(crate) fn check_limits(&self) -> Result<(), TooLarge> {
        match &self.command {
            HookCommand::Tool(arguments) => arguments.check_limits(),
            HookCommand::Stop(arguments) => arguments.check_limits(),
            HookCommand::Compact(arguments) => arguments.check_limits(),
            HookCommand::Findings(arguments) => arguments.check_limits(),
            HookCommand::Install(arguments) => arguments.check_limits(),
        }
    }
}

/// The arguments of `hook tool`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Tool {
    /// Whose event it is
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    #[command(flatten)]
    pub(crate) most: Most,
    /// Items of a list, rows of a table (key `cap.max_items`)
    #[arg(long, value_name = "N")]
    pub(crate) max_items: Option<u64>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The arguments of `hook stop`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Stop {
    /// Whose event it is
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    #[command(flatten)]
    pub(crate) held_to: HeldTo,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The artifact that an agent has to hand over before it may stop.
#[derive(Debug, Clone, Args, Limits)]
pub(crate) struct HeldTo {
    /// The file that has to be whole; a relative path begins at the agent's project
    #[arg(long, value_name = "ARTIFACT", overrides_with = "artifact")]
    #[limits(skip)]
    pub(crate) artifact: Option<PathBuf>,
    /// Hold it to this, as `endmark guard --template` does
    #[arg(long, value_name = "TEMPLATE")]
    #[limits(skip)]
    pub(crate) template: Option<PathBuf>,
    /// Require this many lines that are not blank
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) min_lines: Option<u32>,
    /// Require a section with this title and with content; can be repeated
    #[arg(long = "section", value_name = "SECTION")]
    #[limits(max_bytes = 1024, max_items = 1000)]
    pub(crate) sections: Vec<String>,
    /// Let the agent go after this many attempts; Claude Code itself ends a turn after 8
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=8))]
    #[limits(skip)]
    pub(crate) attempts: u32,
}

/// The arguments of `hook compact`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Compact {
    /// Whose event it is
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The arguments of `hook findings`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Findings {
    /// Whose event it is
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    /// Each sub-agent has to hand over a result, also one that has begun none
    #[arg(long)]
    pub(crate) required: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// For which projects a hook is.
#[derive(Debug, Args, Limits)]
pub(crate) struct Scope {
    /// Into the settings of the project in this folder, and not the user's own
    #[arg(long)]
    pub(crate) project: bool,
    /// Do not ask before a hook `stop` is written into the user's own settings, which hold in every project
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The arguments of `hook install`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Install {
    /// Into whose settings
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    /// Which hooks; `tool` where none is named, or all with `--remove`
    #[arg(value_name = "HOOK")]
    #[limits(skip)]
    pub(crate) kinds: Vec<HookKind>,
    /// Also the hook `findings`; with a pattern, for sub-agents whose type matches it, and each has to hand over a result
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[limits(max_bytes = 1024)]
    pub(crate) findings: Option<String>,
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Take them out again
    #[arg(long)]
    pub(crate) remove: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) most: Most,
    #[command(flatten)]
    pub(crate) held_to: HeldTo,
}
