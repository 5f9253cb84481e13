//! Reports of a run, for events and for people (CG-4).

use endmark_guard::TokenUsage;
use endmark_store::{RunMachine, RunRecord, StoredRun, StoredRunEvent, with_zone};
use serde::Serialize;

/// A run.
// Fields: one for each field of the published report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentRun {
    /// The run's id.
    pub id: String,
    /// The run's name for people.
    pub name: Option<String>,
    /// `queued`, `running`, `retry-queued`, `succeeded`, `released` or `failed`.
    pub state: String,
    /// The reason of the state, if there is one.
    pub reason: Option<String>,
    /// The kind of agent.
    pub agent: String,
    /// The command.
    pub command: Vec<String>,
    /// The working directory.
    pub folder: String,
    /// The file that the agent must write.
    pub artifact: String,
    /// The template with the artifact's criteria.
    pub template: Option<String>,
    /// The current or last attempt.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The id of the agent's process, while it runs.
    pub process: Option<u32>,
    /// The agent's session.
    pub session: Option<String>,
    /// The model, as the agent names it.
    pub model: Option<String>,
    /// The usage of all attempts together.
    pub token_usage: TokenUsage,
    /// The largest single call of the last attempt, if the agent reports calls.
    pub largest_call_tokens: Option<u64>,
    /// The model's limit; null if it is unknown. Then no risk is computed.
    pub limit_tokens: Option<u64>,
    /// Whether a call exceeded the threshold.
    pub context_exhaustion_risk: bool,
    /// The cost in US dollars, as far as the agent reports it.
    pub cost_usd: Option<String>,
    /// How the last attempt ended.
    pub verdict: Option<String>,
    /// The evidence for the verdict.
    pub evidence: Vec<String>,
    /// The number of findings at the last check of the artifact.
    pub findings: Option<u64>,
    /// When the run began, in UTC.
    pub started_at: Option<String>,
    /// When the run was last recorded, in UTC.
    pub updated_at: Option<String>,
    /// When the run ended, in UTC.
    pub ended_at: Option<String>,
    /// Whether the supervising process is alive.
    pub is_supervised: bool,
    /// The machine that reports the run, if several machines share a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineReport>,
}

/// A machine that reports runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    /// The host name.
    pub name: String,
    /// The instance, which distinguishes the journals of one host.
    pub instance: String,
    /// When it last reported, in UTC, if it has been silent since. The run is shown in its state of that time.
    pub last_known_at: Option<String>,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunEventReport {
    /// The run's id.
    pub run: String,
    /// The time of the event, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The event's name, as `agent_run.started`.
    pub event: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The state of the run after the event.
    pub state: String,
    /// The reason of the state.
    pub reason: Option<String>,
    /// One sentence about the event.
    pub message: String,
}

impl AgentRun {
    /// Returns the report of a run that this process supervises.
    pub(crate) fn from_record(run: RunRecord) -> Self {
        Self {
            token_usage: TokenUsage::new(run.input_tokens, run.output_tokens),
            command: serde_json::from_str(&run.command).unwrap_or_else(|_| vec![run.command.clone()]),
            cost_usd: run.cost_nanodollars.map(dollars),
            evidence: run.evidence.lines().map(str::to_owned).collect(),
            id: run.id,
            name: run.name,
            state: run.state,
            reason: run.reason,
            agent: run.agent,
            folder: run.folder,
            artifact: run.artifact,
            template: run.template,
            attempt: run.attempt,
            max_attempts: run.max_attempts,
            process: run.process,
            session: run.session,
            model: run.model,
            largest_call_tokens: run.largest_call_tokens,
            limit_tokens: run.limit_tokens,
            context_exhaustion_risk: run.context_exhaustion_risk,
            verdict: run.verdict,
            findings: run.findings,
            started_at: None,
            updated_at: None,
            ended_at: None,
            is_supervised: true,
            machine: None,
        }
    }

    /// Returns when the run's machine last reported, in UTC. Returns `None` if the machine is still
    /// reporting.
    pub fn last_known_at(&self) -> Option<&str> {
        self.machine.as_ref()?.last_known_at.as_deref()
    }

    /// Whether the run has ended.
    pub fn has_ended(&self) -> bool {
        endmark_guard::State::parse(&self.state).is_some_and(endmark_guard::State::is_final)
    }
}

impl From<StoredRun> for AgentRun {
    fn from(stored: StoredRun) -> Self {
        Self {
            started_at: Some(with_zone(&stored.started_at)),
            updated_at: Some(with_zone(&stored.updated_at)),
            ended_at: stored.ended_at.as_deref().map(with_zone),
            is_supervised: stored.is_supervised,
            machine: stored.machine.map(MachineReport::from),
            ..Self::from_record(stored.run)
        }
    }
}

impl From<RunMachine> for MachineReport {
    fn from(machine: RunMachine) -> Self {
        Self {
            name: machine.name,
            instance: machine.instance,
            last_known_at: machine.last_known_at.as_deref().map(with_zone),
        }
    }
}

impl From<StoredRunEvent> for RunEventReport {
    fn from(stored: StoredRunEvent) -> Self {
        Self {
            run: stored.run_id,
            at: Some(with_zone(&stored.occurred_at)),
            event: stored.name,
            attempt: stored.attempt,
            state: stored.state,
            reason: stored.reason,
            message: stored.message,
        }
    }
}

/// Formats billionths of a dollar as dollars with nine decimal places.
fn dollars(nanodollars: u64) -> String {
    format!("{}.{:09}", nanodollars / 1_000_000_000, nanodollars % 1_000_000_000)
}
