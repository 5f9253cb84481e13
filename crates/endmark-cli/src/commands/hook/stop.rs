//! `endmark hook stop`: an agent that says it is done is held to its artifact, so often and no more. (CG-1, CG-5)

mod recorded;

use std::io;
use std::path::{Path, PathBuf};

use endmark_failure::CommandError;
use endmark_guard::{
    Artifact, AttemptVerdict, Ceiling, Decision, Facts, Guard, Reason, Report, RetryPrompt, State, decide,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::arguments::{HeldTo, HookAgent, Stop};
use super::attempts::{Attempts, Record, hexadecimal};
use super::event::Event;
use crate::commands::guard as judging;
use crate::context::Context;
use crate::input::Input;

/// The answer to the event; none where the agent may stop.
pub(super) fn run(context: &Context, arguments: &Stop) -> Result<Option<Value>, CommandError> {
    let (agent, held_to) = (arguments.agent, &arguments.held_to);
    let event = Event::read(context)?;
    if event.is_waiting() {
        return Ok(None);
    }
    let effective = context.configuration(arguments.store.overrides())?;
    let resolved = |path| event.resolved(agent, &context.environment, path);
    let Some(named) = &held_to.artifact else {
        return Err(CommandError::input("usage", "no artifact is named", "Add --artifact FILE to the hook."));
    };
    let guard = guard(context, held_to, held_to.template.as_deref().map(resolved))?;
    let path = resolved(named);
    let text = match Input::open_file(&path, context.terminal) {
        Err(CommandError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        opened => Some(judging::text_of(&path, opened?.bytes_up_to(judging::MOST_BYTES)?)?),
    };
    let name = named.to_string_lossy();
    let artifact = text.as_deref().map(|text| Artifact::read_file(text, &name));
    let report = artifact.as_ref().map_or_else(Report::of_missing, |artifact| guard.judge(artifact));
    let fingerprint = fingerprint(text.as_deref(), &report);

    let attempts = Attempts::open(&effective.settings, agent, event.session()?, &path)?;
    let decided = attempts.change(|record| {
        let decision = follows(record, &report, &fingerprint, held_to.attempts);
        record.note(decision, &fingerprint);
        decision
    })?;
    let attempt = decided.record.attempts;
    let project = resolved(Path::new("")).display().to_string();
    // Once is enough, however often it stops afterwards.
    let is_noted = decided.was_released && decided.record.state == State::Released;
    let recorded = if is_noted {
        Ok(())
    } else {
        recorded::record(&effective.settings, &decided.record, project, &report, held_to.attempts)
    };
    if let Err(error) = recorded {
        context.terminal.warn(&format!("what became of the agent is not recorded: {error}"));
    }
    Ok(match decided.decision {
        Decision::Succeed => None,
        Decision::Retry(_) => {
            let prompt = RetryPrompt {
                path: &name,
                artifact: artifact.as_ref(),
                report: &report,
                attempt: (attempt, held_to.attempts),
                verdict: AttemptVerdict::Whole,
                evidence: &[],
                said: event.said(),
                task: None,
            };
            Some(agent.refused(&prompt.text()))
        }
        Decision::Release(reason) | Decision::Fail(reason) => {
            let message = format!(
                "Endmark: `{name}` is not finished after attempt {attempt} of {}; the agent is let go ({})",
                held_to.attempts,
                reason.name()
            );
            context.terminal.warn(&message);
            Some(HookAgent::said(&message))
        }
    })
}

fn guard(context: &Context, held_to: &HeldTo, template: Option<PathBuf>) -> Result<Guard, CommandError> {
    judging::criteria::guard(
        context,
        &judging::arguments::Guard {
            files: Vec::new(),
            template,
            min_lines: held_to.min_lines,
            sections: held_to.sections.clone(),
            forbidden: Vec::new(),
            forbid_only: false,
            to: judging::arguments::GuardForm::Text,
            batch: false,
        },
    )
}

/// What follows this attempt. An agent that was let go is not asked again in its session.
fn follows(record: &Record, report: &Report, fingerprint: &str, attempts: u32) -> Decision {
    let checks_pass = report.findings().is_empty();
    if !checks_pass && record.state == State::Released {
        return Decision::Release(record.reason.unwrap_or(Reason::ContextExhaustion));
    }
    let is_without_progress = record.unchanged >= 1 && record.fingerprint == fingerprint;
    let decision = decide(Facts {
        checks_pass,
        verdict: AttemptVerdict::Whole,
        is_at_risk: false,
        tries_left: attempts.saturating_sub(record.attempts + 1),
        is_without_progress,
        ceiling: Ceiling::Below,
    });
    // The agent's process goes on whatever is decided here: it is let go, and has not failed.
    match decision {
        Decision::Fail(reason) => Decision::Release(reason),
        other => other,
    }
}

/// What stands there, and what it lacks: equal where an attempt changed nothing.
fn fingerprint(text: Option<&str>, report: &Report) -> String {
    let mut hash = Sha256::new();
    hash.update(text.unwrap_or_default());
    for finding in report.findings() {
        hash.update([0]);
        hash.update(finding.check.name());
    }
    hexadecimal(&hash.finalize())
}
