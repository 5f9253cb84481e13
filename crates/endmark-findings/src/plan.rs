//! Who does what again, of a whole team. (AR-4)

use serde::Serialize;

use super::merge::Merged;
use super::recovery::{Recovery, RecoveryState, Run};

/// What is to be done again, and what became of each agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan<'a> {
    /// Whether there is nothing left to do.
    pub done: bool,
    /// What is to be done now; the result of each is handed over under its `agent_id`.
    pub runs: Vec<&'a Run>,
    /// What became of each agent.
    pub agents: Vec<AgentPlan<'a>>,
    /// Files with results that do not say whose they are, and that are named for no agent of the team.
    pub not_attributed: Vec<&'a str>,
}

/// What became of one agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentPlan<'a> {
    /// Its name.
    pub agent_id: &'a str,
    /// What it was to look into.
    pub dimensions: &'a [String],
    /// How far its recovery has come.
    pub state: RecoveryState,
    /// Its runs so far.
    pub past: Vec<PastRunPlan<'a>>,
    /// What stays open when no run is left.
    pub gaps: &'a [String],
}

/// One run that is over.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PastRunPlan<'a> {
    /// The run.
    pub run: &'a Run,
    /// `whole`, `mild` or `severe`.
    pub cut: &'static str,
    /// What it has left open.
    pub remaining: &'a [String],
}

impl Merged {
    /// What is to be done again, by the results so far.
    pub fn plan(&self) -> Plan<'_> {
        Plan::of(self)
    }
}

impl<'a> Plan<'a> {
    fn of(merged: &'a Merged) -> Self {
        let runs: Vec<&Run> = merged
            .agents()
            .iter()
            .filter(|agent| !agent.past().is_empty())
            .filter_map(Recovery::next)
            .collect();
        Self {
            done: runs.is_empty()
                && merged.not_attributed().next().is_none()
                && merged.agents().iter().all(|agent| agent.next().is_none()),
            runs,
            agents: (0..).zip(merged.agents()).map(|(at, agent)| AgentPlan::of(merged, at, agent)).collect(),
            not_attributed: merged.not_attributed().map(|handed| handed.origin.as_str()).collect(),
        }
    }
}

impl<'a> AgentPlan<'a> {
    fn of(merged: &Merged, at: usize, agent: &'a Recovery) -> Self {
        Self {
            agent_id: &agent.assignment().agent_id,
            dimensions: &agent.assignment().dimensions,
            state: merged.recovery_state(at),
            past: agent
                .past()
                .iter()
                .map(|past| PastRunPlan { run: &past.run, cut: past.cut.name(), remaining: &past.remaining })
                .collect(),
            gaps: agent.gaps(),
        }
    }
}
