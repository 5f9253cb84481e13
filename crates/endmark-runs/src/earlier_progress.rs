//! The progress of a run whose supervisor was killed (CG-4).

use std::fs;

use endmark_guard::{EarlierProgress, Reason, State, TokenUsage};
use endmark_store::{StoredRun, StoredRunEvent};

use crate::supervise::RUN_VARIABLE;

/// The progress of a run until its supervisor was killed.
#[derive(Debug, Clone)]
pub struct ResumedProgress {
    /// The part that counts against its limits.
    pub before: EarlierProgress,
    /// Whether the agent was ever started.
    pub(crate) has_begun: bool,
    /// The session of the agent.
    pub(crate) session: Option<String>,
    /// Tokens that this session has used.
    pub(crate) session_usage: TokenUsage,
    /// When the run began, in UTC.
    pub(crate) started_at: String,
}

impl ResumedProgress {
    /// Returns the progress of a run with these events. `None` if its supervisor was not killed, or its options are
    /// unknown.
    pub fn from_events(stored: &StoredRun, events: &[StoredRunEvent]) -> Option<Self> {
        let run = &stored.run;
        let task = run.task.as_ref()?;
        if run.reason.as_deref() != Some(Reason::SupervisorLost.name()) {
            return None;
        }
        // The last event reports the loss; the previous one has the run's last state.
        let earlier =
            events.iter().rev().find(|event| event.reason.as_deref() != Some(Reason::SupervisorLost.name()));
        let was_running = earlier.is_some_and(|event| event.state == State::Running.name());
        Some(Self {
            before: EarlierProgress {
                finished_attempts: run.attempt.saturating_sub(u32::from(was_running)),
                usage: TokenUsage::new(run.input_tokens, run.output_tokens),
                nanodollars: run.cost_nanodollars,
                seconds: task.seconds,
            },
            has_begun: run.attempt > 0,
            session: run.session.clone(),
            session_usage: TokenUsage::new(task.session_input_tokens, task.session_output_tokens),
            started_at: stored.started_at.clone(),
        })
    }

    /// Whether a process of the run's agent still exists. It ends within seconds of its supervisor. Two agents must not
    /// write one artifact.
    pub fn has_running_agent(run_id: &str) -> bool {
        let mark = format!("{RUN_VARIABLE}={run_id}");
        let is_marked =
            |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
        let Ok(processes) = fs::read_dir("/proc") else { return false };
        // A process of another user cannot be read, and cannot belong to the run.
        let mut environments = processes
            .filter_map(Result::ok)
            .filter_map(|process| fs::read(process.path().join("environ")).ok());
        environments.any(is_marked)
    }
}
