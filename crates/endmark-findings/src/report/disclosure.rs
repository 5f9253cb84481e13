//! Discloses what may be missing from a report, and why. (AR-6)

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::loss::{Loss, NewFindings, Round};
use crate::merge::{DeliveredResult, MergedResults};
use crate::recovery::{Recovery, RecoveryState, RunKind};
use crate::transcript::alphanumeric_key;

/// The outcome of a run that delivered nothing.
pub(super) const NO_RESULT: &str = "unheard";

/// What may be missing from a report, and why.
// Only `MergedResults` can create one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disclosure {
    /// The number of results delivered.
    pub results: usize,
    /// Every agent whose result was cut, has fewer findings than declared, leaves out requested dimensions, or has
    /// not arrived yet.
    pub truncated_agents: Vec<AgentDisclosure>,
    /// The examined dimensions, and possible gaps.
    pub dimensions: Vec<DimensionCoverage>,
    /// The number of findings that could not be recovered.
    pub unrecovered: Unrecovered,
    /// The number of findings left out because source or sink is missing and was not delivered later. They must be
    /// audited again.
    pub needs_reaudit: usize,
    /// The number of findings discarded with results that do not name their agent.
    pub discarded: usize,
    /// The number of findings that were merged into an earlier one.
    pub joined_duplicates: usize,
}

/// The history of an agent whose result was incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentDisclosure {
    /// The agent's name; null if its result does not state it.
    pub agent_id: Option<String>,
    /// The files that its results came from.
    pub origins: Vec<String>,
    /// Its runs in order, and how each ended. Empty while its first result is awaited.
    pub runs: Vec<RunDisclosure>,
    /// The outcome of its recovery.
    pub recovery: RecoveryState,
    /// The dimensions that may not be fully examined.
    pub gaps: Vec<String>,
    /// The number of its findings that could not be recovered.
    pub unrecovered: Unrecovered,
}

/// A run and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDisclosure {
    /// The reason for the run.
    pub kind: RunKind,
    /// The round, from 1.
    pub round: u32,
    /// The dimensions that it was asked to examine.
    pub dimensions: Vec<String>,
    /// `whole`, `mild` or `severe`; `unheard` if it delivered nothing.
    pub cut: &'static str,
}

/// The number of missing findings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unrecovered {
    /// The number of findings that are certainly missing.
    pub count: usize,
    /// Whether a pending run may still deliver some of them.
    pub is_open: bool,
    /// Whether more may be missing: the total is unknown, or a later round may have repeated some of them.
    pub at_least: bool,
    /// What the count is based on: `checkpoint`, `declared_findings`, `highest_id`.
    pub basis: Vec<&'static str>,
}

/// A dimension, and whether it is certainly covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DimensionCoverage {
    /// The name of the dimension.
    pub dimension: String,
    /// The agents that examined it.
    pub agents: Vec<String>,
    /// Whether a result about it was cut, or left it open. Reports mark it with ⚠️.
    pub truncated: bool,
    /// Whether a run after the cut examined it again.
    pub run_again: bool,
    /// Whether it may not be fully examined.
    pub gap: bool,
}

impl Disclosure {
    /// Creates the disclosure of merged results. Private to the crate, so that nothing else can create one.
    pub(super) fn new(merged: &MergedResults) -> Self {
        let mut truncated_agents = Vec::new();
        let mut coverage = CoverageList::default();
        for (at, agent) in merged.agents().iter().enumerate() {
            let owned = merged.results().iter().zip(&merged.owners).filter(|(_, owner)| **owner == Some(at));
            let delivered: Vec<&DeliveredResult> = owned.map(|(delivered, _)| delivered).collect();
            let disclosure = agent_disclosure(merged, at, agent, &delivered);
            coverage.add(agent, &delivered, disclosure.as_ref());
            truncated_agents.extend(disclosure);
        }
        for (delivered, owner) in merged.results().iter().zip(&merged.owners) {
            let lost = delivered.result.lost_count();
            if owner.is_none() && (!delivered.result.cut.is_whole() || lost > 0) {
                truncated_agents.push(anonymous_disclosure(delivered));
            }
        }
        let mut unrecovered = Unrecovered::default();
        for agent in &truncated_agents {
            unrecovered.count += agent.unrecovered.count;
            unrecovered.at_least |= agent.unrecovered.at_least;
            unrecovered.is_open |= agent.unrecovered.is_open;
            unrecovered.basis.extend(&agent.unrecovered.basis);
        }
        unrecovered.basis.sort_unstable();
        unrecovered.basis.dedup();
        Self {
            results: merged.results().len(),
            truncated_agents,
            dimensions: coverage.list,
            unrecovered,
            needs_reaudit: merged.needs_reaudit(),
            discarded: merged.results().iter().map(|delivered| delivered.result.discarded as usize).sum(),
            joined_duplicates: merged.joined_duplicates(),
        }
    }

    /// Whether any result was cut, recovered or not.
    pub fn is_truncated(&self) -> bool {
        !self.truncated_agents.is_empty()
    }

    /// Whether anything may still be missing. Findings that must be audited again count as not recovered until a
    /// later round delivers them.
    pub fn has_gaps(&self) -> bool {
        self.unrecovered.count > 0
            || self.unrecovered.at_least
            || self.truncated_agents.iter().any(|agent| agent.recovery != RecoveryState::Recovered)
            || self.dimensions.iter().any(|dimension| dimension.gap)
    }
}

/// Returns the disclosure of an agent, or `None` if its first result was complete.
fn agent_disclosure(
    merged: &MergedResults,
    at: usize,
    agent: &Recovery,
    delivered: &[&DeliveredResult],
) -> Option<AgentDisclosure> {
    let recovery = merged.recovery_state(at);
    if recovery == RecoveryState::NotNeeded {
        return None;
    }
    let unrecovered = Unrecovered::new(merged.losses.get(at), agent.state());
    let mut gaps = agent.gaps().to_vec();
    gaps.extend(agent.next().into_iter().flat_map(|run| run.dimensions.iter().cloned()));
    gaps.extend(agent.waiting_dimensions().iter().filter(|waits| !agent.gaps().contains(waits)).cloned());
    if gaps.is_empty() && (unrecovered.count > 0 || unrecovered.at_least) {
        // Lost findings may concern any of its dimensions.
        gaps.clone_from(&agent.assignment().dimensions);
    }
    let runs = agent.past_runs().iter().map(|past| RunDisclosure {
        kind: past.run.kind,
        round: past.run.round,
        dimensions: past.run.dimensions.clone(),
        cut: if past.has_result { past.cut.name() } else { NO_RESULT },
    });
    Some(AgentDisclosure {
        agent_id: Some(agent.assignment().agent_id.clone()),
        origins: delivered.iter().map(|delivered| delivered.origin.clone()).collect(),
        runs: runs.collect(),
        recovery,
        gaps,
        unrecovered,
    })
}

impl AgentDisclosure {
    /// Returns a phrase that completes the sentence "the result of agent x …".
    pub fn describe(&self) -> &'static str {
        match self.runs.iter().map(|run| run.cut).find(|cut| *cut != "whole") {
            Some(NO_RESULT) if self.runs.iter().all(|run| run.cut == NO_RESULT) => "is missing",
            Some(_) => "was truncated",
            None if self.runs.is_empty() => "has not arrived yet",
            None => "is not complete",
        }
    }
}

/// Returns the disclosure of a result without an agent's name.
fn anonymous_disclosure(delivered: &DeliveredResult) -> AgentDisclosure {
    let result = &delivered.result;
    let new = NewFindings { certain: result.kept_findings().count(), uncertain: 0 };
    let loss = Loss::from_rounds(&[Round { result, new, dimensions: &result.dimensions }]);
    let run = RunDisclosure {
        kind: RunKind::Unasked,
        round: 1,
        dimensions: result.dimensions.clone(),
        cut: result.cut.name(),
    };
    AgentDisclosure {
        agent_id: None,
        origins: vec![delivered.origin.clone()],
        runs: vec![run],
        recovery: RecoveryState::NotRecovered,
        gaps: result.dimensions.clone(),
        unrecovered: Unrecovered::new(Some(&loss), RecoveryState::NotRecovered),
    }
}

impl Unrecovered {
    fn new(loss: Option<&Loss>, state: RecoveryState) -> Self {
        let Some(loss) = loss else { return Self::default() };
        Self {
            count: loss.count,
            is_open: state == RecoveryState::Pending,
            at_least: loss.may_be_higher || state != RecoveryState::Recovered && !loss.has_stated_total,
            basis: loss.basis.iter().map(|basis| basis.name()).collect(),
        }
    }
}

/// The dimensions of all agents, in the order in which they are first named.
#[derive(Default)]
struct CoverageList {
    list: Vec<DimensionCoverage>,
    positions: BTreeMap<String, usize>,
}

impl CoverageList {
    fn add(
        &mut self,
        agent: &Recovery,
        delivered: &[&DeliveredResult],
        disclosure: Option<&AgentDisclosure>,
    ) {
        let name = &agent.assignment().agent_id;
        let was_cut = agent.past_runs().iter().any(|past| !past.cut.is_whole());
        let left_open = agent.past_runs().iter().flat_map(|past| &past.remaining);
        let left_open: HashSet<String> = left_open.map(|open| alphanumeric_key(open)).collect();
        let run_again: HashSet<String> =
            agent.rerun_dimensions().map(|known| alphanumeric_key(known)).collect();
        let of_results = delivered.iter().flat_map(|delivered| &delivered.result.dimensions);
        for dimension in agent.assignment().dimensions.iter().chain(of_results) {
            let entry = self.entry(dimension);
            if !entry.agents.contains(name) {
                entry.agents.push(name.clone());
            }
            // All dimensions of a cut result are marked (AR-4), but only the open ones of a complete result.
            let letters = alphanumeric_key(dimension);
            entry.truncated |= was_cut || left_open.contains(&letters);
            entry.run_again |= run_again.contains(&letters);
        }
        for gap in disclosure.into_iter().flat_map(|disclosure| &disclosure.gaps) {
            let entry = self.entry(gap);
            entry.gap = true;
            entry.truncated = true;
            if !entry.agents.contains(name) {
                entry.agents.push(name.clone());
            }
        }
    }

    fn entry(&mut self, dimension: &str) -> &mut DimensionCoverage {
        let at = *self.positions.entry(alphanumeric_key(dimension)).or_insert_with(|| {
            self.list.push(DimensionCoverage {
                dimension: dimension.to_owned(),
                agents: Vec::new(),
                truncated: false,
                run_again: false,
                gap: false,
            });
            self.list.len() - 1
        });
        &mut self.list[at]
    }
}
