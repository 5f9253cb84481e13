//! Decides after a cut which agent examines which dimensions again. (AR-4)

use std::collections::HashSet;

use serde::Serialize;

use super::transcript::{AgentResult, Cut, alphanumeric_key, is_named};

/// The maximum number of findings in a retry after a severe cut (AR-4).
pub const MAX_FINDINGS_OF_RETRY: u32 = 5;

/// The placeholder for the dimensions of an agent that names none.
pub const UNNAMED_DIMENSIONS: &str = "(not named)";

/// The task of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the agent.
    pub agent_id: String,
    /// The dimensions that it examines.
    pub dimensions: Vec<String>,
    /// The maximum number of turns, if there is a limit.
    pub max_turns: Option<u32>,
}

/// Limits of the recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryPolicy {
    /// The number of rounds, including the first; at least 1.
    pub rounds: u32,
    /// Whether an emergency agent examines the dimensions that the last round leaves open.
    pub emergency: bool,
}

impl Default for RecoveryPolicy {
    /// Returns two rounds, followed by an emergency agent.
    fn default() -> Self {
        Self { rounds: 2, emergency: true }
    }
}

/// One run of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// The agent whose result is expected.
    pub agent_id: String,
    /// The reason for the run.
    pub kind: RunKind,
    /// The round, from 1.
    pub round: u32,
    /// The dimensions that it examines.
    pub dimensions: Vec<String>,
    /// The maximum number of turns; null if there is no limit.
    pub max_turns: Option<u32>,
    /// The maximum number of findings; null if there is no limit.
    pub max_findings: Option<u32>,
}

/// The reason for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// The first run.
    First,
    /// A repetition with half of the dimensions, after a severe cut.
    Retry,
    /// The next round, for the remaining dimensions.
    Supplement,
    /// The run after the last round, for dimensions that are still open.
    Emergency,
    /// A result that arrived although no run was requested.
    Unasked,
}

/// A finished run and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRun {
    /// The run that was requested.
    pub run: Run,
    /// Whether the result was complete. `Cut::Severe` if nothing arrived.
    pub cut: Cut,
    /// Whether a result arrived.
    pub has_result: bool,
    /// The dimensions that the run left open.
    pub remaining: Vec<String>,
}

/// The state of an agent's recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecoveryState {
    /// The first result was complete and left nothing open.
    NotNeeded,
    /// A later run examined everything that was cut or left out, and its result was complete.
    Recovered,
    /// A run is still to be started, or its result is still to be delivered.
    Pending,
    /// No run is left, and something is still open or missing.
    NotRecovered,
}

/// The state machine for the recovery of one agent. It takes the outcome of each run and returns the next run (AR-4).
///
/// ```
/// use endmark_findings::{Assignment, Cut, Recovery, RecoveryPolicy};
///
/// let dimensions = ["a", "b", "c"].map(str::to_owned).to_vec();
/// let assignment = Assignment { agent_id: "x".into(), dimensions, max_turns: Some(25) };
/// let mut recovery = Recovery::new(assignment, RecoveryPolicy::default());
/// recovery.note_end(Cut::Severe, Vec::new());
/// let retry = recovery.next().unwrap();
/// assert_eq!((retry.dimensions.join(","), retry.max_turns, retry.max_findings), ("a,b".into(), Some(13), Some(5)));
/// recovery.note_end(Cut::Whole, Vec::new());
/// assert_eq!(recovery.next().unwrap().dimensions, ["c"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    assignment: Assignment,
    policy: RecoveryPolicy,
    run: Option<Run>,
    past: Vec<PastRun>,
    /// The dimensions left for the next round.
    waiting: Vec<String>,
    /// The dimensions that were retried. They are not retried again.
    retried: Vec<String>,
    gaps: Vec<String>,
}

impl Recovery {
    /// Creates the recovery of an agent before its first run.
    pub fn new(assignment: Assignment, policy: RecoveryPolicy) -> Self {
        let mut assignment = assignment;
        if assignment.dimensions.is_empty() {
            assignment.dimensions.push(UNNAMED_DIMENSIONS.to_owned());
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

    /// Returns the run to start now, or `None` if nothing is left to do.
    pub fn next(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Returns the task of the agent.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// Returns the finished runs, in order.
    pub fn past_runs(&self) -> &[PastRun] {
        &self.past
    }

    /// Returns the dimensions that wait for the next round.
    pub fn waiting_dimensions(&self) -> &[String] {
        &self.waiting
    }

    /// Returns the dimensions that are still open when no run is left.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Returns the state of the recovery.
    pub fn state(&self) -> RecoveryState {
        let was_incomplete = self.past.iter().any(PastRun::is_incomplete);
        match &self.run {
            Some(_) => RecoveryState::Pending,
            None if !self.gaps.is_empty() => RecoveryState::NotRecovered,
            None if was_incomplete => RecoveryState::Recovered,
            None => RecoveryState::NotNeeded,
        }
    }

    /// Returns the dimensions that were examined by runs after the first incomplete one.
    pub(super) fn rerun_dimensions(&self) -> impl Iterator<Item = &String> {
        let after = self.past.iter().skip_while(|past| !past.is_incomplete()).skip(1);
        after.filter(|past| past.has_result).flat_map(|past| &past.run.dimensions)
    }

    /// Records the result of the requested run, or an unrequested result.
    pub fn accept_result(&mut self, result: &AgentResult) {
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
        let is_full = has_max_findings(run, result);
        let declared_gaps = result.declared_gaps();
        let remaining =
            if is_full { run.dimensions.clone() } else { open_dimensions(run, result, &declared_gaps) };
        if !is_full && result.cut.is_whole() && result.lost_count() == 0 {
            let requested = run.dimensions.clone();
            let is_open = |dimension: &String| {
                declared_gaps.contains(dimension) || !is_covered(dimension, result, &requested)
            };
            self.waiting.retain(is_open);
            self.gaps.retain(is_open);
        }
        self.note_end(result.cut, remaining);
    }

    /// Records how the requested run ended and which dimensions it left open. After a mild cut, an empty list means
    /// all dimensions.
    pub fn note_end(&mut self, cut: Cut, remaining: Vec<String>) {
        self.finish_run(cut, remaining, true);
    }

    /// Records that the requested run delivered nothing, so that all its dimensions are open.
    pub fn note_missing_result(&mut self) {
        self.finish_run(Cut::Severe, Vec::new(), false);
    }

    fn finish_run(&mut self, cut: Cut, remaining: Vec<String>, is_heard: bool) {
        let Some(run) = self.run.take() else { return };
        let remaining = match cut {
            Cut::Whole => remaining,
            Cut::Mild if !remaining.is_empty() => remaining,
            Cut::Mild | Cut::Severe => run.dimensions.clone(),
        };
        self.past.push(PastRun { run: run.clone(), cut, has_result: is_heard, remaining: remaining.clone() });
        // No retry follows an emergency run, and an unrequested run is not retried.
        if cut == Cut::Severe && !matches!(run.kind, RunKind::Emergency | RunKind::Unasked) {
            let (retriable, retried): (Vec<String>, Vec<String>) =
                remaining.iter().cloned().partition(|dimension| !self.retried.contains(dimension));
            if !retriable.is_empty() {
                return self.retry(&run, &retriable, retried);
            }
        }
        self.add_waiting(remaining);
        self.start_next(&run);
    }

    /// Retries half of the dimensions with half of the turns, both rounded up. The other half waits for the next
    /// round.
    fn retry(&mut self, run: &Run, retriable: &[String], retried: Vec<String>) {
        let (half, other) = retriable.split_at(retriable.len().div_ceil(2));
        self.retried.extend(half.iter().cloned());
        self.add_waiting(other.iter().cloned().chain(retried));
        self.run = Some(Run {
            kind: RunKind::Retry,
            dimensions: half.to_vec(),
            max_turns: run.max_turns.map(|turns| turns.div_ceil(2).max(1)),
            max_findings: Some(MAX_FINDINGS_OF_RETRY),
            ..run.clone()
        });
    }

    fn add_waiting(&mut self, dimensions: impl IntoIterator<Item = String>) {
        add_missing(&mut self.waiting, dimensions);
    }

    /// Starts the next round or the emergency run for the waiting dimensions.
    fn start_next(&mut self, run: &Run) {
        let dimensions = std::mem::take(&mut self.waiting);
        if dimensions.is_empty() {
            return;
        }
        // The emergency run happens only once, even if unrequested results arrive after it.
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

/// Adds the dimensions that are not in the list yet.
fn add_missing(list: &mut Vec<String>, dimensions: impl IntoIterator<Item = String>) {
    let mut known: HashSet<String> = list.iter().map(|dimension| alphanumeric_key(dimension)).collect();
    list.extend(dimensions.into_iter().filter(|dimension| known.insert(alphanumeric_key(dimension))));
}

impl PastRun {
    /// Whether the run was cut or left something open.
    fn is_incomplete(&self) -> bool {
        !self.cut.is_whole() || !self.remaining.is_empty()
    }
}

/// Whether a complete result covers a dimension that it does not declare as a gap. A result that names the dimension
/// covers it, requested or not. A result that names no dimensions covers all requested ones. Unnamed dimensions are
/// always covered.
fn is_covered(dimension: &String, result: &AgentResult, requested: &[String]) -> bool {
    *dimension == UNNAMED_DIMENSIONS
        || is_named(dimension, &result.dimensions)
        || result.dimensions.is_empty() && requested.contains(dimension)
}

/// Whether a run delivered the maximum number of findings, so that there may be more.
fn has_max_findings(run: &Run, result: &AgentResult) -> bool {
    result.cut.is_whole() && run.max_findings.is_some_and(|most| result.findings.len() >= most as usize)
}

/// Returns the requested dimensions that a run left open. The list is also empty after a cut that does not state
/// them.
fn open_dimensions(run: &Run, result: &AgentResult, declared_gaps: &[String]) -> Vec<String> {
    // If a result names dimensions, the requested ones that it does not name are open. If it names none, it has
    // covered all.
    let must_name_requested = run.kind != RunKind::Unasked && !result.dimensions.is_empty();
    let is_open = |dimension: &&String| {
        must_name_requested && **dimension != UNNAMED_DIMENSIONS && !is_named(dimension, &result.dimensions)
    };
    let left_out = run.dimensions.iter().filter(is_open).cloned();
    // A later run may deliberately skip dimensions that it was not asked for.
    let is_first =
        matches!(run.kind, RunKind::First | RunKind::Unasked) || run.dimensions == [UNNAMED_DIMENSIONS];
    let declared = declared_gaps.iter().filter(|gap| is_first || is_named(gap, &run.dimensions));
    let left_out = left_out.chain(declared.cloned());
    match result.cut {
        Cut::Severe => Vec::new(),
        Cut::Whole => {
            // If a complete result has fewer findings than declared, the missing ones may concern any dimension.
            let mut remaining = if result.lost_count() > 0 { run.dimensions.clone() } else { Vec::new() };
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
    /// Returns the machine-readable name.
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
    /// Returns the state in words, for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::NotNeeded => "not needed",
            Self::Recovered => "recovered",
            Self::Pending => "pending",
            Self::NotRecovered => "not recovered",
        }
    }
}
