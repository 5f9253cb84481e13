//! The arguments of `endmark hook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use endmark_agents::hooks::{HookAgent, HookKind};
use endmark_envelope::{Limits, TooLarge};

use crate::arguments::cap::AmountLimit;
use crate::arguments::store::StoreArgument;

/// The examples at the end of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark hook install --agent claude --dry-run tool            show what would be written, and where
  endmark hook install --agent claude tool --max-chars 20000    cap the results of tools
  endmark hook install --agent codex --project stop --artifact report.md --template stages/report.md
  endmark hook install --agent claude tool compact              install two hooks at once
  endmark hook install --agent claude --findings='audit.*'       require whole findings from sub-agents
  endmark hook install --agent claude stop --artifact report.md --yes     for every project of the user
  endmark hook install --agent gemini --remove                  remove all hooks of Endmark
  endmark doctor --hooks                                        check whether the hooks work

Agents run `tool`, `stop`, `compact` and `findings`: these read an event on standard input, and print a reply in the agent's own
format, or nothing. If one of them fails, nothing changes for the agent: it prints one line on standard error, and exits with 0.";

#[derive(Debug, Args)]
pub(crate) struct Hook {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

/// The commands that agents run, and the one that installs them.
#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Cap a tool's result before the model reads it
    Tool(Tool),
    /// Let an agent stop only when its artifact is whole, or after N attempts
    Stop(Stop),
    /// Preserve important values of a conversation when the agent compacts it
    Compact(Compact),
    /// Instruct sub-agents to deliver whole findings, and make them repeat cut ones
    Findings(Findings),
    /// Write hooks into an agent's settings, or remove them
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

#[derive(Debug, Args, Limits)]
pub(crate) struct Tool {
    /// The agent that sends the event
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    #[command(flatten)]
    pub(crate) most: AmountLimit,
    /// Most items of a list or rows of a table (key `cap.max_items`)
    #[arg(long, value_name = "N")]
    pub(crate) max_items: Option<u64>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Stop {
    /// The agent that sends the event
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    #[command(flatten)]
    pub(crate) held_to: StopRequirement,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The artifact that an agent must finish before it may stop.
#[derive(Debug, Clone, Args, Limits)]
pub(crate) struct StopRequirement {
    /// The file that must be whole; a relative path starts at the agent's project folder
    #[arg(long, value_name = "ARTIFACT", overrides_with = "artifact")]
    #[limits(skip)]
    pub(crate) artifact: Option<PathBuf>,
    /// Check the artifact against this template, as `endmark guard --template` does
    #[arg(long, value_name = "TEMPLATE")]
    #[limits(skip)]
    pub(crate) template: Option<PathBuf>,
    /// Require this many lines that are not blank
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) min_lines: Option<u32>,
    /// Require a section with this title and some content; can be repeated
    #[arg(long = "section", value_name = "SECTION")]
    #[limits(max_bytes = 1024, max_items = 1000)]
    pub(crate) sections: Vec<String>,
    /// Let the agent stop after this many attempts; Claude Code itself ends a turn after 8
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=8))]
    #[limits(skip)]
    pub(crate) attempts: u32,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Compact {
    /// The agent that sends the event
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Findings {
    /// The agent that sends the event
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    /// Require a result of every sub-agent, also of one that has not started to write it
    #[arg(long)]
    pub(crate) required: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The projects that a hook applies to.
#[derive(Debug, Args, Limits)]
pub(crate) struct Scope {
    /// Use the settings of the project in this folder instead of the user's settings
    #[arg(long)]
    pub(crate) project: bool,
    /// Write a `stop` hook into the user's settings, which apply to every project, without confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Install {
    /// The agent whose settings are changed
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: HookAgent,
    /// The hooks; by default `tool`, or with `--remove` all
    #[arg(value_name = "HOOK")]
    #[limits(skip)]
    pub(crate) kinds: Vec<HookKind>,
    /// Add the hook `findings`; with a pattern, sub-agents of a matching type must deliver a result
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[limits(max_bytes = 1024)]
    pub(crate) findings: Option<String>,
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Remove the hooks
    #[arg(long)]
    pub(crate) remove: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) most: AmountLimit,
    #[command(flatten)]
    pub(crate) held_to: StopRequirement,
}
