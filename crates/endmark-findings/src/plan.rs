//! Plans the next runs of a whole team. (AR-4)

use serde::Serialize;

use super::merge::MergedResults;
use super::recovery::{Recovery, RecoveryState, Run};

/// The runs to start now, and the state of each agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan<'a> {
    /// Whether nothing is left to do.
    pub done: bool,
    /// The runs to start now. The result of a run must name the run's `agent_id`.
    pub runs: Vec<&'a Run>,
    /// The state of each agent.
    pub agents: Vec<AgentPlan<'a>>,
    /// Files whose agent is unknown: neither the result nor the file name states it.
    pub not_attributed: Vec<&'a str>,
}

/// The state of one agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentPlan<'a> {
    /// The agent's name.
    pub agent_id: &'a str,
    /// The dimensions that it was to examine.
    pub dimensions: &'a [String],
    /// The state of its recovery.
    pub state: RecoveryState,
    /// Its runs so far.
    pub past: Vec<PastRunPlan<'a>>,
    /// The dimensions that are still open when no run is left.
    pub gaps: &'a [String],
}

/// A finished run.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PastRunPlan<'a> {
    /// The run.
    pub run: &'a Run,
    /// `whole`, `mild` or `severe`.
    pub cut: &'static str,
    /// The dimensions that it left open.
    pub remaining: &'a [String],
}

impl MergedResults {
    /// Returns the plan for the results so far.
    pub fn plan(&self) -> Plan<'_> {
        Plan::new(self)
    }
}

impl<'a> Plan<'a> {
    fn new(merged: &'a MergedResults) -> Self {
        let runs: Vec<&Run> = merged
            .agents()
            .iter()
            .filter(|agent| !agent.past_runs().is_empty())
            .filter_map(Recovery::next)
            .collect();
        Self {
            done: runs.is_empty()
                && merged.unattributed().next().is_none()
                && merged.agents().iter().all(|agent| agent.next().is_none()),
            runs,
            agents: (0..).zip(merged.agents()).map(|(at, agent)| AgentPlan::new(merged, at, agent)).collect(),
            not_attributed: merged.unattributed().map(|delivered| delivered.origin.as_str()).collect(),
        }
    }
}

impl<'a> AgentPlan<'a> {
    fn new(merged: &MergedResults, at: usize, agent: &'a Recovery) -> Self {
        Self {
            agent_id: &agent.assignment().agent_id,
            dimensions: &agent.assignment().dimensions,
            state: merged.recovery_state(at),
            past: agent
                .past_runs()
                .iter()
                .map(|past| PastRunPlan { run: &past.run, cut: past.cut.name(), remaining: &past.remaining })
                .collect(),
            gaps: agent.gaps(),
        }
    }
}
