//! The command line: every command, its arguments and its help.

pub(crate) mod budget;
pub(crate) mod cap;
pub(crate) mod compact;
pub(crate) mod count;
pub(crate) mod exec;
pub(crate) mod findings;
pub(crate) mod guard;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod keys;
mod log;
pub(crate) mod mcp;
pub(crate) mod read;
pub(crate) mod run;
pub(crate) mod runs;
mod serve;
pub(crate) mod setup;
pub(crate) mod sim;
pub(crate) mod store;
pub(crate) mod usage;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use endmark_envelope::{Limits, TooLarge};

use self::budget::{Budget, BudgetCommand};
use self::cap::Cap;
use self::compact::Compact;
use self::count::Count;
use self::exec::Exec;
use self::findings::Findings;
use self::init::Init;
use self::keys::Keys;
pub(crate) use self::log::{Log, LogCommand, StatusChoice};
use self::read::Read;
pub(crate) use self::serve::{LogFormat, Serve};
use self::setup::Setup;
use self::sim::Sim;
use self::store::{Doctor, StoreArgument, StoreTool};
use self::usage::Usage;

/// The format names that the command line accepts.
const FORMATS: [&str; 7] = ["auto", "json", "jsonl", "markdown", "tags", "text", "marker"];

const ABOUT: &str = "Keeps the work of language-model agents whole";
const LONG_ABOUT: &str = "\
Keeps the work of language-model agents whole: detects a reply that was cut off, requests the rest,
joins both, and reports when it cannot do so with certainty.";
const AFTER: &str = "\
Examples:
  endmark demo                                 see how it works in a minute, without account or network
  endmark serve                                a gateway on 127.0.0.1:4141 that delivers whole replies
  endmark detect reply.json                    is this text whole?
  endmark stitch first.json rest.json          join the pieces of a reply
  make 2>&1 | endmark cap                      shorten the output for a model

Exit codes: 0 success; 1 negative result; 2 bad usage or invalid input; 3 an upstream failed; 4 the store
failed; 70 a bug in Endmark; 130 interrupted.";

/// The id of the option `--set`, which [`crate::definition`] adds to every command.
pub(crate) const SET_OPTION_ID: &str = "sets";

/// The command line of `endmark`.
#[derive(Debug, Parser)]
#[command(name = "endmark", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER)]
#[command(arg_required_else_help = true, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Read only this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Set a configuration key, as in `resume.mode=on`; can be repeated
    #[arg(id = SET_OPTION_ID, long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Print one JSON envelope on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only the result and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log more; repeat it to log everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colours; `auto`: on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the gateway: clients connect to it and receive whole replies instead of cut ones
    #[command(after_help = "\
Examples:
  endmark serve
  endmark serve --upstream http://127.0.0.1:8080/v1
  endmark serve --listen 0.0.0.0:4141 --set 'allowed_hosts=gateway.example.com' --set limits.requests=200
  endmark serve --set tls.certificate=chain.pem --set tls.key=key.pem
  endmark serve --log json 2>> endmark.log
  endmark serve --fault cut@20,drop@10%        (rehearsal: can your application handle failures?)
  OPENAI_BASE_URL=http://127.0.0.1:4141/v1 my-agent

Signals: SIGTERM and SIGINT stop it when the current replies have ended, or after [limits] drain_seconds; a second
signal stops it at once. SIGHUP reloads the configuration; an invalid one is reported and changes nothing.
Exit codes: 0 stopped; 1 replies were cut off; 2 the configuration or the address is unusable; 4 the store is unusable.")]
    Serve(Serve),
    /// Show how cut replies are recovered, next to the replies without Endmark; needs no account and no network
    #[command(after_help = "\
Examples:
  endmark demo
  endmark demo --json | jq '.data.scenes[].whole'")]
    Demo,
    /// Check whether a text is whole
    #[command(after_help = "\
Examples:
  endmark detect reply.json
  curl -s … | endmark detect --format json -
  endmark detect --marker '<<END>>' report.txt
  endmark detect --complete cut.json | jq .        (lists the unfinished parts on standard error)
  endmark detect --save-state reply.state < part-1; endmark detect --state reply.state < part-2
  endmark detect --batch < replies.jsonl

Batch: reads JSON Lines, {\"id\",\"format\",\"text\"} or {\"id\",\"format\",\"base64\"}; writes one result per line, in order.
With \"complete\":true the result also has the closed text, \"completed\"; \"lenient\":true is --lenient for one line.
Exit codes: 0 whole; 1 truncated, malformed or undecided; 2 with --batch: a line was invalid.")]
    Detect(Detect),
    /// Join the parts of a reply
    #[command(after_help = "\
Examples:
  endmark stitch first.json rest.json > whole.json
  endmark stitch --from token --format json first.json rest.json
  endmark stitch --batch < pieces.jsonl

Batch: reads JSON Lines, {\"id\",\"format\",\"chunks\":[initial, continuation, …],\"from\"}; writes one result per line, in order.
Exit codes: 0 whole; 1 ambiguous, or not verified as whole; 2 with --batch: a line was invalid.")]
    Stitch(Stitch),
    /// Shorten a tool's output for a model, and report what is left out
    #[command(after_help = "\
Examples:
  cargo test 2>&1 | endmark cap
  endmark cap --max-chars 20000 build.log
  gh api --paginate repos/o/r/issues | endmark cap --max-tokens 5000 --no-store
  endmark cap --batch < outputs.jsonl

Endmark keeps the beginning, the end and the error lines of a text; the first, the unusual and the last items of
a list; and the structure of a JSON document. Markers in the result state what is missing. Rules: docs/cap.md.
Batch: reads JSON Lines, {\"id\",\"format\",\"text\"} or {\"id\",\"format\",\"base64\"}, with \"max_chars\", \"max_bytes\" or
\"max_tokens\", \"max_items\" and \"keep\"; writes one result per line, in order.
Exit codes: 0 capped, or small enough; 2 the limits are too small, or the value does not have the named format.")]
    Cap(Cap),
    /// Read part of an output that `cap` stored in full
    #[command(after_help = "\
Examples:
  endmark read h4f0c…                        the first page
  endmark read h4f0c… --lines 1200:1260
  endmark read h4f0c… --grep 'ERROR|panicked'
  endmark read h4f0c… --pointer /items/417 --json

Exit codes: 0 printed; 1 no line matches; 2 the handle is unknown or has expired, or the part does not exist.")]
    Read(Read),
    /// Ask a model for the rest of a cut text, and join both
    #[command(after_help = "\
Examples:
  endmark resume cut.json --base-url http://127.0.0.1:8080/v1 --model local
  endmark resume - --base-url https://api.openai.com/v1 --model gpt-4.1 --api-key-env OPENAI_API_KEY < cut.md")]
    Resume(Resume),
    /// Shorten a conversation, but keep the facts that its agent needs
    #[command(after_help = "\
Examples:
  endmark compact request.json --for anthropic_messages > shorter.json
  endmark compact messages.json --for openai_chat --keep-share 0.2 --json | jq .data.receipt
  endmark compact request.json --for gemini --mode emergency --trigger-tokens 500000
  endmark compact --batch < conversations.jsonl

Reads a request body or a bare list of messages, and writes the same form. Uncondensed parts stay byte for byte.
Batch: reads JSON Lines, {\"id\",\"for\",\"mode\",\"request\",\"trigger_tokens\",\"budget_tokens\",\"keep\",\"keep_share\"};
writes one result per line, in order: {\"id\",\"compacted\",\"request\",\"receipt\"}.
Exit codes: 0 compacted, or nothing to do; 2 not a conversation of this format, or with --batch: a line was invalid.")]
    Compact(Compact),
    /// Run any command within limits, and always print its result as one JSON envelope
    #[command(after_help = "\
Examples:
  endmark exec -- git log -n 20
  endmark exec -- jq .items < reply.json
  endmark exec --manifest notes.toml -- ./notes.py add --title \"$TITLE\" | jq .data
  endmark exec --cap --max-chars 20000 -- cargo test

git log, jq, curl and sqlite3 have built-in manifests; any other command uses the defaults, or a manifest of yours in TOML.
A manifest limits the arguments and standard input (checked before anything starts) and the time. It also states
the output's format (json, jsonl, text, auto), how the output shows that it was cut, and the meaning of each exit
code; docs/exec.md lists its keys. Standard output is always one JSON document. The command's standard
error is copied to standard error, up to a limit.

Exit codes: 0 success; 1 the output is cut, or the result is negative; 2 a limit is exceeded or the manifest is invalid,
nothing was started; 3 the command failed, was killed or took too long; 129, 130 and 143 a signal ended it.")]
    Exec(Exec),
    /// Check, plan and report the results of a team of agents, whole or cut
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "\
Examples:
  endmark findings protocol --agent auth-2 >> prompt.md      the prompt for an agent's result
  endmark findings check round1/*.txt                        whole or cut? which findings are complete?
  endmark findings plan --team team.json round1/*.txt        which agents repeat which work
  endmark findings report round1/*.txt round2/*.txt          the report, with what may be missing

Details: docs/findings.md."
    )]
    Findings(Findings),
    /// Check whether an artifact is finished, or whether its author just stopped
    #[command(after_help = guard::EXAMPLES)]
    Guard(guard::Guard),
    /// Supervise an agent until its artifact is finished; after each attempt the agent gets a list of what is missing
    #[command(after_help = run::EXAMPLES)]
    Run(run::Run),
    /// Show supervised runs: their state, their usage, and why they ended
    #[command(args_conflicts_with_subcommands = true, after_help = runs::EXAMPLES)]
    Runs(runs::Runs),
    /// Cap results and check artifacts inside an agent, through its own hooks
    #[command(subcommand_required = true, arg_required_else_help = true, after_help = hook::EXAMPLES)]
    Hook(hook::Hook),
    /// Wrap an MCP server: the model sees short results and can read the full ones
    #[command(subcommand_required = true, arg_required_else_help = true, after_help = mcp::EXAMPLES)]
    Mcp(mcp::Mcp),
    /// Write a small, commented configuration to start with
    #[command(after_help = "\
Examples:
  endmark init                       endmark.toml in this folder, where `endmark serve` finds it
  endmark init ~/.config/endmark/endmark.toml

An existing file is not changed. Exit codes: 0 written; 2 the file exists, or cannot be written.")]
    Init(Init),
    /// Connect a client to Endmark: show the settings it needs, write them into its configuration, or undo that
    #[command(after_help = "\
Examples:
  endmark setup claude                             show the settings, and the file for them
  endmark setup claude --write                     write ~/.claude/settings.json, and keep a copy of the original
  endmark setup claude --undo                      restore the original
  endmark setup codex --write --upstream local     use one of several upstreams
  endmark setup opencode --write --model my-model  add a separate provider with this model
  endmark setup openai --write                     write OPENAI_BASE_URL into the .env of this folder
  eval \"$(endmark setup openai | grep -v '^#' | sed 's/^/export /')\"

Comments, order and everything else in the file are preserved. An unreadable file is not changed.
Exit codes: 0 done, or nothing to do; 2 the file cannot be used, nothing was written.")]
    Setup(Setup),
    /// List recoveries: which replies were cut, and their outcomes
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
Examples:
  endmark log
  endmark log --limit 5 --status exhausted
  endmark log show 17
  endmark log show em_4f0c…         (the id in the header x-endmark-request)"
    )]
    Log(Log),
    /// Summarise cut replies, their outcomes, and the cost of resuming
    #[command(after_help = "\
Examples:
  endmark report
  endmark report --since 30d
  endmark report --json | jq '.data.would_cost'

With `resume.mode=warn` the gateway does not resume replies: the report then estimates the cost of resuming.")]
    Report(Report),
    /// Show tokens and dollars of upstream calls, by session, model, key, upstream, day or purpose
    #[command(after_help = "\
Examples:
  endmark usage
  endmark usage --by day --since 30d
  endmark usage --by session --since 2026-11-01 --until 2026-12-01 --csv > november.csv
  endmark usage --json | jq -r .data.total.usd

Calls for the rest of a cut reply are included: `--by purpose` shows their cost. The cost of a model without a price is
unknown, not 0; `[prices.\"NAME\"]` in the configuration sets its price.")]
    Usage(Usage),
    /// Show budgets, and raise the budget of a session
    #[command(after_help = "\
Examples:
  endmark budget
  endmark budget raise 0f3c9a… +50000
  endmark budget raise 0f3c9a… +2.50 --usd")]
    Budget(Budget),
    /// Manage the gateway's own keys: the admitted clients, their models and budgets
    #[command(after_help = "\
Examples:
  endmark keys add alice --models 'gpt-5*' --models claude-sonnet-5 --budget-usd 20 --per month
  endmark keys add ci --budget-tokens 2000000 --per day --until 2027-01-01
  endmark keys list
  endmark keys rotate alice --overlap 2d
  endmark keys revoke alice

A client sends its key in the header of the provider's key; the gateway replaces it with the upstream's key. With
`require_key = true` the gateway refuses clients without a key. The secret is printed once, and only its hash is stored.")]
    Keys(Keys),
    /// Copy a store from one machine to several, and back
    #[command(subcommand_required = true, arg_required_else_help = true, after_help = store::EXAMPLES)]
    Store(StoreTool),
    /// Simulate several gateways that share a database and budgets
    #[command(after_help = sim::EXAMPLES)]
    Sim(Sim),
    /// Count the tokens of a text or a conversation, and show the cost of sending it
    #[command(after_help = "\
Examples:
  endmark count --model gpt-5 README.md
  endmark count --model claude-sonnet-5 --for anthropic_messages request.json --json | jq .data.usd

Text for models with a published vocabulary is counted exactly (`exact`); all other counts are estimates.")]
    Count(Count),
    /// Show the effective configuration, and where each value comes from
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
Examples:
  endmark config
  endmark config path
  endmark --config other.toml config check"
    )]
    Config(Config),
    /// Check the setup: configuration, store, port, upstreams
    #[command(after_help = "\
Examples:
  endmark doctor
  endmark doctor --hooks                 (after `endmark hook install`)
  endmark doctor --json | jq '.data.checks[] | select(.ok | not)'")]
    Doctor(Doctor),
    /// Print the completions for a shell
    #[command(after_help = "\
Examples:
  endmark completions bash > ~/.local/share/bash-completion/completions/endmark
  endmark completions zsh > \"${fpath[1]}/_endmark\"")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = "\
Examples:
  endmark man | man -l -
  endmark man detect > endmark-detect.1")]
    Man {
        /// Print the page of this command instead of the main page
        command: Option<String>,
    },
}

impl Command {
    /// Fails if an argument exceeds its size limit, before anything is read or written (EN-4).
    pub(crate) fn check_limits(&self) -> Result<(), TooLarge> {
        match self {
            Self::Serve(arguments) => arguments.check_limits(),
            Self::Detect(arguments) => arguments.check_limits(),
            Self::Stitch(arguments) => arguments.check_limits(),
            Self::Cap(arguments) => arguments.check_limits(),
            Self::Read(arguments) => arguments.check_limits(),
            Self::Resume(arguments) => arguments.check_limits(),
            Self::Compact(arguments) => arguments.check_limits(),
            Self::Report(arguments) => arguments.check_limits(),
            Self::Usage(arguments) => arguments.check_limits(),
            Self::Count(arguments) => arguments.check_limits(),
            Self::Budget(arguments) => match &arguments.command {
                Some(BudgetCommand::Raise(raise)) => raise.check_limits(),
                Some(BudgetCommand::Forfeit(forfeit)) => forfeit.check_limits(),
                None => arguments.store.check_limits(),
            },
            Self::Keys(arguments) => arguments.command.check_limits(),
            Self::Store(arguments) => arguments.check_limits(),
            Self::Sim(arguments) => arguments.check_limits(),
            Self::Log(arguments) => arguments.store.check_limits(),
            Self::Doctor(arguments) => arguments.check_limits(),
            Self::Findings(arguments) => arguments.check_limits(),
            Self::Guard(arguments) => arguments.check_limits(),
            Self::Run(arguments) => arguments.check_limits(),
            Self::Runs(arguments) => arguments.check_limits(),
            Self::Hook(arguments) => arguments.check_limits(),
            Self::Mcp(arguments) => arguments.check_limits(),
            Self::Init(arguments) => arguments.check_limits(),
            Self::Setup(arguments) => arguments.check_limits(),
            // `exec` checks its input against its manifest. The other commands take words from a fixed list.
            Self::Demo | Self::Exec(_) | Self::Config(_) | Self::Completions { .. } | Self::Man { .. } => {
                Ok(())
            }
        }
    }
}

/// The options for the expected format of a text.
#[derive(Debug, Args, Limits)]
pub(crate) struct FormatArguments {
    /// The format of the text; `auto` detects and reports it
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS))]
    pub(crate) format: Option<String>,
    /// The text must end with this marker (implies `--format marker`)
    #[arg(long, value_name = "MARKER")]
    #[limits(max_bytes = 1024)]
    pub(crate) marker: Option<String>,
}

/// The arguments of `detect`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Detect {
    /// The text file; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArguments,
    /// Accept raw line feeds and other control characters in JSON strings, as models write them
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Print the text as closed JSON, without values that may still change
    #[arg(long)]
    pub(crate) complete: bool,
    /// Save the detector's state in this file, to continue later with more text
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "complete", "state"])]
    #[limits(skip)]
    pub(crate) save_state: Option<PathBuf>,
    /// Continue from the state in this file: read only the new text, report on the whole text, and save the state again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "complete"])]
    #[limits(skip)]
    pub(crate) state: Option<PathBuf>,
    /// Read many texts as JSON Lines, and write one result per line
    #[arg(long)]
    pub(crate) batch: bool,
}

/// The arguments of `stitch`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Stitch {
    /// The cut text, then its continuations in order; with --batch at most one JSON Lines file
    #[arg(value_name = "INITIAL CONTINUATION", required_unless_present = "batch")]
    #[limits(skip)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArguments,
    /// Where the model was asked to continue: at the cut (prefill), or after the last settled token (prompt)
    #[arg(long, value_name = "WHERE", default_value = "unknown")]
    #[limits(skip)]
    pub(crate) from: FromChoice,
    /// Read many replies as JSON Lines, and write one result per line
    #[arg(long)]
    pub(crate) batch: bool,
}

/// Where a model was asked to continue (PC-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FromChoice {
    Cut,
    Token,
    Unknown,
}

/// The arguments of `resume`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Resume {
    /// The cut text file; `-`: standard input
    #[arg(value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: PathBuf,
    /// Address of the model's server, including the API version
    #[arg(long, value_name = "URL")]
    #[limits(max_bytes = 2048)]
    pub(crate) base_url: String,
    /// The model to ask
    #[arg(long, value_name = "MODEL")]
    #[limits(max_bytes = 255)]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) format: FormatArguments,
    /// Send the key from this environment variable
    #[arg(long, value_name = "NAME")]
    #[limits(max_bytes = 255)]
    pub(crate) api_key_env: Option<String>,
    /// The original request to the model, as context for the continuation
    #[arg(long, value_name = "FILE")]
    #[limits(skip)]
    pub(crate) prompt_context: Option<PathBuf>,
}

/// The arguments of `report`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Report {
    /// Length of the period until now: a number with m, h, d or w
    #[arg(long, value_name = "SPAN", default_value = "7d")]
    #[limits(max_bytes = 32)]
    pub(crate) since: String,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
}

/// The arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
}

/// The subcommands of `config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key with its value and its source, as TOML
    Show,
    /// Print the path of the configuration file
    Path,
    /// Check whether the configuration is valid
    Check,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::definition;

    #[test]
    fn the_definition_is_valid_and_every_command_has_examples() {
        definition().debug_assert();
        for command in definition().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n"), "{}", command.get_name());
        }
    }

    #[test]
    fn the_format_argument_accepts_all_formats_of_the_core() {
        for name in FORMATS {
            assert_eq!(endmark_text::Format::parse(name, Some("∎")).unwrap().name(), name);
        }
    }
}
