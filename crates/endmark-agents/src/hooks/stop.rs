//! `endmark hook stop`: checks the artifact of an agent that wants to stop, up to a number of attempts (CG-1, CG-5).

mod recorded;

use std::path::Path;

use endmark_config::{Environment, Settings};
use endmark_failure::CommandError;
use endmark_guard::{
    Artifact, Assessment, AttemptVerdict, Ceiling, Decision, Facts, Guard, Reason, RetryPrompt, State, decide,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::agent::HookAgent;
use super::attempts::{Attempts, Record, hexadecimal};
use super::event::Event;

/// An agent that wants to stop, with the checks.
pub struct StopRequest<'a> {
    /// The agent.
    pub agent: HookAgent,
    /// The event.
    pub event: &'a Event,
    /// The artifact's name.
    pub named_path: &'a Path,
    /// The artifact's content, if it exists.
    pub text: Option<&'a str>,
    /// The checks.
    pub guard: &'a Guard,
    /// The number of attempts after which the agent is released.
    pub attempts: u32,
}

/// Returns the output for the event, or `None` if the agent may stop. `warn` gets messages for the user.
pub fn stop(
    stopped: &StopRequest<'_>,
    settings: &Settings,
    environment: &Environment,
    warn: &dyn Fn(&str),
) -> Result<Option<Value>, CommandError> {
    let StopRequest { agent, event, named_path: named, text, guard, attempts: most } = *stopped;
    let resolved = |path| event.resolve(agent, environment, path);
    let name = named.to_string_lossy();
    let artifact = text.map(|text| Artifact::read_file(text, &name));
    let report = artifact.as_ref().map_or_else(Assessment::missing, |artifact| guard.judge(artifact));
    let fingerprint = fingerprint(text, &report);

    let attempts = Attempts::open(settings, agent, event.session()?, &resolved(named))?;
    let decided = attempts.change(|record| {
        let decision = next_decision(record, &report, &fingerprint, most);
        record.note(decision, &fingerprint);
        decision
    })?;
    let attempt = decided.record.attempts;
    let project = resolved(Path::new("")).display().to_string();
    // A release is recorded only once, however often the agent stops afterwards.
    let is_noted = decided.was_released && decided.record.state == State::Released;
    let recorded =
        if is_noted { Ok(()) } else { recorded::record(settings, &decided.record, project, &report, most) };
    if let Err(error) = recorded {
        warn(&format!("the agent's outcome was not recorded: {error}"));
    }
    Ok(match decided.decision {
        Decision::Succeed => None,
        Decision::Retry(_) => {
            let prompt = RetryPrompt {
                path: &name,
                artifact: artifact.as_ref(),
                report: &report,
                attempt: (attempt, most),
                verdict: AttemptVerdict::Whole,
                evidence: &[],
                last_message: event.last_message(),
                task: None,
            };
            Some(agent.continue_answer(&prompt.text()))
        }
        Decision::Release(reason) | Decision::Fail(reason) => {
            let message = format!(
                "Endmark: `{name}` is not finished after attempt {attempt} of {most}; the agent may stop ({})",
                reason.name()
            );
            warn(&message);
            Some(HookAgent::message_answer(&message))
        }
    })
}

/// Decides about this attempt. A released agent may always stop in this session.
fn next_decision(record: &Record, report: &Assessment, fingerprint: &str, attempts: u32) -> Decision {
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
    // The agent's process continues in any case, so it is released and has not failed.
    match decision {
        Decision::Fail(reason) => Decision::Release(reason),
        other => other,
    }
}

/// Returns a fingerprint of the artifact and its faults. It stays equal if an attempt changes nothing.
fn fingerprint(text: Option<&str>, report: &Assessment) -> String {
    let mut hash = Sha256::new();
    hash.update(text.unwrap_or_default());
    for finding in report.findings() {
        hash.update([0]);
        hash.update(finding.check.name());
    }
    hexadecimal(&hash.finalize())
}
