//! `endmark run`: an agent's command, supervised until its artifact is finished or there is a reason to let it go. (CG-3 to CG-5)

pub(crate) mod arguments;
mod kept;
mod span;
mod telling;

use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use endmark_envelope::{ErrorBody, Warning};
use endmark_guard::{Agent, Finding, RunLimits};
use endmark_process::Signals;
use endmark_runs::{AgentRun, RunOutcome, Task, missing_stream, run_id, supervise};
use endmark_store::{NoSecrets, Store};
use serde::Serialize;

use crate::answer::{Answer, to_data};
use crate::config::{Settings, models};
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::input::Input;
use crate::terminal::{Paint, in_one_line};
use telling::Telling;

/// How long an agent may go on behind its last event; opencode is known to hang there.
const LAST_WORD: Duration = Duration::from_secs(5);
/// How much of what an agent prints is kept for each attempt, in bytes.
const TRANSCRIPT_BYTES: u64 = 64 << 20;

/// What it answers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Report {
    agent_run: AgentRun,
    /// What the artifact lacks.
    findings: Vec<Finding>,
    /// Where what the agent printed is kept.
    output_folder: Option<String>,
}

/// Supervises the command to its end.
pub(crate) fn run(context: &Context, arguments: &arguments::Run) -> Result<Answer, CommandError> {
    let guard = super::guard::of_template(context, &arguments.template)?;
    let agent = agent(arguments)?;
    let prompt = prompt(context, arguments)?;
    let limits = RunLimits {
        attempts: NonZeroU32::new(arguments.max_attempts).unwrap_or(NonZeroU32::MIN),
        seconds: span::seconds("--max-time", &arguments.max_time)?,
        nanodollars: arguments.max_usd.map(span::nanodollars).transpose()?,
    };
    let attempt_time = span::seconds("--attempt-time", &arguments.attempt_time)?;
    let silence = span::seconds("--silence", &arguments.silence)?;
    let grace = span::seconds("--grace", &arguments.grace)?;
    let mut telling = Telling::new(context.terminal, arguments.events.as_deref())?;
    let effective = context.configuration(arguments.store.overrides())?;
    let store = Store::open(&effective.settings.store).map_err(|error| CommandError::of_store(&error))?;
    let system = |error: std::io::Error| CommandError::Upstream {
        message: format!("the system does not let it run: {error}"),
        hint: None,
    };
    let id = run_id().map_err(system)?;
    let transcripts =
        arguments.output_folder.clone().unwrap_or_else(|| beside_store(&effective.settings, &id));
    let models = models(&effective.settings);
    let task = Task {
        id,
        agent,
        command: &arguments.command,
        folder: std::env::current_dir().map_err(system)?,
        artifact: arguments.artifact.clone(),
        template: Some(arguments.template.display().to_string()),
        guard,
        prompt,
        limits,
        limit_tokens: arguments.limit_tokens,
        models: &models,
        silence: Duration::from_secs(silence.get()),
        attempt_time: Duration::from_secs(attempt_time.get()),
        last_word: LAST_WORD,
        grace: Duration::from_secs(grace.get()),
        transcripts: Some(transcripts.clone()),
        transcript_bytes: TRANSCRIPT_BYTES,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::watch().map_err(system)?;
        let outcome = supervise(&task, Some(store.recorder(NoSecrets)), &mut telling, &mut signals).await;
        store.close().await;
        Ok::<_, CommandError>(outcome)
    })?;
    let warnings = outcome.warnings.iter().chain(&telling.warnings);
    let warnings: Vec<Warning> = warnings.map(|message| Warning::notice("AGENT_RUN", message)).collect();
    let answer = answer(context, outcome, &transcripts)?;
    Ok(answer.with_warnings(configuration_warnings(&effective)).with_warnings(warnings))
}

/// The folder of a run beside the store; those of runs that are too old are removed on the way.
fn beside_store(settings: &Settings, id: &str) -> PathBuf {
    let mut folder = settings.store.path().as_os_str().to_owned();
    folder.push("-runs");
    let folder = PathBuf::from(folder);
    // As in the store, 0 days are for ever.
    let days = u32::try_from(settings.store_policy.keep_days).unwrap_or(u32::MAX);
    if days > 0 {
        kept::forget(&folder, Duration::from_hours(24) * days, SystemTime::now());
    }
    folder.join(id)
}

/// The agent that is named, or known by its program; it has to print what can be read.
fn agent(arguments: &arguments::Run) -> Result<Agent, CommandError> {
    let known = arguments.command.first().map_or(Agent::Plain, Task::agent_of);
    let agent = arguments.agent.map_or(known, Agent::from);
    match missing_stream(agent, &arguments.command) {
        None => Ok(agent),
        Some(words) => Err(CommandError::input(
            "usage",
            format!("the command of `{}` prints no events that could be read", agent.name()),
            format!(
                "Add `{words}` to it, or say `--agent plain`: then nothing but its end and the artifact counts."
            ),
        )),
    }
}

fn prompt(context: &Context, arguments: &arguments::Run) -> Result<Option<String>, CommandError> {
    let prompt = match (&arguments.prompt, &arguments.prompt_file) {
        (Some(prompt), _) => Some(prompt.clone()),
        (None, Some(path)) => Some(Input::open(Some(path), context.terminal)?.text()?),
        (None, None) => None,
    };
    let is_wanted =
        arguments.command.iter().any(|word| word.to_str().is_some_and(|word| word.contains("{prompt}")));
    if is_wanted && prompt.is_none() {
        let message = "the command has a place for a prompt, and there is none";
        return Err(CommandError::input("usage", message, "Give it with --prompt or --prompt-file."));
    }
    Ok(prompt)
}

fn answer(
    context: &Context,
    outcome: RunOutcome,
    transcripts: &std::path::Path,
) -> Result<Answer, CommandError> {
    let painter = context.terminal.output;
    let RunOutcome { run, findings, signal, not_started, .. } = outcome;
    let (paint, exit) = match run.state.as_str() {
        "succeeded" => (Paint::Good, Exit::Success),
        "released" => (Paint::Doubt, Exit::No),
        _ => (Paint::Bad, Exit::Upstream),
    };
    let exit = match signal {
        Some(1) => Exit::HungUp,
        Some(2) => Exit::Interrupted,
        Some(15) => Exit::Terminated,
        _ => exit,
    };
    let mut text = format!("{}: {}", run.id, painter.paint(paint, &run.state));
    if let Some(reason) = &run.reason {
        // Writing to a string cannot fail.
        let _ = write!(text, " {reason}");
    }
    let _ = writeln!(text, " after {} of {} attempts", run.attempt, run.max_attempts);
    for finding in &findings {
        let _ = writeln!(
            text,
            "  {}:{}:{} {}: {}",
            in_one_line(&run.artifact),
            finding.line,
            finding.column,
            finding.check.name(),
            in_one_line(&finding.why)
        );
    }
    let reason = run.reason.clone().unwrap_or_else(|| run.state.clone());
    let data = to_data(&Report {
        agent_run: run,
        findings,
        output_folder: Some(transcripts.display().to_string()),
    })?;
    let mut answer = Answer::yes(data, text);
    if exit != Exit::Success {
        let code = reason.to_lowercase();
        let (message, hint) = match &not_started {
            Some(error) => {
                (format!("the agent cannot be started: {error}"), "Check the command behind `--`.".to_owned())
            }
            None => (
                format!("the artifact is not finished: {reason}"),
                format!("What the agent printed is in `{}`.", transcripts.display()),
            ),
        };
        answer = answer.with_error(ErrorBody::new(&code, exit.code(), message).with_hint(hint));
    }
    Ok(answer)
}
