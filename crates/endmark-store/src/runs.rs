//! Records of supervised runs and their events. (CG-4)

mod fleet;
mod recording;

pub use fleet::FleetRuns;

/// A stored run. The supervisor defines the values of its text fields.
// Fields: one for each column of `runs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRecord {
    /// Id of the run.
    pub id: String,
    /// State of the run.
    pub state: String,
    /// Reason of the state.
    pub reason: Option<String>,
    /// Kind of the agent.
    pub agent: String,
    /// Command that is run, as a JSON list of words.
    pub command: String,
    /// Working folder of the run.
    pub folder: String,
    /// File that the run is to produce.
    pub artifact: String,
    /// Template that the artifact is checked against.
    pub template: Option<String>,
    /// Number of the current attempt, or of the last one.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Process id of the agent, while it runs.
    pub process: Option<u32>,
    /// Session of the agent.
    pub session: Option<String>,
    /// Name of the model, as the agent reports it.
    pub model: Option<String>,
    /// Input tokens of all attempts.
    pub input_tokens: u64,
    /// Output tokens of all attempts.
    pub output_tokens: u64,
    /// Tokens of the largest single call of the last attempt.
    pub largest_call_tokens: Option<u64>,
    /// Token limit of the model's context.
    pub limit_tokens: Option<u64>,
    /// Whether a call exceeded the threshold of the context limit.
    pub context_exhaustion_risk: bool,
    /// Cost in nano-dollars.
    pub cost_nanodollars: Option<u64>,
    /// Verdict on the last attempt.
    pub verdict: Option<String>,
    /// Evidence for the verdict, one item a line.
    pub evidence: String,
    /// Number of findings in the artifact when it was last judged.
    pub findings: Option<u64>,
    /// Display name of the run.
    pub name: Option<String>,
    /// State needed to resume the run; `None` if it cannot be resumed here.
    pub task: Option<RunResumeState>,
}

/// State that is needed to resume a run after its supervisor was killed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunResumeState {
    /// The request for the run, as its caller wrote it.
    pub prompt_text: String,
    /// Running time so far in seconds.
    pub seconds: u64,
    /// Input tokens of the agent's session.
    pub session_input_tokens: u64,
    /// Output tokens of the agent's session.
    pub session_output_tokens: u64,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventRecord {
    /// Name of the event, for example `agent_run.started`.
    pub name: String,
    /// Message of the event.
    pub message: String,
}

/// A stored run, with the columns that the store adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// The run.
    pub run: RunRecord,
    /// Whether a living process supervises the run. Always false for a run that has ended.
    pub is_supervised: bool,
    /// Start time in UTC.
    pub started_at: String,
    /// Time of the last write in UTC.
    pub updated_at: String,
    /// End time in UTC.
    pub ended_at: Option<String>,
    /// The machine that reported the run, if several machines share a database.
    pub machine: Option<RunMachine>,
}

/// A machine that reports runs to a shared database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMachine {
    /// Its host name.
    pub name: String,
    /// Its instance, which distinguishes the journals of one host.
    pub instance: String,
    /// Time of its last report in UTC, if the machine has been silent since and the run has not ended. The
    /// run is shown in its state of that time.
    pub last_known_at: Option<String>,
}

/// The position of a run in a list that shows the newest runs first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor {
    /// Start time of the run, as [`StoredRun::started_at`].
    pub started_at: String,
    /// Its id.
    pub id: String,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRunEvent {
    /// Number of the event. Later events have larger numbers.
    pub id: i64,
    /// Id of the run.
    pub run_id: String,
    /// Time of the event in UTC.
    pub occurred_at: String,
    /// Name of the event.
    pub name: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// State of the run after the event.
    pub state: String,
    /// Reason of the state.
    pub reason: Option<String>,
    /// Message of the event.
    pub message: String,
}
