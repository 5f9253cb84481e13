//! Restores the progress of a run whose supervisor was killed (CG-4).

use std::fs;

use endmark_guard::{EarlierProgress, Reason, State, TokenUsage};
use endmark_store::{StoredRun, StoredRunEvent};

use crate::supervise::RUN_VARIABLE;

/// The progress that a run had made when its supervisor was killed.
#[derive(Debug, Clone)]
pub struct ResumedProgress {
    /// The progress that counts against the limits of the run.
    pub before: EarlierProgress,
    /// Whether the agent was started at least once.
    pub(crate) has_begun: bool,
    /// The name of the agent's session, if it is known.
    pub(crate) session: Option<String>,
    /// Number of tokens that the session has used.
    pub(crate) session_usage: TokenUsage,
    /// When the run began, in UTC.
    pub(crate) started_at: String,
}

impl ResumedProgress {
    /// Returns the progress of a stored run. Returns `None` if its supervisor was not killed, or if its
    /// options are unknown.
    pub fn from_events(stored: &StoredRun, events: &[StoredRunEvent]) -> Option<Self> {
        let run = &stored.run;
        let task = run.task.as_ref()?;
        if run.reason.as_deref() != Some(Reason::SupervisorLost.name()) {
            return None;
        }
        // The last event reports the loss of the run. The event before it contains the run's last state.
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

    /// Whether a process of the run's agent still exists. It ends within seconds after its supervisor, but
    /// until then it could write to the same artifact as a second agent.
    pub fn has_running_agent(run_id: &str) -> bool {
        let mark = format!("{RUN_VARIABLE}={run_id}");
        let is_marked =
            |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
        let Ok(processes) = fs::read_dir("/proc") else { return false };
        // The environment of another user's process cannot be read. Such a process cannot belong to the run.
        let mut environments = processes
            .filter_map(Result::ok)
            .filter_map(|process| fs::read(process.path().join("environ")).ok());
        environments.any(is_marked)
    }
}
