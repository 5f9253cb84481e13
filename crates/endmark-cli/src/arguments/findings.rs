//! The arguments of `endmark findings`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use endmark_envelope::{Limits, TooLarge};

#[derive(Debug, Args)]
pub(crate) struct Findings {
    #[command(subcommand)]
    pub(crate) command: FindingsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FindingsCommand {
    /// Check whether each agent's result is whole, and which findings are complete or cut
    #[command(after_help = "\
Examples:
  endmark findings check auth-2.txt
  endmark findings check round1/*.txt --json | jq '.data.results[] | {agent_id, cut}'
  my-agent … | endmark findings check -

Exit codes: 0 all results are whole, and all findings complete; 1 a result is truncated, or a finding is incomplete.")]
    Check(Check),
    /// Estimate the size of a result before it is written, and compress it if it exceeds 40 % of the remaining budget
    #[command(after_help = "\
Examples:
  endmark findings fit --findings 12 --budget-left 9000
  endmark findings fit --budget-left 9000 draft.txt > result.txt

The estimate is findings × 300 + 200 tokens. Above 40 % of the budget evidence is shortened to its most critical
line, findings with the same CWE and file are merged, and flows below High become source → sink.
Exit codes: 0 it fits; 1 it is too large even after compression, or the draft is cut.")]
    Fit(Fit),
    /// Print the instructions for an agent's prompt: markers, estimate, compression, checkpoints
    #[command(after_help = "\
Examples:
  endmark findings protocol --agent auth-2 --dimensions 'authentication,session handling' >> prompt.md
  endmark findings protocol --agent auth-2 --max-turns 13 --max-findings 5 --budget-left 20000
  endmark findings protocol --agent auth-2 --form jsonl")]
    Protocol(Protocol),
    /// Show the progress that agents report, and which checkpoints are missing
    #[command(after_help = "\
Examples:
  endmark findings progress round1/*.txt
  endmark findings progress --turn 37 auth-2.txt
  endmark findings progress --follow auth-2.txt       (until its result is whole)")]
    Progress(Progress),
    /// Plan which agents repeat which work after a cut: retry, next round, emergency agent
    #[command(after_help = "\
Examples:
  endmark findings plan --team team.json round1/*.txt
  endmark findings plan --team team.json --json round1/*.txt round2/*.txt | jq '.data.runs[]'

List all results so far, in the order in which the agents delivered them. The team's file:
  {\"agents\": [{\"agent_id\": \"auth-2\", \"dimensions\": [\"authentication\"], \"max_turns\": 40}], \"rounds\": 2}
A result that does not name its agent belongs to the agent in its file name: auth-2.txt, auth-2.retry.txt.
An agent of the team without any file counts as cut, unless --running says that it may still be working.")]
    Plan(Plan),
    /// Merge rounds and agents into one list, and join duplicates
    #[command(after_help = "\
Examples:
  endmark findings merge round1/*.txt round2/*.txt > merged.txt

The output has its end marker only if nothing is missing.")]
    Merge(Merge),
    /// Write the final report, including what may be missing from it
    #[command(after_help = "\
Examples:
  endmark findings report --team team.json round1/*.txt round2/*.txt > report.md
  endmark findings report --to sarif round1/*.txt > report.sarif")]
    Report(Report),
}

impl Findings {
    /// Fails if an argument exceeds its size limit (EN-4).
    pub(crate) fn check_limits(&self) -> Result<(), TooLarge> {
        match &self.command {
            FindingsCommand::Protocol(arguments) => arguments.check_limits(),
            // The other subcommands take files and numbers.
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Results or whole transcripts; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// With --json: continue the list after the page that returned this cursor; the files are read again
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Fit {
    /// The draft of a result; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The number of context tokens that are left
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget_left: u64,
    /// Estimate the size of this many findings, without a draft
    #[arg(long, value_name = "N", conflicts_with = "files")]
    pub(crate) findings: Option<u64>,
    /// With --json: continue the list after the page that returned this cursor; the files are read again
    #[arg(long, value_name = "CURSOR", conflicts_with = "findings")]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Protocol {
    /// The agent's name
    #[arg(long, value_name = "ID")]
    #[limits(max_bytes = 255)]
    pub(crate) agent: Option<String>,
    /// The dimensions to cover, separated by commas
    #[arg(long, value_name = "LIST")]
    #[limits(max_bytes = 4096)]
    pub(crate) dimensions: Option<String>,
    /// The number of context tokens that the agent has left
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget_left: Option<u64>,
    /// The most turns that the agent may take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// The most findings that the agent may report
    #[arg(long, value_name = "N")]
    pub(crate) max_findings: Option<u32>,
    /// The requested form: lines with names and values, or JSON Lines with one finding per line
    #[arg(long, value_name = "FORM", default_value = "text")]
    #[limits(skip)]
    pub(crate) form: ProtocolForm,
}

/// The forms that a prompt can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolForm {
    Text,
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct Progress {
    /// Transcripts; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The agent's current turn, so that a missing last checkpoint is detected, too
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// Keep reading as the file grows, until its result is whole
    #[arg(long)]
    pub(crate) follow: bool,
    /// With --follow: stop when the file has not grown for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "follow")]
    pub(crate) idle: u64,
    /// With --json: continue the list after the page that returned this cursor; the files are read again
    #[arg(long, value_name = "CURSOR", conflicts_with = "follow")]
    pub(crate) cursor: Option<String>,
}

/// The options that describe a team and its results.
#[derive(Debug, Args)]
pub(crate) struct TeamArguments {
    /// All results so far, in the order in which the agents delivered them; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The agents of the team, with their dimensions (JSON)
    #[arg(long, value_name = "TEAM.json")]
    pub(crate) team: Option<PathBuf>,
    /// Agents that have delivered nothing may still be working
    #[arg(long)]
    pub(crate) running: bool,
    /// With --json: continue the list after the page that returned this cursor; the files are read again
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) team: TeamArguments,
    /// The number of rounds, instead of the number in the team's file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// Plan no emergency agent after the last round
    #[arg(long)]
    pub(crate) no_emergency: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    #[command(flatten)]
    pub(crate) team: TeamArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) team: TeamArguments,
    /// The format of the report
    #[arg(long, value_name = "FORM", default_value = "markdown")]
    pub(crate) to: ReportForm,
}

/// The formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportForm {
    Markdown,
    Json,
    Sarif,
}
