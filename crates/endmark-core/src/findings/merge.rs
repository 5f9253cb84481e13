//! Rounds and agents merged. (AR-4, AR-5)

use std::collections::HashMap;

use super::finding::{Finding, FindingId};
use super::join::{Member, groups, joined};
use super::recovery::{Assignment, Recovery, RecoveryPolicy};
use super::transcript::{AgentResult, Cut, FindingState};

/// A result, and where it came from.
#[derive(Debug, Clone)]
pub struct Handed {
    /// The file, or another name for people.
    pub origin: String,
    /// The result.
    pub result: AgentResult,
}

/// A team of agents that are to hand something over.
#[derive(Debug, Clone, Default)]
pub struct Team {
    /// The agents; whoever is not named here is taken as the results come.
    pub agents: Vec<Assignment>,
    /// How far recovery goes.
    pub policy: RecoveryPolicy,
    /// Whether agents that have handed nothing over may still be at it; else that is a severe cut.
    pub is_running: bool,
}

/// The results of all agents and rounds, merged (AR-5).
#[derive(Debug, Clone)]
pub struct Merged {
    pub(super) handed: Vec<Handed>,
    /// Whose each result is, by its place in `agents`.
    pub(super) owners: Vec<Option<usize>>,
    pub(super) agents: Vec<Recovery>,
    pub(super) findings: Vec<MergedFinding>,
    /// How many findings of each result are new to its agent.
    pub(super) new: Vec<usize>,
    pub(super) joined: usize,
}

/// A finding of the whole team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedFinding {
    /// The finding, numbered anew: the worst has the first number.
    pub finding: Finding,
    /// What it was called besides.
    pub also_titled: Vec<String>,
    /// Which agents have handed it over, in alphabetical order; those without a name are not among them.
    pub reported_by: Vec<String>,
}

impl Merged {
    /// Merges results in the order in which they were handed over: an agent's first one, its retry, its supplements
    /// (AR-4, AR-5).
    ///
    /// A result that does not say whose it is belongs to the agent of the team that its origin is named for
    /// (`auth-2.txt`, `auth-2.retry.txt`), or to none.
    pub fn new(team: &Team, handed: Vec<Handed>) -> Self {
        let mut agents: Vec<Recovery> =
            team.agents.iter().map(|assignment| Recovery::new(assignment.clone(), team.policy)).collect();
        let mut known: HashMap<String, usize> = team
            .agents
            .iter()
            .enumerate()
            .map(|(at, assignment)| (assignment.agent_id.clone(), at))
            .collect();
        let mut owners = Vec::with_capacity(handed.len());
        for Handed { origin, result } in &handed {
            let name = result.agent_id.clone().or_else(|| named_for(origin, &team.agents));
            let owner = name.map(|name| {
                *known.entry(name.clone()).or_insert_with(|| {
                    let dimensions = result.dimensions.clone();
                    agents.push(Recovery::new(
                        Assignment { agent_id: name, dimensions, max_turns: None },
                        team.policy,
                    ));
                    agents.len() - 1
                })
            });
            if let Some(agent) = owner.and_then(|owner| agents.get_mut(owner)) {
                agent.handed_over(result);
            }
            owners.push(owner);
        }
        if !team.is_running {
            for agent in agents.iter_mut().filter(|agent| agent.past().is_empty()) {
                agent.ended(Cut::Severe, Vec::new());
            }
        }
        let mut merged = Self { handed, owners, agents, findings: Vec::new(), new: Vec::new(), joined: 0 };
        merged.join();
        merged
    }

    fn join(&mut self) {
        let mut members = Vec::new();
        for (result, (handed, owner)) in self.handed.iter().zip(&self.owners).enumerate() {
            let agent = owner
                .and_then(|owner| self.agents.get(owner))
                .map(|agent| agent.assignment().agent_id.clone());
            for read in handed.result.kept() {
                members.push(Member {
                    agent: agent.clone(),
                    result,
                    finding: read.finding.clone(),
                    state: read.state,
                });
            }
        }
        self.new = vec![0; self.handed.len()];
        for group in groups(&members) {
            let group: Vec<&Member> = group.into_iter().filter_map(|at| members.get(at)).collect();
            self.count_new(&group);
            let mut reported_by: Vec<String> =
                group.iter().filter_map(|member| member.agent.clone()).collect();
            reported_by.sort_unstable();
            reported_by.dedup();
            self.joined += group.len() - 1;
            if let Some((finding, also_titled)) = joined(group) {
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
            merged.finding.id = FindingId::numbered(number);
        }
    }

    /// An agent may hand the same finding over in several rounds: it counts once, and in the first of them. Where one of
    /// them has it twice, it is two. The members are in the order of their results.
    fn count_new(&mut self, group: &[&Member]) {
        let mut had: HashMap<Said<'_>, usize> = HashMap::new();
        let mut at = 0;
        while let Some(first) = group.get(at) {
            let of_result = group[at..].iter().take_while(|member| member.result == first.result);
            let mut here: HashMap<Said<'_>, usize> = HashMap::new();
            for member in of_result {
                at += 1;
                let said = said(member);
                let count = here.entry(said).or_default();
                *count += 1;
                let had = had.entry(said).or_default();
                if *count > *had {
                    *had = *count;
                    if let Some(new) = self.new.get_mut(member.result) {
                        *new += 1;
                    }
                }
            }
        }
    }

    /// The findings of the whole team, the worst first.
    pub fn findings(&self) -> &[MergedFinding] {
        &self.findings
    }

    /// All agents: first those of the team, then the others in the order of their results.
    pub fn agents(&self) -> &[Recovery] {
        &self.agents
    }

    /// The results that were merged, in order.
    pub fn handed(&self) -> &[Handed] {
        &self.handed
    }

    /// The results of which it is not known whose they are.
    pub fn not_attributed(&self) -> impl Iterator<Item = &Handed> {
        let nobodys = self.owners.iter().map(Option::is_none);
        self.handed.iter().zip(nobodys).filter_map(|(handed, is_nobodys)| is_nobodys.then_some(handed))
    }

    /// How many findings were joined with one that was there already.
    pub fn joined_duplicates(&self) -> usize {
        self.joined
    }

    /// How many findings are kept out because someone has to look again (AR-5).
    pub fn needs_reaudit(&self) -> usize {
        self.handed.iter().map(|handed| handed.result.count(FindingState::NeedsReaudit)).sum()
    }
}

/// Whose a finding is, its title, its source and its sink: what two rounds repeat if they mean the same.
type Said<'a> = (Option<&'a str>, &'a str, Option<&'a str>, Option<&'a str>);

fn said(member: &Member) -> Said<'_> {
    let finding = &member.finding;
    (member.agent.as_deref(), finding.title.as_str(), finding.source.as_deref(), finding.sink.as_deref())
}

/// The agent of the team that a file is named for.
fn named_for(origin: &str, agents: &[Assignment]) -> Option<String> {
    let name = origin.rsplit(['/', '\\']).next().unwrap_or(origin);
    let is_of = |agent: &&Assignment| {
        name.strip_prefix(&agent.agent_id).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    agents.iter().filter(is_of).map(|agent| agent.agent_id.clone()).max_by_key(String::len)
}
