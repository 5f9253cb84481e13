//! The arguments of `endmark run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use endmark_config::Override;
use endmark_envelope::Limits;
use endmark_guard::Agent;
use serde::{Deserialize, Serialize};

use crate::arguments::store::StoreArgument;

/// The examples at the end of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark run --template stages/report.md --artifact report.md --prompt-file task.md -- \\
    claude -p {prompt} --output-format stream-json --verbose --permission-mode acceptEdits
  endmark run --template report.yaml --artifact report.md --prompt 'Write report.md' -- codex exec --json {prompt}
  endmark run --template report.yaml --artifact report.md -- ./agent.sh        (reads the retry prompt on standard input)
  endmark run --spec runs.toml --parallel 4

Endmark starts the agent, reads its stream, and checks the artifact when the agent stops. If the artifact is not finished, the
agent continues in its session. Its prompt then lists what is missing: in place of {prompt} in the command, or else on standard
input, and always in ENDMARK_RETRY_PROMPT. Neither the agent's own statements nor its exit code count as proof.
Exit codes: 0 the artifact is finished; 1 the run was released with an unfinished artifact; 2 the criteria or an option
cannot be used, nothing was started; 3 the agent failed or could not be started; 129, 130 and 143 a signal ended it.
Several runs exit with the worst of their codes.";

// Fields: one for each option.
#[derive(Debug, Args, Limits)]
pub(crate) struct Run {
    /// Check the artifact against this: a Markdown template with `successCriteria`, or criteria in YAML, TOML or JSON
    #[arg(long, value_name = "TEMPLATE", required_unless_present = "spec")]
    #[limits(skip)]
    pub(crate) template: Option<PathBuf>,
    /// The file that the agent must write
    #[arg(long, value_name = "ARTIFACT", required_unless_present = "spec")]
    #[limits(skip)]
    pub(crate) artifact: Option<PathBuf>,
    /// The agent whose output format to read; by default the name of its program decides
    #[arg(long, value_name = "AGENT")]
    #[limits(skip)]
    pub(crate) agent: Option<AgentChoice>,
    /// The task of the agent
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    #[limits(max_bytes = 131_072)]
    pub(crate) prompt: Option<String>,
    /// The task of the agent, from a file
    #[arg(long, value_name = "FILE")]
    #[limits(skip)]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Start the agent at most N times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_attempts: u32,
    /// Time limit of all attempts together: a number with s, m or h
    #[arg(long, value_name = "SPAN", default_value = "4h")]
    #[limits(max_bytes = 32)]
    pub(crate) max_time: String,
    /// Most dollars for all attempts together, as the agent reports its costs
    #[arg(long, value_name = "USD")]
    #[limits(skip)]
    pub(crate) max_usd: Option<f64>,
    /// Time limit of one attempt
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    #[limits(max_bytes = 32)]
    pub(crate) attempt_time: String,
    /// Longest silence of the agent
    #[arg(long, value_name = "SPAN", default_value = "10m")]
    #[limits(max_bytes = 32)]
    pub(crate) silence: String,
    /// Time for an agent to end after SIGTERM
    #[arg(long, value_name = "SPAN", default_value = "5s")]
    #[limits(max_bytes = 32)]
    pub(crate) grace: String,
    /// Size of the model's context in tokens, if neither the agent nor the table of models states it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit_tokens: Option<u64>,
    /// Start the runs of this TOML file: a table `[[run]]` for each, with these options as defaults
    #[arg(long, value_name = "FILE")]
    #[limits(skip)]
    pub(crate) spec: Option<PathBuf>,
    /// Run at most this many runs of the file at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256), requires = "spec")]
    pub(crate) parallel: u16,
    /// Start a gateway between each agent and its model: it counts usage, checks `--max-usd` before each call,
    /// and recovers cut replies
    #[arg(long)]
    pub(crate) through: bool,
    /// Append events to this file, as JSON Lines
    #[arg(long, value_name = "FILE")]
    #[limits(skip)]
    pub(crate) events: Option<PathBuf>,
    /// POST events to this address as JSON (key `runs.webhook`); no run waits for it or fails because of it
    #[arg(long, value_name = "URL")]
    #[limits(max_bytes = 4096)]
    pub(crate) webhook: Option<String>,
    /// Keep the agent's output in this folder; by default next to the store
    #[arg(long, value_name = "FOLDER")]
    #[limits(skip)]
    pub(crate) output_folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// The agent's command and its arguments, after `--`; they are run directly, without a shell
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "spec")]
    #[limits(skip)]
    pub(crate) command: Vec<OsString>,
}

impl Run {
    /// Returns the configuration overrides.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        let webhook = self.webhook.iter().map(|value| Override {
            flag: "--webhook".to_owned(),
            key: "runs.webhook".to_owned(),
            value: value.clone(),
        });
        self.store.overrides().into_iter().chain(webhook).collect()
    }
}

/// The agents that Endmark knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentChoice {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Any command; only its exit is evaluated
    Plain,
}

impl From<AgentChoice> for Agent {
    fn from(choice: AgentChoice) -> Self {
        match choice {
            AgentChoice::Claude => Self::Claude,
            AgentChoice::Codex => Self::Codex,
            AgentChoice::Gemini => Self::Gemini,
            AgentChoice::Opencode => Self::Opencode,
            AgentChoice::Plain => Self::Plain,
        }
    }
}
