//! The record of a supervised run, and a task that writes it to the store.

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use endmark_guard::{AgentStream, AttemptJudgement, ContextRisk, Finding, Notice, Reason, Run, State};
use endmark_store::{Recorder, RunEventRecord, RunRecord, RunResumeState, StoreError, utc, with_zone};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::report::{AgentRun, RunEventReport};
use crate::task::{RunObserver, Task};

/// Minimum time between two writes of usage figures.
const USAGE_WRITE_INTERVAL: Duration = Duration::from_millis(500);

/// The record of a run, with what is needed to report it.
#[derive(Debug, Clone)]
pub(crate) struct LiveRunRecord {
    record: RunRecord,
    /// When the run began, in UTC.
    started_at: String,
    /// A description of what the artifact lacked at the last check.
    missing: String,
}

impl LiveRunRecord {
    pub(crate) fn new(task: &Task) -> Self {
        let words: Vec<String> =
            task.command.iter().map(|word| OsStr::to_string_lossy(word).into_owned()).collect();
        let record = RunRecord {
            id: task.id.clone(),
            state: State::Queued.name().to_owned(),
            agent: task.agent.name().to_owned(),
            // Strings can always be serialised.
            command: serde_json::to_string(&words).unwrap_or_default(),
            folder: task.folder.display().to_string(),
            artifact: task.artifact.display().to_string(),
            template: task.template.clone(),
            max_attempts: task.limits.attempts.get(),
            name: task.name.clone(),
            task: task.options_json.as_ref().map(|task_text| RunResumeState {
                prompt_text: task_text.clone(),
                ..RunResumeState::default()
            }),
            ..RunRecord::default()
        };
        let started_at = task.resumed.as_ref().map_or_else(current_time, |before| before.started_at.clone());
        Self { record, started_at, missing: String::new() }
    }

    /// Returns the record of a run that another scheduler supervises. `missing` describes what its artifact
    /// lacks.
    pub(crate) fn from_record(record: RunRecord, missing: String) -> Self {
        Self { record, started_at: current_time(), missing }
    }

    pub(crate) fn into_record(self) -> RunRecord {
        self.record
    }

    pub(crate) fn set_process(&mut self, process: Option<u32>) {
        self.record.process = process;
    }

    /// Sets the agent's session and the usage of the session.
    pub(crate) fn set_session(&mut self, stream: &AgentStream) {
        if let Some(session) = stream.session() {
            self.record.session = Some(session.to_owned());
        }
        if let Some(task) = &mut self.record.task {
            let used = stream.session_usage();
            (task.session_input_tokens, task.session_output_tokens) = (used.input, used.output);
        }
    }

    /// Sets the duration of the run in seconds.
    pub(crate) fn set_seconds(&mut self, seconds: u64) {
        if let Some(task) = &mut self.record.task {
            task.seconds = seconds;
        }
    }

    pub(crate) fn set_judgement(&mut self, judged: &AttemptJudgement, findings: &[Finding]) {
        self.record.verdict = Some(judged.verdict.name().to_owned());
        self.record.evidence = judged.evidence.join("\n");
        self.record.findings = u64::try_from(findings.len()).ok();
        let points = findings.iter().map(|finding| format!("line {}: {}", finding.line, finding.why));
        self.missing = describe_missing(&points.collect::<Vec<_>>());
    }

    /// Copies the state of the run from its state machine.
    pub(crate) fn copy_state(&mut self, run: &Run) {
        let usage = run.token_usage();
        let record = &mut self.record;
        run.state().name().clone_into(&mut record.state);
        record.reason = run.reason().map(|reason| reason.name().to_owned());
        record.attempt = run.attempt();
        (record.input_tokens, record.output_tokens) = (usage.input, usage.output);
        record.largest_call_tokens = run.usage().largest_call_tokens;
        record.limit_tokens = run.limit_tokens();
        record.context_exhaustion_risk = run.risk() == ContextRisk::Exceeded;
        record.cost_nanodollars = run.nanodollars();
        record.model = run.usage().model.clone().or(record.model.take());
    }

    pub(crate) fn report(&self) -> AgentRun {
        let at = with_zone(&current_time());
        let run = AgentRun::from_record(self.record.clone());
        let is_over = run.has_ended();
        AgentRun {
            started_at: Some(with_zone(&self.started_at)),
            ended_at: Some(at.clone()).filter(|_| is_over),
            updated_at: Some(at),
            is_supervised: !is_over,
            ..run
        }
    }

    /// Returns the event that reports a notice.
    pub(crate) fn event(&self, notice: Notice) -> RunEventReport {
        let record = &self.record;
        let attempts = format!("attempt {} of {}", record.attempt, record.max_attempts);
        let lacking = match record.findings {
            Some(_) if !self.missing.is_empty() => self.missing.as_str(),
            Some(_) => "its missing parts were not reported",
            None => "it was not checked",
        };
        let evidence = record.evidence.lines().next().unwrap_or_default();
        let message = match notice {
            Notice::Started => format!("{attempts}: `{}` is working on `{}`", record.agent, record.artifact),
            Notice::ContextRisk { is_sum: false } => format!(
                "a call used {} of the model's {} tokens",
                record.largest_call_tokens.unwrap_or_default(),
                record.limit_tokens.unwrap_or_default()
            ),
            Notice::ContextRisk { is_sum: true } => {
                "all calls together exceed the threshold; single calls are not reported, so this is only a warning".to_owned()
            }
            Notice::RetryQueued(reason) | Notice::Released(reason) | Notice::Failed(reason) => {
                let what = match reason {
                    Reason::ContextGuardFail => format!("`{}` is not finished: {lacking}", record.artifact),
                    Reason::ContextExhaustion => {
                        format!("`{}` is not finished, and no context or attempts are left: {lacking}", record.artifact)
                    }
                    Reason::Budget => "the run reached a limit".to_owned(),
                    Reason::AttemptTime => "the attempt reached its time limit".to_owned(),
                    Reason::Stalled => "the agent is silent, or its attempts change nothing".to_owned(),
                    Reason::AgentCrash => "the agent failed".to_owned(),
                    Reason::GatewayBypassed => "calls of the agent bypassed the run's gateway".to_owned(),
                    Reason::Interrupted => "the run was stopped".to_owned(),
                    Reason::SupervisorLost => "the run's supervisor was killed".to_owned(),
                };
                let evidence = if evidence.is_empty() { String::new() } else { format!(" ({evidence})") };
                format!("{attempts}: {what}{evidence}")
            }
            Notice::ContextExhausted => format!("{attempts}: `{}` is not finished: {lacking}", record.artifact),
            Notice::Succeeded => format!("{attempts}: `{}` is finished", record.artifact),
        };
        RunEventReport {
            run: record.id.clone(),
            at: Some(current_time()),
            event: notice.name().to_owned(),
            attempt: record.attempt,
            state: record.state.clone(),
            reason: record.reason.clone(),
            message,
        }
    }
}

/// Returns the current time in UTC, in the format of the store.
fn current_time() -> String {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    utc(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
}

/// Writes records to the store in order, while the agent is running.
#[derive(Debug)]
pub(crate) struct RecordWriter {
    queue: UnboundedSender<(RunRecord, Vec<RunEventRecord>)>,
    writer: JoinHandle<Option<StoreError>>,
}

impl RecordWriter {
    pub(crate) fn open(recorder: Recorder) -> Self {
        let (queue, sheets) = unbounded_channel();
        Self { queue, writer: tokio::spawn(write_all(recorder, sheets)) }
    }

    /// Queues the run and its new events for writing.
    pub(crate) fn enqueue(&self, sheet: &LiveRunRecord, events: &[RunEventReport]) {
        let events = events
            .iter()
            .map(|event| RunEventRecord { name: event.event.clone(), message: event.message.clone() });
        // The queue is closed only if the writing task has ended. It has then reported the reason.
        let _ = self.queue.send((sheet.record.clone(), events.collect()));
    }

    /// Waits until all records are committed. Shows a warning if some could not be written.
    pub(crate) async fn close(self, watch: &mut dyn RunObserver) {
        drop(self.queue);
        if let Ok(Some(error)) = self.writer.await {
            watch.warn(&format!("the run is not recorded in full: {error}"));
        }
    }
}

/// Writes events at once, but usage figures at most once per interval.
async fn write_all(
    recorder: Recorder,
    mut sheets: UnboundedReceiver<(RunRecord, Vec<RunEventRecord>)>,
) -> Option<StoreError> {
    let mut failure = None;
    let mut waiting: Option<RunRecord> = None;
    let mut next = Instant::now();
    loop {
        let received = match waiting.take() {
            None => sheets.recv().await,
            Some(run) => match timeout_at(next, sheets.recv()).await {
                // The later record includes the earlier one, so the earlier one need not be written.
                Ok(Some(came)) => Some(came),
                Ok(None) | Err(_) => Some((run, Vec::new())).inspect(|_| next = Instant::now()),
            },
        };
        let Some((run, events)) = received else { return failure };
        if events.is_empty() && Instant::now() < next {
            waiting = Some(run);
            continue;
        }
        if let Err(error) = recorder.record_run(run, events).await {
            failure = failure.or(Some(error));
        }
        next = Instant::now() + USAGE_WRITE_INTERVAL;
    }
}

/// Describes what an artifact lacks: the first points, and the number of the others.
pub(crate) fn describe_missing(points: &[String]) -> String {
    /// A few points are enough to describe an attempt.
    const MAX_SHOWN_POINTS: usize = 3;
    let shown = points.iter().take(MAX_SHOWN_POINTS).map(String::as_str).collect::<Vec<_>>().join("; ");
    match points.len().saturating_sub(MAX_SHOWN_POINTS) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
