//! What is to be done, and who watches.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use endmark_context::Models;
use endmark_guard::{Agent, Guard, RunLimits};

use crate::between::Between;
use crate::call::agent_of;
use crate::report::{AgentRun, RunEventReport};
use crate::taken_up::TakenUp;

/// A run as it is asked for.
#[derive(Debug)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: Option<String>,
    /// How it was asked for, to be kept for whoever takes it up; none if that cannot be written.
    pub asked: Option<String>,
    /// What was done before, where it is taken up.
    pub taken_up: Option<TakenUp>,
    /// The agent.
    pub agent: Agent,
    /// Its command; `{prompt}` stands for the prompt.
    pub command: Vec<OsString>,
    /// Whether its calls are to go through a gateway of its own.
    pub is_through: bool,
    /// What stands between it and its model, if anything does.
    pub between: Option<Box<dyn Between>>,
    /// Where it works.
    pub folder: PathBuf,
    /// What it is to write.
    pub artifact: PathBuf,
    /// What that is held to, by name.
    pub template: Option<String>,
    /// What that is held to.
    pub guard: Guard,
    /// What it is told first, where its command does not say it.
    pub prompt: Option<String>,
    /// Where the run ends at the latest.
    pub limits: RunLimits,
    /// The model's limit, where the user says it.
    pub limit_tokens: Option<u64>,
    /// Models by name, for their limits.
    pub models: Arc<Models>,
    /// How long an attempt may say nothing.
    pub silence: Duration,
    /// How long an attempt may take.
    pub attempt_time: Duration,
    /// How long an agent may go on behind its last event.
    pub last_word: Duration,
    /// Between asking an agent to end and ending it.
    pub grace: Duration,
    /// Where what agents print is kept, if it is.
    pub transcripts: Option<PathBuf>,
    /// How much is kept of it for each attempt, in bytes.
    pub transcript_bytes: u64,
}

impl Task {
    /// The agent that a command's program is known as; [`Agent::Plain`] for any other.
    pub fn agent_of(program: &OsString) -> Agent {
        agent_of(program)
    }
}

/// Who is told what happens, as it does.
pub trait Watch {
    /// Something happened to the run.
    fn event(&mut self, run: &AgentRun, event: &RunEventReport);

    /// Something is not as it should be, and the run goes on all the same.
    fn warn(&mut self, message: &str);
}
