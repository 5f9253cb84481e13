//! The task of a run, and its observer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use endmark_context::Models;
use endmark_guard::{Agent, Guard, RunLimits};

use crate::call::known_agent;
use crate::earlier_progress::ResumedProgress;
use crate::report::{AgentRun, RunEventReport};
use crate::run_gateway::RunGateway;

/// A requested run.
// Fields: one for each option of a run.
#[derive(Debug)]
pub struct Task {
    /// Id of the run.
    pub id: String,
    /// Display name of the run.
    pub name: Option<String>,
    /// The options of the run, stored to resume it later; `None` if they cannot be serialised.
    pub prompt_text: Option<String>,
    /// The progress before the run was resumed, if it was.
    pub resumed: Option<ResumedProgress>,
    /// The agent.
    pub agent: Agent,
    /// The agent's command, in which the prompt replaces `{prompt}`.
    pub command: Vec<OsString>,
    /// Whether the agent's calls must use a gateway of the run.
    pub runs_through_gateway: bool,
    /// The gateway between the agent and its model, if there is one.
    pub gateway: Option<Box<dyn RunGateway>>,
    /// The agent's working directory.
    pub folder: PathBuf,
    /// The file that the agent must write.
    pub artifact: PathBuf,
    /// Name of the template with the artifact's criteria.
    pub template: Option<String>,
    /// The checks of the artifact.
    pub guard: Guard,
    /// The agent's first prompt, unless the command contains it.
    pub prompt: Option<String>,
    /// Limits of the run.
    pub limits: RunLimits,
    /// The model's token limit, if the user gave one.
    pub limit_tokens: Option<u64>,
    /// Known models, for their limits.
    pub models: Arc<Models>,
    /// Maximum time without output in an attempt.
    pub silence: Duration,
    /// Maximum time of an attempt.
    pub attempt_time: Duration,
    /// Maximum time that an agent may run after its last event.
    pub exit_grace: Duration,
    /// Time between asking an agent to end and killing it.
    pub grace: Duration,
    /// Folder for transcripts of the agent's output, if they are saved.
    pub transcripts: Option<PathBuf>,
    /// Maximum size of the transcripts of each attempt, in bytes.
    pub transcript_bytes: u64,
}

impl Task {
    /// Returns the agent of a program with this name; [`Agent::Plain`] for any other.
    pub fn known_agent(program: &OsString) -> Agent {
        known_agent(program)
    }
}

/// Observer of a run, called as events happen.
pub trait Watch {
    /// Reports an event of the run.
    fn report_event(&mut self, run: &AgentRun, event: &RunEventReport);

    /// Reports a problem that does not end the run.
    fn warn(&mut self, message: &str);
}
