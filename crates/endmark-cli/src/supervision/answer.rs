//! The results of runs, for people and for programs.

use std::fmt::Write;
use std::io;

use endmark_envelope::ErrorBody;
use endmark_failure::{CommandError, ExitStatus, start_error, to_single_line};
use endmark_guard::{Finding, Reason};
use endmark_runs::{AgentRun, Task};
use serde::Serialize;

use super::concurrent_runs::{FinishedRun, FinishedRuns};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::{Paint, Painter};
use crate::view::runs as table;
use crate::view::table::Layout;

/// The answer of `run`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum SupervisionReport {
    /// The answer for a command line.
    One(Box<RunAnswer>),
    /// The answer for a file of runs.
    All {
        /// The runs, in the order of the file.
        runs: Vec<RunAnswer>,
        /// Runs that were not started because of a signal.
        not_started: Vec<String>,
    },
}

/// A finished run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunAnswer {
    // This name is part of the published interface.
    #[serde(rename = "agentRun")]
    agent_run: AgentRun,
    /// What the artifact lacks.
    findings: Vec<Finding>,
    /// The folder with the agent's output.
    output_folder: Option<String>,
}

/// Returns the exit code of a finished run.
fn exit_code(over: &FinishedRun) -> ExitStatus {
    over.outcome.signal.and_then(signal_exit).unwrap_or(match over.outcome.run.state.as_str() {
        "succeeded" => ExitStatus::Success,
        "released" => ExitStatus::Negative,
        _ => ExitStatus::Upstream,
    })
}

fn signal_exit(signal: i32) -> Option<ExitStatus> {
    match signal {
        1 => Some(ExitStatus::HungUp),
        2 => Some(ExitStatus::Interrupted),
        15 => Some(ExitStatus::Terminated),
        _ => None,
    }
}

/// Builds the answer for one run.
pub(super) fn answer_one(painter: Painter, over: FinishedRun) -> Result<Answer, CommandError> {
    let exit = exit_code(&over);
    let run = &over.outcome.run;
    let paint = match run.state.as_str() {
        "succeeded" => Paint::Good,
        "released" => Paint::Doubt,
        _ => Paint::Bad,
    };
    let is_finished = run.state == "succeeded";
    let verdict = if is_finished { "is finished" } else { "is not finished" };
    let attempts = match run.attempt {
        1 => "1 attempt".to_owned(),
        attempt => format!("{attempt} attempts"),
    };
    let artifact = to_single_line(&run.artifact);
    let mut text = format!("`{artifact}` {} after {attempts}\n", painter.paint(paint, verdict));
    add_findings(&mut text, &over);
    let reason = run.reason.clone().unwrap_or_else(|| run.state.clone());
    if let (Some(folder), None) = (&over.transcripts, &over.outcome.start_error) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Output of the agent: {}", to_single_line(&folder.display().to_string()));
    }
    let _ = writeln!(text, "Details: endmark runs show {}", run.id);
    let (message, hint) = match &over.outcome.start_error {
        Some(error) => start_failure(run, error),
        None if reason == Reason::GatewayBypassed.name() => (
            format!("the agent bypassed the run's gateway and was stopped: {}", run.evidence.join("; ")),
            "Check the agent's settings for another address, provider or login, or run it without `--through`."
                .to_owned(),
        ),
        None => (
            format!("the run ended without a finished `{artifact}`: {} ({reason})", describe_reason(&reason)),
            "The lines above list what is missing, and the folder with the agent's output.".to_owned(),
        ),
    };
    let answer = Answer::yes(to_data(&SupervisionReport::One(Box::new(RunAnswer::new(over))))?, text);
    if exit == ExitStatus::Success {
        return Ok(answer);
    }
    Ok(answer.with_error(ErrorBody::new(reason.to_lowercase(), exit.code(), message).with_hint(hint)))
}

/// Returns why the agent of a run was not started, and what to do about it.
fn start_failure(run: &AgentRun, error: &io::Error) -> (String, String) {
    let program = run.command.first().map_or("", String::as_str);
    let body = start_error(&to_single_line(program), error);
    (body.message, body.hint.unwrap_or_default())
}

/// Describes why a run ended. An unknown reason is returned unchanged.
fn describe_reason(reason: &str) -> &str {
    let found = Reason::ALL.into_iter().find(|known| known.name() == reason);
    match found {
        Some(Reason::ContextGuardFail) => "it is incomplete",
        Some(Reason::ContextExhaustion) => "it is incomplete, and no attempts or context are left",
        Some(Reason::Budget) => "the run reached its limit of time, money or turns",
        Some(Reason::Stalled) => "the agent hung, or its attempts changed nothing",
        Some(Reason::AttemptTime) => "an attempt reached its time limit",
        Some(Reason::AgentCrash) => "the agent failed",
        Some(Reason::GatewayBypassed) => "the agent did not use the run's gateway",
        Some(Reason::Interrupted) => "the run was stopped",
        Some(Reason::SupervisorLost) => "the run's supervisor was killed",
        None => reason,
    }
}

/// Builds the answer for several runs: a table, their findings, and the worst exit code.
pub(super) fn answer_all(layout: Layout, all: FinishedRuns) -> Result<Answer, CommandError> {
    let runs: Vec<AgentRun> = all.finished.iter().map(|over| over.outcome.run.clone()).collect();
    let mut text = table::table_lines(&runs, layout).join("\n") + "\n";
    for over in &all.finished {
        add_findings(&mut text, over);
        if let Some(error) = &over.outcome.start_error {
            let (message, hint) = start_failure(&over.outcome.run, error);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {message}. {hint}");
        }
    }
    let name = |task: &Task| task.name.clone().unwrap_or_else(|| task.artifact.display().to_string());
    let not_started: Vec<String> = all.not_started.iter().map(name).collect();
    for name in &not_started {
        let _ = writeln!(text, "  {} was not started", to_single_line(name));
    }
    // A signal may arrive between two runs, so it may not have ended any finished run.
    let exits = all.finished.iter().map(exit_code).chain(all.signal.and_then(signal_exit));
    let exit = exits.max_by_key(|exit| exit.code()).unwrap_or(ExitStatus::Success);
    let count = all.finished.len() + not_started.len();
    let finished = all.finished.iter().filter(|over| over.outcome.run.state == "succeeded").count();
    let _ = writeln!(text, "{finished} of {count} runs succeeded");
    let runs = all.finished.into_iter().map(RunAnswer::new).collect();
    let answer = Answer::yes(to_data(&SupervisionReport::All { runs, not_started })?, text);
    if exit == ExitStatus::Success {
        return Ok(answer);
    }
    let message = format!("{} of {count} runs did not succeed", count - finished);
    let body = ErrorBody::new("runs_unfinished", exit.code(), message);
    Ok(answer.with_error(body.with_hint("`endmark runs show ID` shows the details of a run.")))
}

impl RunAnswer {
    fn new(over: FinishedRun) -> Self {
        Self {
            agent_run: over.outcome.run,
            findings: over.outcome.findings,
            output_folder: over.transcripts.map(|folder| folder.display().to_string()),
        }
    }
}

fn add_findings(text: &mut String, over: &FinishedRun) {
    for finding in &over.outcome.findings {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {}:{}:{} {}: {}",
            to_single_line(&over.outcome.run.artifact),
            finding.line,
            finding.column,
            finding.check.name(),
            to_single_line(&finding.why)
        );
    }
}
