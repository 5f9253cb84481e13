//! Merges the results of rounds and agents. (AR-4, AR-5)

use std::collections::HashMap;

use super::finding::{Finding, FindingId};
use super::join::{GroupMember, add_titles, group_members, join_group};
use super::loss::{Loss, NewFindings, Round, count_new_findings};
use super::named_run::{NamedRun, agent_in_name, sort_by_run};
use super::recovery::{Assignment, Recovery, RecoveryPolicy, RecoveryState, Run, UNNAMED_DIMENSIONS};
use super::transcript::{AgentResult, FindingState, alphanumeric_key};
use super::vocabulary::contains;
use super::write::WriteParameters;

/// A result and its origin.
#[derive(Debug, Clone)]
pub struct DeliveredResult {
    /// The file name, or another label for people.
    pub origin: String,
    /// The result.
    pub result: AgentResult,
}

/// The agents that are expected to deliver results, and the rules of their recovery.
#[derive(Debug, Clone, Default)]
pub struct Team {
    /// The agents. Others are added as their results arrive.
    pub agents: Vec<Assignment>,
    /// The limits of the recovery.
    pub policy: RecoveryPolicy,
    /// Whether agents without a result may still be running. Otherwise a missing result is a severe cut.
    pub is_running: bool,
}

/// The results of all agents and rounds, merged (AR-5).
#[derive(Debug, Clone)]
pub struct MergedResults {
    pub(super) results: Vec<DeliveredResult>,
    /// For each result the index of its agent in `agents`, if the agent is known.
    pub(super) owners: Vec<Option<usize>>,
    pub(super) agents: Vec<Recovery>,
    pub(super) findings: Vec<MergedFinding>,
    /// The missing findings of each agent.
    pub(super) losses: Vec<Loss>,
    pub(super) joined_count: usize,
    /// The number of agents that belong to the team.
    team_size: usize,
}

/// A finding of the whole team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedFinding {
    /// The finding, renumbered so that the worst has the first number.
    pub finding: Finding,
    /// The other titles under which it was reported.
    pub also_titled: Vec<String>,
    /// The agents that reported it, in alphabetical order. Agents without a name are left out.
    pub reported_by: Vec<String>,
}

impl MergedResults {
    /// Merges results in the order of delivery: an agent's first run, its retry, its supplements (AR-4, AR-5). Files
    /// in one folder that are named after the runs of one agent are first sorted by run.
    ///
    /// A result that does not name its agent belongs to the agent of the team in its file name (`auth-2.txt`,
    /// `auth-2.retry.txt`), or to no agent. If an agent has only a later run, its first run counts as a run without a
    /// result. The same applies to a supplement if only its retry exists (`auth-2.2.retry.txt`).
    ///
    /// Names are compared without case and without a note about the run (`auth-2 (retry 1)`). Punctuation is ignored
    /// too, if only one agent of the team then matches. A result that one transcript repeats directly counts once.
    pub fn new(team: &Team, delivered: Vec<DeliveredResult>) -> Self {
        let delivered =
            drop_repeated(sort_by_run(delivered, |delivered| resolve_agent(delivered, &team.agents)));
        let mut agents: Vec<Recovery> =
            team.agents.iter().map(|assignment| Recovery::new(assignment.clone(), team.policy)).collect();
        let mut known: HashMap<String, usize> = team
            .agents
            .iter()
            .enumerate()
            .map(|(at, assignment)| (fold_name(&assignment.agent_id), at))
            .collect();
        let mut owners = Vec::with_capacity(delivered.len());
        for handed in &delivered {
            let DeliveredResult { origin, result } = handed;
            let owner = resolve_agent(handed, &team.agents).map(|name| {
                *known.entry(fold_name(&name)).or_insert_with(|| {
                    let dimensions = result.dimensions.clone();
                    let assignment = Assignment { agent_id: name, dimensions, max_turns: None };
                    agents.push(Recovery::new(assignment, team.policy));
                    agents.len() - 1
                })
            });
            if let Some(agent) = owner.and_then(|owner| agents.get_mut(owner)) {
                // If only a later run exists, the run before it delivered nothing.
                let named = NamedRun::parse(origin, &agent.assignment().agent_id);
                let is_skipped = |run: &Run| named.is_some_and(|named| named.follows(run));
                if agent.next().is_some_and(is_skipped) {
                    agent.note_missing_result();
                }
                agent.accept_result(result);
            }
            owners.push(owner);
        }
        if !team.is_running {
            for agent in agents.iter_mut().filter(|agent| agent.past_runs().is_empty()) {
                agent.note_missing_result();
            }
        }
        let of_team = team.agents.len();
        let mut merged = Self {
            results: delivered,
            owners,
            agents,
            findings: Vec::new(),
            losses: Vec::new(),
            joined_count: 0,
            team_size: of_team,
        };
        merged.join_findings();
        merged
    }

    fn join_findings(&mut self) {
        let mut members = Vec::new();
        for (result, (delivered, owner)) in self.results.iter().zip(&self.owners).enumerate() {
            let agent = owner
                .and_then(|owner| self.agents.get(owner))
                .map(|agent| agent.assignment().agent_id.clone());
            for read in delivered.result.kept_findings() {
                members.push(GroupMember {
                    agent: agent.clone(),
                    result,
                    finding: read.finding.clone(),
                    state: read.state,
                });
            }
        }
        let mut new = vec![NewFindings::default(); self.results.len()];
        for group in group_members(&members) {
            let group: Vec<&GroupMember> = group.into_iter().filter_map(|at| members.get(at)).collect();
            count_new_findings(&group, &mut new);
            let mut reported_by: Vec<String> =
                group.iter().filter_map(|member| member.agent.clone()).collect();
            reported_by.sort_unstable();
            reported_by.dedup();
            self.joined_count += group.len() - 1;
            if let Some((finding, also_titled)) = join_group(group) {
                self.findings.push(MergedFinding { finding, also_titled, reported_by });
            }
        }
        self.findings.sort_by_cached_key(|merged| {
            let finding = &merged.finding;
            let places = finding.location.as_ref().map(|location| location.places().to_vec());
            let severity = finding.severity.clone();
            (
                severity.is_none(),
                severity,
                places,
                finding.cwe.clone(),
                finding.title.clone(),
                finding.source.clone(),
            )
        });
        for (merged, number) in self.findings.iter_mut().zip(1..) {
            merged.finding.id = FindingId::from_number(number);
        }
        let of_agent = |(at, agent): (usize, &Recovery)| {
            let owned = self.results.iter().zip(&self.owners).zip(&new);
            let owned = owned.filter(|((_, owner), _)| **owner == Some(at));
            let runs = agent.past_runs().iter().filter(|past| past.has_result);
            let rounds = owned.zip(runs).map(|(((delivered, _), new), past)| {
                let is_named = |dimensions: &&Vec<String>| {
                    !dimensions.is_empty() && **dimensions != [UNNAMED_DIMENSIONS]
                };
                let dimensions =
                    [&delivered.result.dimensions, &past.run.dimensions].into_iter().find(is_named);
                Round {
                    result: &delivered.result,
                    new: *new,
                    dimensions: dimensions.map_or(&[], Vec::as_slice),
                }
            });
            Loss::from_rounds(&rounds.collect::<Vec<_>>())
        };
        self.losses = self.agents.iter().enumerate().map(of_agent).collect();
    }

    /// Returns the findings of the whole team, worst first.
    pub fn findings(&self) -> &[MergedFinding] {
        &self.findings
    }

    /// Returns all agents: first those of the team, then the others in the order of their results.
    pub fn agents(&self) -> &[Recovery] {
        &self.agents
    }

    /// Returns the merged results, in order.
    pub fn results(&self) -> &[DeliveredResult] {
        &self.results
    }

    /// Returns the results whose agent is unknown.
    pub fn unattributed(&self) -> impl Iterator<Item = &DeliveredResult> {
        let without_owner = self.owners.iter().map(Option::is_none);
        self.results
            .iter()
            .zip(without_owner)
            .filter_map(|(delivered, has_no_owner)| has_no_owner.then_some(delivered))
    }

    /// Returns the results of agents outside the team, each with its agent. Empty if the team has no members.
    pub fn not_in_team(&self) -> impl Iterator<Item = (&DeliveredResult, &str)> {
        let outside_team =
            |owner: &Option<usize>| owner.filter(|owner| self.team_size > 0 && *owner >= self.team_size);
        let owned = self.results.iter().zip(self.owners.iter().map(outside_team));
        owned.filter_map(|(delivered, owner)| {
            Some((delivered, self.agents.get(owner?)?.assignment().agent_id.as_str()))
        })
    }

    /// Returns the recovery state of the agent at this index of `agents` (AR-6). An agent with missing findings does
    /// not count as recovered.
    pub fn recovery_state(&self, agent: usize) -> RecoveryState {
        let state = self.agents.get(agent).map_or(RecoveryState::NotNeeded, Recovery::state);
        let is_short = self.losses.get(agent).is_some_and(|loss| loss.count > 0 || loss.may_be_higher);
        match state {
            RecoveryState::NotNeeded | RecoveryState::Recovered if is_short => RecoveryState::NotRecovered,
            state => state,
        }
    }

    /// Returns the findings in the canonical form, with an end marker only if nothing is missing.
    pub fn text(&self) -> String {
        let report = self.report();
        let disclosure = report.disclosure();
        let agents = self.agents();
        let agent_id = match agents {
            [agent] => agent.assignment().agent_id.as_str(),
            _ => "merged",
        };
        let dimensions = disclosure.dimensions.iter().map(|dimension| dimension.dimension.clone());
        // The placeholder for unnamed dimensions would be parsed as a dimension.
        let dimensions: Vec<String> =
            dimensions.filter(|dimension| dimension != UNNAMED_DIMENSIONS).collect();
        // Unknown header fields of one result do not apply to several results.
        let other = match self.results() {
            [handed] => handed.result.other.as_slice(),
            _ => &[],
        };
        let writing = WriteParameters {
            agent_id: Some(agent_id),
            dimensions: &dimensions,
            declared_findings: Some(self.findings().len() + disclosure.unrecovered.count),
            other,
            is_whole: !disclosure.has_gaps(),
        };
        let titled = |merged: &MergedFinding| {
            let mut finding = merged.finding.clone();
            add_titles(&mut finding, &merged.also_titled);
            finding
        };
        writing.text(&self.findings().iter().map(titled).collect::<Vec<_>>())
    }

    /// Returns the number of findings that were merged into an earlier one.
    pub fn joined_duplicates(&self) -> usize {
        self.joined_count
    }

    /// Returns the number of findings left out because they must be audited again and no later round did so (AR-5).
    pub fn needs_reaudit(&self) -> usize {
        let unattributed =
            self.unattributed().map(|delivered| delivered.result.count(FindingState::NeedsReaudit));
        self.losses.iter().map(|loss| loss.needs_reaudit).chain(unattributed).sum()
    }
}

/// Drops a result that equals the agent's previous result from the same file, because a repetition in one transcript
/// is not a second round.
fn drop_repeated(delivered: Vec<DeliveredResult>) -> Vec<DeliveredResult> {
    let mut last: HashMap<String, usize> = HashMap::new();
    let mut distinct: Vec<DeliveredResult> = Vec::with_capacity(delivered.len());
    for handed in delivered {
        let agent = handed.result.agent_id.as_deref().map(fold_name);
        let known = agent.as_ref().and_then(|agent| distinct.get(*last.get(agent)?));
        // Two results without findings may be two runs that failed in the same way.
        let is_repetition = known.is_some_and(|known| {
            known.origin == handed.origin
                && !handed.result.findings.is_empty()
                && known.result.has_same_content(&handed.result)
        });
        if !is_repetition {
            last.extend(agent.map(|agent| (agent, distinct.len())));
            distinct.push(handed);
        }
    }
    distinct
}

/// Normalises a name for comparison. Models change capitals and add quotes or emphasis.
pub(super) fn fold_name(name: &str) -> String {
    let is_ornament = |character: char| character.is_whitespace() || "`*\"'<>".contains(character);
    name.trim_matches(is_ornament).to_lowercase()
}

/// Removes a note about the run after a name: `auth-2 (retry 1)`.
fn strip_run_note(name: &str) -> &str {
    let note = name.split_once(" (").or_else(|| name.split_once(" ["));
    let is_run_note =
        |note: &str| note.split(|ch: char| !ch.is_alphanumeric()).any(|word| contains("run", word));
    note.filter(|(_, note)| is_run_note(note)).map_or(name, |(name, _)| name)
}

/// Returns the agent that the result or its file name states, in the team's spelling.
fn resolve_agent(delivered: &DeliveredResult, agents: &[Assignment]) -> Option<String> {
    let Some(name) = delivered.result.agent_id.as_deref().map(strip_run_note) else {
        return agent_in_name(&delivered.origin, agents);
    };
    let of_team = find_similar(name, agents).and_then(|at| agents.get(at));
    Some(of_team.map_or(name, |agent| agent.agent_id.as_str()).to_owned())
}

/// Returns the only agent of the team whose name differs at most in case and punctuation.
fn find_similar(name: &str, agents: &[Assignment]) -> Option<usize> {
    let wanted = alphanumeric_key(name);
    let mut found =
        agents.iter().enumerate().filter(|(_, agent)| alphanumeric_key(&agent.agent_id) == wanted);
    let (at, _) = found.next().filter(|_| !wanted.is_empty())?;
    found.next().is_none().then_some(at)
}
