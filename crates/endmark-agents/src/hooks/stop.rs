//! `endmark hook stop`: checks the artifact of an agent that wants to stop, and refuses a limited number of
//! stops (CG-1, CG-5).

mod recorded;

use std::path::Path;

use endmark_config::{Environment, Settings};
use endmark_failure::CommandError;
use endmark_guard::{
    Artifact, Assessment, AttemptFacts, AttemptVerdict, Ceiling, Decision, Guard, Reason, RetryPrompt, State,
    decide,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::agent::HookAgent;
use super::attempts::{AttemptFile, AttemptRecord, hexadecimal};
use super::event::HookInput;

/// A request of an agent to stop, with the checks of its artifact.
pub struct StopRequest<'a> {
    /// The agent.
    pub agent: HookAgent,
    /// The event.
    pub event: &'a HookInput,
    /// The path of the artifact as the user wrote it.
    pub named_path: &'a Path,
    /// The text of the artifact. `None` if it does not exist.
    pub text: Option<&'a str>,
    /// The checks of the artifact.
    pub guard: &'a Guard,
    /// After this many attempts, the agent may stop anyway.
    pub attempts: u32,
}

/// Returns the output for the event. Returns `None` if the agent may stop. `warn` receives messages for the
/// user.
pub fn answer_stop(
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
    let fingerprint = artifact_fingerprint(text, &report);

    let attempts = AttemptFile::open(settings, agent, event.session()?, &resolved(named))?;
    let decided = attempts.update(|record| {
        let decision = next_decision(record, &report, &fingerprint, most);
        record.record_decision(decision, &fingerprint);
        decision
    })?;
    let attempt = decided.record.attempts;
    let project = resolved(Path::new("")).display().to_string();
    // A release is recorded only once, even if the agent stops several times afterwards.
    let is_noted = decided.was_released && decided.record.state == State::Released;
    let recorded = if is_noted {
        Ok(())
    } else {
        recorded::record_outcome(settings, &decided.record, project, &report, most)
    };
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

/// Decides about this attempt. An agent that was released may always stop in this session.
fn next_decision(record: &AttemptRecord, report: &Assessment, fingerprint: &str, attempts: u32) -> Decision {
    let checks_pass = report.findings().is_empty();
    if !checks_pass && record.state == State::Released {
        return Decision::Release(record.reason.unwrap_or(Reason::ContextExhaustion));
    }
    let is_without_progress = record.unchanged >= 1 && record.fingerprint == fingerprint;
    let decision = decide(AttemptFacts {
        checks_pass,
        verdict: AttemptVerdict::Whole,
        is_at_risk: false,
        attempts_left: attempts.saturating_sub(record.attempts + 1),
        is_without_progress,
        ceiling: Ceiling::Below,
    });
    // The agent's process continues in any case, so the run has not failed: the agent is only released.
    match decision {
        Decision::Fail(reason) => Decision::Release(reason),
        other => other,
    }
}

/// Returns a fingerprint of the artifact and its faults. It is the same if an attempt changes nothing.
fn artifact_fingerprint(text: Option<&str>, report: &Assessment) -> String {
    let mut hash = Sha256::new();
    hash.update(text.unwrap_or_default());
    for finding in report.findings() {
        hash.update([0]);
        hash.update(finding.check.name());
    }
    hexadecimal(&hash.finalize())
}
