//! Supervised runs and their events: what is written of them, and by whom. (CG-4)

mod recorded;

/// A run as it is written. The words are the supervisor's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRecord {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: String,
    /// Why.
    pub reason: Option<String>,
    /// The agent's kind.
    pub agent: String,
    /// What is run, as a JSON list of words.
    pub command: String,
    /// Where.
    pub folder: String,
    /// What is to come of it.
    pub artifact: String,
    /// What that is held to.
    pub template: Option<String>,
    /// The attempt under way, or the last one.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u32,
    /// The number of the agent's process, while there is one.
    pub process: Option<u32>,
    /// The agent's session.
    pub session: Option<String>,
    /// The model, as the agent names it.
    pub model: Option<String>,
    /// What was read, in tokens, with all attempts.
    pub input_tokens: u64,
    /// What was written, in tokens, with all attempts.
    pub output_tokens: u64,
    /// The largest single call of the last attempt.
    pub largest_call_tokens: Option<u64>,
    /// The model's limit.
    pub limit_tokens: Option<u64>,
    /// Whether a call was above the threshold.
    pub context_exhaustion_risk: bool,
    /// What it cost, in billionths of a US dollar.
    pub cost_nanodollars: Option<u64>,
    /// How the last attempt ended.
    pub verdict: Option<String>,
    /// How one knows, a line each.
    pub evidence: String,
    /// How many findings the artifact had when it was last judged.
    pub findings: Option<u64>,
    /// What people call it.
    pub name: Option<String>,
    /// What it takes to go on with it; none if nobody here can.
    pub task: Option<RunTask>,
}

/// What it takes to go on with a run whose supervisor was killed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTask {
    /// How it was asked for, in the words of who asked.
    pub asked: String,
    /// How long it has taken, in seconds.
    pub seconds: u64,
    /// What the agent's session has read, in tokens.
    pub session_input_tokens: u64,
    /// What it has written, in tokens.
    pub session_output_tokens: u64,
}

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventRecord {
    /// Its name, as `agent_run.started`.
    pub name: String,
    /// What there is to say.
    pub message: String,
}

/// A run that was written, with what the store adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// The run.
    pub run: RunRecord,
    /// Whether the process that supervises it is alive, where it is not over.
    pub is_supervised: bool,
    /// When it began, in UTC.
    pub started_at: String,
    /// When it was last written, in UTC.
    pub updated_at: String,
    /// When it was over, in UTC.
    pub ended_at: Option<String>,
}

/// An event that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRunEvent {
    /// Its number; they grow in the order of what happened.
    pub id: i64,
    /// The run's id.
    pub run_id: String,
    /// When, in UTC.
    pub at: String,
    /// Its name.
    pub name: String,
    /// The attempt.
    pub attempt: u32,
    /// Where the run stood from then on.
    pub state: String,
    /// Why.
    pub reason: Option<String>,
    /// What there is to say.
    pub message: String,
}
