//! The task of a run, and the interface of its observer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use endmark_context::Models;
use endmark_guard::{Agent, Guard, RunLimits};

use crate::call::agent_of_program;
use crate::earlier_progress::ResumedProgress;
use crate::report::{AgentRun, RunEventReport};
use crate::run_gateway::RunGateway;

/// A run that was requested, with all its options.
// Fields: one for each option of a run.
#[derive(Debug)]
pub struct Task {
    /// The id of the run.
    pub id: String,
    /// The name of the run for display.
    pub name: Option<String>,
    /// The options of the run as text, from which the run can be resumed later. `None` if they cannot be
    /// serialised.
    pub options_json: Option<String>,
    /// The progress before the run was resumed. `None` for a new run.
    pub resumed: Option<ResumedProgress>,
    /// The kind of agent.
    pub agent: Agent,
    /// The agent's command. The prompt replaces `{prompt}` in it.
    pub command: Vec<OsString>,
    /// Whether the agent's calls must use a gateway that belongs to the run.
    pub runs_through_gateway: bool,
    /// The gateway between the agent and its model. `None` if the agent calls its model directly.
    pub gateway: Option<Box<dyn RunGateway>>,
    /// The working directory of the agent.
    pub folder: PathBuf,
    /// The file that the agent must write.
    pub artifact: PathBuf,
    /// The name of the template with the criteria for the artifact.
    pub template: Option<String>,
    /// The checks of the artifact.
    pub guard: Guard,
    /// The first prompt of the agent. `None` if the command already contains it.
    pub prompt: Option<String>,
    /// The limits of the run.
    pub limits: RunLimits,
    /// The token limit of the model. `None` if the user did not set one.
    pub limit_tokens: Option<u64>,
    /// The model table, which contains the limits of models.
    pub models: Arc<Models>,
    /// Maximum time without output during an attempt.
    pub max_silence: Duration,
    /// Maximum duration of an attempt.
    pub max_attempt_time: Duration,
    /// Maximum time that the agent may continue after its last event.
    pub exit_grace: Duration,
    /// Time between asking the agent to end and killing it.
    pub grace: Duration,
    /// The folder for transcripts of the agent's output. `None` if they are not saved.
    pub transcripts: Option<PathBuf>,
    /// Maximum total size of the transcripts of one attempt, in bytes.
    pub max_transcript_bytes: u64,
}

impl Task {
    /// Returns the agent that the name of a program indicates. Returns [`Agent::Plain`] for any other
    /// program.
    pub fn agent_of_program(program: &OsString) -> Agent {
        agent_of_program(program)
    }
}

/// Observes a run. The methods are called while it is running.
pub trait RunObserver {
    /// Reports an event of the run.
    fn report_event(&mut self, run: &AgentRun, event: &RunEventReport);

    /// Reports a problem that does not end the run.
    fn warn(&mut self, message: &str);
}
