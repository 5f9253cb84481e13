//! Runs a command: from its arguments to the exit code of the process.

use std::any::Any;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use clap::error::ErrorKind;
use endmark_config::Environment;
use endmark_failure::{CommandError, ExitStatus};

use crate::arguments::{Arguments, ColorChoice, Command};
use crate::commands;
use crate::context::Context;
use crate::definition;
use crate::progress::Progress;
use crate::standard_error;
use crate::view::answer::{Answer, Outcome};
use crate::view::terminal::Terminal;

/// Runs the command, shows its result, and returns the exit code.
pub(crate) fn run(typed: Vec<OsString>, environment: Environment) -> ExitStatus {
    let early = EarlyOptions::parse(&typed);
    let exit = run_and_show(typed, environment, early);
    // An error in a hook must not block its agent, because some agents treat an exit code as a verdict.
    if early.is_hook { ExitStatus::Success } else { exit }
}

fn run_and_show(typed: Vec<OsString>, environment: Environment, early: EarlyOptions) -> ExitStatus {
    let started = Instant::now();
    let arguments = match parse(typed, early.color) {
        Ok(arguments) => arguments,
        Err(error) => return report_misuse(&error, early, &environment, started),
    };
    let global = &arguments.global;
    // The output of `exec` is always JSON, because only programs read it.
    let json = !early.is_hook && (global.json || matches!(arguments.command, Command::Exec(_)));
    let terminal = Terminal::new(json, global.quiet, global.color, &environment);
    if terminal.json && answers_signals(&arguments.command) {
        // Without the watcher, a signal ends the process as usual, without an answer.
        if let Err(error) = endmark_envelope::answer_signals(started) {
            terminal.warn(&format!("cannot watch signals: {error}"));
        }
    }
    let context = Context { terminal, environment, global: arguments.global };
    let progress = Progress::start(&arguments.command, terminal);
    let ran = panic::catch_unwind(AssertUnwindSafe(|| commands::run(&context, arguments.command)));
    drop(progress);
    let shown = match ran.unwrap_or_else(|panic| Err(CommandError::Bug(panic_message(&*panic)))) {
        Ok(Outcome::Answer(answer)) => terminal.show(&answer, started.elapsed()),
        Ok(Outcome::Streamed(exit)) => Ok(exit),
        Err(error) => Err(error),
    };
    let exit = shown.unwrap_or_else(|error| terminal.show_error(&error, Vec::new(), started.elapsed()));
    standard_error::flush();
    exit
}

/// Whether a signal ends the command with an answer. Commands with their own shutdown or with partial output
/// are excluded.
fn answers_signals(command: &Command) -> bool {
    match command {
        Command::Serve(_) | Command::Exec(_) | Command::Run(_) | Command::Mcp(_) => false,
        Command::Runs(arguments) => !arguments.ends_by_itself(),
        Command::Detect(arguments) => !arguments.batch,
        Command::Stitch(arguments) => !arguments.batch,
        Command::Cap(arguments) => !arguments.batch,
        Command::Guard(arguments) => !arguments.batch,
        Command::Compact(arguments) => !arguments.batch,
        Command::Demo
        | Command::Read(_)
        | Command::Resume(_)
        | Command::Findings(_)
        | Command::Hook(_)
        | Command::Init(_)
        | Command::Setup(_)
        | Command::Log(_)
        | Command::Report(_)
        | Command::Usage(_)
        | Command::Count(_)
        | Command::Budget(_)
        | Command::Keys(_)
        | Command::Store(_)
        | Command::Sim(_)
        | Command::Config(_)
        | Command::Doctor(_)
        | Command::Completions { .. }
        | Command::Man { .. } => true,
    }
}

/// Options that are read before parsing, so that a parse error is shown in the requested form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EarlyOptions {
    json: bool,
    /// `--json` is present. `exec` answers in JSON without it, but shows its help as text.
    is_json_typed: bool,
    color: ColorChoice,
    /// An agent runs the command, which answers in the agent's format or not at all.
    is_hook: bool,
}

impl EarlyOptions {
    fn parse(typed: &[OsString]) -> Self {
        let words: Vec<&str> =
            typed.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--").collect();
        let is_color = |choice: &str| {
            words.contains(&format!("--color={choice}").as_str())
                || words.windows(2).any(|pair| pair == ["--color", choice])
        };
        let color = match (is_color("never"), is_color("always")) {
            (true, _) => ColorChoice::Never,
            (false, true) => ColorChoice::Always,
            (false, false) => ColorChoice::Auto,
        };
        let mut commands = subcommands(&words);
        let command = commands.next();
        let is_hook = command == Some("hook") && commands.next().is_some_and(|word| word != "install");
        let is_json_typed = !is_hook && words.contains(&"--json");
        let json = is_json_typed || (!is_hook && command == Some("exec"));
        Self { json, is_json_typed, color, is_hook }
    }
}

/// The global options whose value is the next word.
const OPTIONS_WITH_VALUE: [&str; 3] = ["--config", "--set", "--color"];

/// Returns the subcommands on the command line, and the words that follow them.
fn subcommands<'a>(words: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let mut is_value = false;
    words.iter().skip(1).copied().filter(move |word| {
        let is_name = !is_value && !word.starts_with('-');
        is_value = !is_value && OPTIONS_WITH_VALUE.contains(word);
        is_name
    })
}

fn parse(typed: Vec<OsString>, color: ColorChoice) -> Result<Arguments, clap::Error> {
    let color = match color {
        ColorChoice::Auto => clap::ColorChoice::Auto,
        ColorChoice::Always => clap::ColorChoice::Always,
        ColorChoice::Never => clap::ColorChoice::Never,
    };
    definition::parse_matches(definition::definition().color(color).try_get_matches_from(typed)?)
}

/// Shows an error, help or version text of clap.
fn report_misuse(
    error: &clap::Error,
    early: EarlyOptions,
    environment: &Environment,
    started: Instant,
) -> ExitStatus {
    let is_asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if early.json && !is_asked_for {
        let text = error.render().to_string();
        // The first paragraph states the error; the others repeat the usage.
        let paragraph = text.trim_start_matches("error: ").lines().take_while(|line| !line.trim().is_empty());
        let message = paragraph.map(str::trim).collect::<Vec<_>>().join(" ");
        let error = CommandError::input(
            "usage",
            message,
            "`endmark --help` lists the commands, `endmark COMMAND --help` their arguments.",
        );
        return Terminal::new(true, false, early.color, environment).show_error(
            &error,
            Vec::new(),
            started.elapsed(),
        );
    }
    if !is_asked_for {
        // If writing to standard error fails, the failure cannot be reported.
        let _ = error.print();
        return ExitStatus::Usage;
    }
    let terminal = Terminal::new(early.is_json_typed, false, early.color, environment);
    let shown = if early.is_json_typed {
        let text = error.render().to_string();
        terminal.show(&Answer::yes(serde_json::json!({ "text": text }), text), started.elapsed())
    } else {
        error
            .print()
            .and_then(|()| io::stdout().flush())
            .map(|()| ExitStatus::Success)
            .map_err(CommandError::Write)
    };
    shown.unwrap_or_else(|error| terminal.show_error(&error, Vec::new(), started.elapsed()))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
