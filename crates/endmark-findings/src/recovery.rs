//! Recovery after a cut, as a machine: who does what again. (AR-4)

use serde::Serialize;

use super::transcript::{AgentResult, Cut, is_named, same_dimension};

/// A retry after a severe cut hands over at most so many findings (AR-4).
pub const MOST_FINDINGS_OF_RETRY: u32 = 5;

/// What an agent calls its dimensions by if it names none.
pub const NOT_NAMED: &str = "(not named)";

/// What an agent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Its name.
    pub agent_id: String,
    /// What it is to look into.
    pub dimensions: Vec<String>,
    /// How many turns it may take, where that is limited.
    pub max_turns: Option<u32>,
}

/// How far recovery goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryPolicy {
    /// How many rounds there are, the first included; at least 1.
    pub rounds: u32,
    /// Whether an emergency agent fills what the last round leaves.
    pub emergency: bool,
}

impl Default for RecoveryPolicy {
    /// The next round, then an emergency agent.
    fn default() -> Self {
        Self { rounds: 2, emergency: true }
    }
}

/// One run of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Whose result it is to be.
    pub agent_id: String,
    /// Why it is made.
    pub kind: RunKind,
    /// In which round, from 1.
    pub round: u32,
    /// What it looks into.
    pub dimensions: Vec<String>,
    /// How many turns it may take; null if that is not limited.
    pub max_turns: Option<u32>,
    /// How many findings it may hand over; null if that is not limited.
    pub max_findings: Option<u32>,
}

/// Why a run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// The first one.
    First,
    /// Half of it again, after a severe cut.
    Retry,
    /// The next round, for what remains.
    Supplement,
    /// Behind the last round, for what still remains.
    Emergency,
    /// Nobody asked for it, and it came all the same.
    Unasked,
}

/// A run that is over, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRun {
    /// What was asked for.
    pub run: Run,
    /// How it came; severe too where nothing came at all.
    pub cut: Cut,
    /// Whether anything was handed over at all.
    pub is_heard: bool,
    /// What it has left open.
    pub remaining: Vec<String>,
}

/// Where the recovery of an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecoveryState {
    /// All was handed over whole, in full and at once.
    NotNeeded,
    /// Everything that was cut or left out was looked into again, and handed over whole.
    Recovered,
    /// A run is still to be made, or to hand its result over.
    Pending,
    /// No run is left, and something is still open or missing.
    NotRecovered,
}

/// The recovery of one agent: it is fed how each run ended, and answers which one is next (AR-4).
///
/// ```
/// use endmark_findings::{Assignment, Cut, Recovery, RecoveryPolicy};
///
/// let dimensions = ["a", "b", "c"].map(str::to_owned).to_vec();
/// let assignment = Assignment { agent_id: "x".into(), dimensions, max_turns: Some(25) };
/// let mut recovery = Recovery::new(assignment, RecoveryPolicy::default());
/// recovery.ended(Cut::Severe, Vec::new());
/// let retry = recovery.next().unwrap();
/// assert_eq!((retry.dimensions.join(","), retry.max_turns, retry.max_findings), ("a,b".into(), Some(13), Some(5)));
/// recovery.ended(Cut::Whole, Vec::new());
/// assert_eq!(recovery.next().unwrap().dimensions, ["c"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    assignment: Assignment,
    policy: RecoveryPolicy,
    run: Option<Run>,
    past: Vec<PastRun>,
    /// What the next round is left with.
    waiting: Vec<String>,
    /// What was retried, and is not retried again.
    retried: Vec<String>,
    gaps: Vec<String>,
}

impl Recovery {
    /// An agent before its first run.
    pub fn new(assignment: Assignment, policy: RecoveryPolicy) -> Self {
        let mut assignment = assignment;
        if assignment.dimensions.is_empty() {
            assignment.dimensions.push(NOT_NAMED.to_owned());
        }
        let run = Run {
            agent_id: assignment.agent_id.clone(),
            kind: RunKind::First,
            round: 1,
            dimensions: assignment.dimensions.clone(),
            max_turns: assignment.max_turns,
            max_findings: None,
        };
        let policy = RecoveryPolicy { rounds: policy.rounds.max(1), ..policy };
        Self {
            assignment,
            policy,
            run: Some(run),
            past: Vec::new(),
            waiting: Vec::new(),
            retried: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// The run that is to be made now; none if there is nothing left to do.
    pub fn next(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// The agent's part of a team.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The runs that are over, in order.
    pub fn past(&self) -> &[PastRun] {
        &self.past
    }

    /// Dimensions that wait for the next round.
    pub fn waiting(&self) -> &[String] {
        &self.waiting
    }

    /// What stays open when no run is left.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Where it stands.
    pub fn state(&self) -> RecoveryState {
        let was_short = self.past.iter().any(PastRun::is_short);
        match &self.run {
            Some(_) => RecoveryState::Pending,
            None if !self.gaps.is_empty() => RecoveryState::NotRecovered,
            None if was_short => RecoveryState::Recovered,
            None => RecoveryState::NotNeeded,
        }
    }

    /// Whether a run was cut, or has left this dimension open.
    pub(super) fn was_short_of(&self, dimension: &str) -> bool {
        let is_open = |past: &PastRun| past.remaining.iter().any(|open| same_dimension(open, dimension));
        self.past.iter().any(|past| !past.cut.is_whole() || is_open(past))
    }

    /// Whether a run after one that was cut has looked into a dimension.
    pub(super) fn has_run_again(&self, dimension: &str) -> bool {
        let after = self.past.iter().skip_while(|past| !past.is_short()).skip(1);
        let mut dimensions = after.filter(|past| past.is_heard).flat_map(|past| &past.run.dimensions);
        dimensions.any(|known| same_dimension(known, dimension))
    }

    /// Takes the result of the run that was to be made, or of one that nobody asked for.
    pub fn handed_over(&mut self, result: &AgentResult) {
        let run = self.run.get_or_insert_with(|| Run {
            agent_id: self.assignment.agent_id.clone(),
            kind: RunKind::Unasked,
            round: self.past.last().map_or(1, |past| past.run.round),
            dimensions: [&result.dimensions, &self.assignment.dimensions]
                .into_iter()
                .find(|dimensions| !dimensions.is_empty())
                .cloned()
                .unwrap_or_default(),
            max_turns: None,
            max_findings: None,
        });
        let is_full = is_full(run, result);
        let remaining = if is_full { run.dimensions.clone() } else { left_open(run, result) };
        if !is_full && result.cut.is_whole() && result.lost() == 0 {
            let asked_for = run.dimensions.clone();
            let is_open = |dimension: &String| !is_covered(dimension, result, &asked_for);
            self.waiting.retain(is_open);
            self.gaps.retain(is_open);
        }
        self.ended(result.cut, remaining);
    }

    /// Takes how the run that was to be made has ended, and what a mild cut leaves open: all of it if nothing is said.
    pub fn ended(&mut self, cut: Cut, remaining: Vec<String>) {
        self.over(cut, remaining, true);
    }

    /// Takes that nothing has come of the run that was to be made: all of it is open.
    pub fn unheard(&mut self) {
        self.over(Cut::Severe, Vec::new(), false);
    }

    fn over(&mut self, cut: Cut, remaining: Vec<String>, is_heard: bool) {
        let Some(run) = self.run.take() else { return };
        let remaining = match cut {
            Cut::Whole => remaining,
            Cut::Mild if !remaining.is_empty() => remaining,
            Cut::Mild | Cut::Severe => run.dimensions.clone(),
        };
        self.past.push(PastRun { run: run.clone(), cut, is_heard, remaining: remaining.clone() });
        // Behind an emergency agent nothing comes, and who was not asked is not asked again.
        if cut == Cut::Severe && !matches!(run.kind, RunKind::Emergency | RunKind::Unasked) {
            let (again, never): (Vec<String>, Vec<String>) =
                remaining.iter().cloned().partition(|dimension| !self.retried.contains(dimension));
            if !again.is_empty() {
                return self.retry(&run, &again, never);
            }
        }
        self.wait_for(remaining);
        self.go_on(&run);
    }

    /// Half of the dimensions and half of the turns, rounded up; the other half waits for the next round.
    fn retry(&mut self, run: &Run, again: &[String], never: Vec<String>) {
        let (half, other) = again.split_at(again.len().div_ceil(2));
        self.retried.extend(half.iter().cloned());
        self.wait_for(other.iter().cloned().chain(never));
        self.run = Some(Run {
            kind: RunKind::Retry,
            dimensions: half.to_vec(),
            max_turns: run.max_turns.map(|turns| turns.div_ceil(2).max(1)),
            max_findings: Some(MOST_FINDINGS_OF_RETRY),
            ..run.clone()
        });
    }

    fn wait_for(&mut self, dimensions: impl IntoIterator<Item = String>) {
        add_missing(&mut self.waiting, dimensions);
    }

    /// The next round, or the emergency agent, for what waits.
    fn go_on(&mut self, run: &Run) {
        let dimensions = std::mem::take(&mut self.waiting);
        if dimensions.is_empty() {
            return;
        }
        // The emergency agent comes once, whatever is handed over unasked behind it.
        let was_emergency = self.past.iter().any(|past| past.run.kind == RunKind::Emergency);
        let kind = match run.kind {
            _ if was_emergency => None,
            _ if run.round < self.policy.rounds => Some(RunKind::Supplement),
            _ => self.policy.emergency.then_some(RunKind::Emergency),
        };
        match kind {
            None => add_missing(&mut self.gaps, dimensions),
            Some(kind) => {
                self.run = Some(Run {
                    kind,
                    round: run.round + 1,
                    dimensions,
                    max_turns: self.assignment.max_turns,
                    max_findings: None,
                    ..run.clone()
                });
            }
        }
    }
}

/// Adds what is not there yet.
fn add_missing(list: &mut Vec<String>, dimensions: impl IntoIterator<Item = String>) {
    for dimension in dimensions {
        if !list.iter().any(|known| same_dimension(known, &dimension)) {
            list.push(dimension);
        }
    }
}

impl PastRun {
    /// Whether it was cut, or has left something open.
    fn is_short(&self) -> bool {
        !self.cut.is_whole() || !self.remaining.is_empty()
    }
}

/// Whether a whole result has looked into a dimension, whoever asked for that: it names it; or the dimension has no name,
/// or it names none itself, and so has looked into all it was to.
fn is_covered(dimension: &String, result: &AgentResult, asked_for: &[String]) -> bool {
    if result.declared_gaps().contains(dimension) {
        return false;
    }
    *dimension == NOT_NAMED
        || is_named(dimension, &result.dimensions)
        || result.dimensions.is_empty() && asked_for.contains(dimension)
}

/// Whether a run has brought as many findings as it may, so that there may be more of what it looked into.
fn is_full(run: &Run, result: &AgentResult) -> bool {
    result.cut.is_whole() && run.max_findings.is_some_and(|most| result.findings.len() >= most as usize)
}

/// What a run has left open of what it was to look into; nothing also where a cut says nothing.
fn left_open(run: &Run, result: &AgentResult) -> Vec<String> {
    // Who was asked for some dimensions and names others has left those open; who names none has looked into all.
    let is_asked_for = run.kind != RunKind::Unasked && !result.dimensions.is_empty();
    let is_open = |dimension: &&String| {
        is_asked_for && **dimension != NOT_NAMED && !is_named(dimension, &result.dimensions)
    };
    let left_out = run.dimensions.iter().filter(is_open).cloned();
    // A later run may skip on purpose what it was not asked for.
    let is_first = matches!(run.kind, RunKind::First | RunKind::Unasked) || run.dimensions == [NOT_NAMED];
    let declared = result.declared_gaps().into_iter();
    let declared = declared.filter(|gap| is_first || is_named(gap, &run.dimensions));
    let left_out = left_out.chain(declared);
    match result.cut {
        Cut::Severe => Vec::new(),
        // It has its end, and yet it is short of what it declares: what is missing may be of any of them.
        Cut::Whole if result.lost() > 0 => {
            let mut remaining = run.dimensions.clone();
            add_missing(&mut remaining, left_out);
            remaining
        }
        Cut::Whole => {
            let mut remaining = Vec::new();
            add_missing(&mut remaining, left_out);
            remaining
        }
        Cut::Mild => {
            let mut remaining = result.remaining_dimensions();
            if !remaining.is_empty() {
                add_missing(&mut remaining, left_out);
            }
            remaining
        }
    }
}

impl RunKind {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Retry => "retry",
            Self::Supplement => "supplement",
            Self::Emergency => "emergency",
            Self::Unasked => "unasked",
        }
    }
}

impl RecoveryState {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotNeeded => "not needed",
            Self::Recovered => "recovered",
            Self::Pending => "still to be done",
            Self::NotRecovered => "not recovered",
        }
    }
}
