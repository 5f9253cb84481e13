//! Builds the record of a run that another scheduler supervises, from the events that it reports (CG-4).

use endmark_context::Models;
use endmark_guard::{AgentUsage, ContextRisk, Criteria, Notice, Reason, State, TokenUsage, risk};
use endmark_store::{RunEventRecord, RunRecord};
use serde::Deserialize;

use crate::record::{LiveRunRecord, describe_missing};

/// The kind of a reported event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedEvent {
    /// An attempt has started.
    Started,
    /// The current attempt has used more tokens.
    UsageReported,
    /// The attempt has ended, and another one follows.
    RetryQueued,
    /// The artifact is finished.
    Succeeded,
    /// The run was released although its artifact is unfinished.
    Released,
    /// The agent failed.
    Failed,
}

/// A report about a run. Fields that are missing keep their recorded values. The names of fields are those of
/// [`crate::AgentRun`].
// Fields: one for each field of the event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunReport {
    /// Id of the run in the scheduler.
    pub id: String,
    name: Option<String>,
    agent: Option<String>,
    command: Option<Vec<String>>,
    folder: Option<String>,
    artifact: Option<String>,
    template: Option<String>,
    attempt: Option<u32>,
    max_attempts: Option<u32>,
    process: Option<u32>,
    session: Option<String>,
    model: Option<String>,
    /// Total tokens of all attempts.
    token_usage: Option<ReportedTokens>,
    largest_call_tokens: Option<u64>,
    limit_tokens: Option<u64>,
    cost_usd: Option<f64>,
    verdict: Option<String>,
    #[serde(default)]
    evidence: Vec<String>,
    /// What the artifact lacks. An empty list means that nothing is missing.
    missing: Option<Vec<String>>,
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportedTokens {
    input: u64,
    output: u64,
    /// Accepted for compatibility, but not used: the total is computed.
    #[serde(default, rename = "total")]
    _total: u64,
}

/// Error of a report that is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// The run is new, and a field that it needs is missing.
    #[error("the first report of a run needs `{0}`")]
    Missing(&'static str),
    /// There is no run with this id.
    #[error("there is no run `{0}`: report `started` first")]
    Unknown(String),
    /// The run has already ended.
    #[error("the run `{id}` has ended: it is `{state}`")]
    AlreadyFinished {
        /// Id of the run.
        id: String,
        /// State of the run.
        state: String,
    },
    /// Endmark itself supervises this run.
    #[error("the run `{0}` is supervised by Endmark itself")]
    Supervised(String),
    /// The event requires a reason.
    #[error("this event needs a `reason`: one of {}", Reason::ALL.map(Reason::name).join(", "))]
    NoReason,
    /// The report contradicts itself: the artifact is reported as finished, but something is missing.
    #[error("a run that succeeded must have an empty `missing`")]
    Unfinished,
    /// A number is outside its range.
    #[error("`{0}` is out of range")]
    Range(&'static str),
}

/// Returns the run after an event, and the events to record. They are the same as for a run that Endmark
/// supervises.
///
/// `before` is the record of the run so far. `had_risk` states whether a risk in this attempt was already
/// reported.
///
/// # Errors
///
/// [`ReportError`] if the report contradicts the record, or if it lacks data that the event needs.
pub fn apply_event(
    before: Option<RunRecord>,
    had_risk: bool,
    event: ReportedEvent,
    report: RunReport,
    models: &Models,
) -> Result<(RunRecord, Vec<RunEventRecord>), ReportError> {
    let is_new = before.is_none();
    let mut record = match before {
        Some(before) if State::parse(&before.state).is_some_and(State::is_final) => {
            return Err(ReportError::AlreadyFinished { id: report.id, state: before.state });
        }
        Some(before) => before,
        None if event == ReportedEvent::Started => new_run(&report)?,
        None => return Err(ReportError::Unknown(report.id)),
    };
    let reason = match (event, report.reason.as_deref()) {
        (ReportedEvent::RetryQueued | ReportedEvent::Released | ReportedEvent::Failed, reason) => {
            Some(reason.and_then(Reason::parse).ok_or(ReportError::NoReason)?)
        }
        _ => None,
    };
    if event == ReportedEvent::Started && !is_new {
        record.attempt = record.attempt.saturating_add(1);
    }
    let had_risk = had_risk && event != ReportedEvent::Started;
    // Usage of an earlier attempt is kept until this attempt reports its own. It does not indicate a risk in
    // this attempt.
    let is_of_earlier_attempt = record.context_exhaustion_risk && report.largest_call_tokens.is_none();
    let limit_of = |model: Option<&str>| model.and_then(|model| models.find(model)?.context_tokens);
    if record.limit_tokens == limit_of(record.model.as_deref()) {
        // The limit was that of another model in the model table.
        record.limit_tokens = None;
    }
    let missing = apply_report(&mut record, report)?;
    if event == ReportedEvent::Succeeded {
        if !missing.is_empty() {
            return Err(ReportError::Unfinished);
        }
        record.findings = Some(0);
    }
    // The total of several attempts says nothing about the last attempt.
    let sum = TokenUsage::new(record.input_tokens, record.output_tokens);
    let usage = AgentUsage {
        run: if record.attempt == 1 { sum } else { TokenUsage::default() },
        largest_call_tokens: record.largest_call_tokens,
        ..AgentUsage::default()
    };
    record.limit_tokens = record.limit_tokens.or_else(|| limit_of(record.model.as_deref()));
    let risk = risk(&usage, Criteria::default().token_usage_warning_threshold, record.limit_tokens);
    record.context_exhaustion_risk = risk == ContextRisk::Exceeded;
    let is_sum = match risk {
        ContextRisk::Exceeded => Some(false),
        ContextRisk::SumOnly => Some(true),
        ContextRisk::None | ContextRisk::Unknown => None,
    };
    let (state, mut notices) = state_after(event, reason, State::parse(&record.state));
    if let Some(is_sum) = is_sum.filter(|_| !had_risk && !is_of_earlier_attempt) {
        // A risk belongs to the attempt, so its event is recorded before the end of the attempt.
        let at = usize::from(event == ReportedEvent::Started);
        notices.insert(at, Notice::ContextRisk { is_sum });
    }
    state.name().clone_into(&mut record.state);
    if event != ReportedEvent::UsageReported {
        record.reason = reason.map(|reason| reason.name().to_owned());
    }
    if state != State::Running {
        record.process = None;
    }
    let sheet = LiveRunRecord::from_record(record, missing);
    let events = notices.into_iter().map(|notice| sheet.event(notice));
    let events = events.map(|event| RunEventRecord { name: event.event, message: event.message }).collect();
    Ok((sheet.into_record(), events))
}

/// Returns the state of the run after an event, and the notices to report.
fn state_after(event: ReportedEvent, reason: Option<Reason>, before: Option<State>) -> (State, Vec<Notice>) {
    let reason = reason.unwrap_or(Reason::ContextGuardFail);
    match event {
        ReportedEvent::Started => (State::Running, vec![Notice::Started]),
        // Usage may be reported only after the attempt has ended, so the state does not change.
        ReportedEvent::UsageReported => (before.unwrap_or(State::Running), Vec::new()),
        ReportedEvent::RetryQueued => (State::RetryQueued, vec![Notice::RetryQueued(reason)]),
        ReportedEvent::Succeeded => (State::Succeeded, vec![Notice::Succeeded]),
        ReportedEvent::Released if reason == Reason::ContextExhaustion => {
            (State::Released, vec![Notice::ContextExhausted, Notice::Released(reason)])
        }
        ReportedEvent::Released => (State::Released, vec![Notice::Released(reason)]),
        ReportedEvent::Failed => (State::Failed, vec![Notice::Failed(reason)]),
    }
}

fn new_run(report: &RunReport) -> Result<RunRecord, ReportError> {
    if report.id.is_empty() {
        return Err(ReportError::Missing("id"));
    }
    let needed = |value: &Option<String>, name| value.clone().ok_or(ReportError::Missing(name));
    Ok(RunRecord {
        id: report.id.clone(),
        agent: needed(&report.agent, "agent")?,
        artifact: needed(&report.artifact, "artifact")?,
        command: "[]".to_owned(),
        attempt: 1,
        max_attempts: 1,
        ..RunRecord::default()
    })
}

/// Copies the reported fields to the record. Returns a description of what the artifact lacks.
fn apply_report(record: &mut RunRecord, report: RunReport) -> Result<String, ReportError> {
    fn set<T>(field: &mut T, given: Option<T>) {
        if let Some(given) = given {
            *field = given;
        }
    }
    set(&mut record.agent, report.agent);
    set(&mut record.folder, report.folder);
    set(&mut record.artifact, report.artifact);
    set(&mut record.attempt, report.attempt);
    set(&mut record.max_attempts, report.max_attempts);
    record.max_attempts = record.max_attempts.max(record.attempt);
    // Strings can always be serialised.
    set(&mut record.command, report.command.map(|words| serde_json::to_string(&words).unwrap_or_default()));
    if let Some(tokens) = report.token_usage {
        (record.input_tokens, record.output_tokens) = (tokens.input, tokens.output);
    }
    record.name = report.name.or(record.name.take());
    record.template = report.template.or(record.template.take());
    record.process = report.process.or(record.process);
    record.session = report.session.or(record.session.take());
    record.model = report.model.or(record.model.take());
    record.largest_call_tokens = report.largest_call_tokens.or(record.largest_call_tokens);
    record.limit_tokens = report.limit_tokens.or(record.limit_tokens);
    record.verdict = report.verdict.or(record.verdict.take());
    if let Some(cost) = report.cost_usd {
        record.cost_nanodollars = Some(usd_to_nanodollars(cost).ok_or(ReportError::Range("costUsd"))?);
    }
    if !report.evidence.is_empty() {
        record.evidence = report.evidence.join("\n");
    }
    if let Some(missing) = &report.missing {
        record.findings = u64::try_from(missing.len()).ok();
    }
    Ok(describe_missing(&report.missing.unwrap_or_default()))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked before")]
fn usd_to_nanodollars(usd: f64) -> Option<u64> {
    /// No run costs that much, and the store's maximum is far higher.
    const MAX_USD: f64 = 1e9;
    (0.0..=MAX_USD).contains(&usd).then(|| (usd * 1e9).round() as u64)
}
