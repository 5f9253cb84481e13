//! Computes how many findings of an agent are missing over all its rounds. (AR-5, AR-6)
//!
//! Each round has a debt: the findings that it made but did not deliver. New findings of a later round reduce the debt.
//! The debt of a later round concerns the same findings, not additional ones. The loss is therefore the largest debt.

use std::ops::RangeInclusive;

use super::expected::Basis;
use super::finding::Finding;
use super::join::GroupMember;
use super::transcript::{AgentResult, FindingState, ReadFinding, alphanumeric_key, is_named};

/// The number of findings in a result that the agent had not delivered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NewFindings {
    /// Findings that are certainly different from the earlier ones.
    pub(super) certain: usize,
    /// Findings at the place of an earlier one, but with different content, so that they may be the same or not.
    pub(super) uncertain: usize,
}

impl NewFindings {
    fn total(self) -> usize {
        self.certain + self.uncertain
    }
}

/// A result of an agent and the number of new findings in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round<'a> {
    pub(super) result: &'a AgentResult,
    pub(super) new: NewFindings,
    /// The dimensions that it covers; empty if unknown.
    pub(super) dimensions: &'a [String],
}

impl Round<'_> {
    /// Whether the round may have examined a dimension.
    fn is_about(&self, dimension: &str) -> bool {
        self.dimensions.is_empty() || is_named(dimension, self.dimensions)
    }
}

/// The missing findings of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Loss {
    /// The minimum number of missing findings.
    pub(super) count: usize,
    /// Whether more may be missing. A later round may have reworded an earlier finding, or text that looks like a
    /// finding could not be read.
    pub(super) may_be_higher: bool,
    /// Whether the text states how many findings to expect.
    pub(super) has_stated_total: bool,
    /// The evidence for the number.
    pub(super) basis: Vec<Basis>,
    /// The number of findings that appeared without source or sink and that no later round completed.
    pub(super) needs_reaudit: usize,
}

impl Loss {
    /// Computes the loss from the results of one agent, in order.
    pub(super) fn from_rounds(rounds: &[Round<'_>]) -> Self {
        let mut debts: Vec<Debt<'_>> = Vec::new();
        // Three counts of partial findings: those that match no other finding, those of them that a later round may
        // have reworded, and those that certainly differ from all others.
        let (mut unmatched, mut maybe_open, mut certainly_distinct) = (0, 0_usize, 0);
        for (at, round) in rounds.iter().enumerate() {
            for debt in &mut debts {
                debt.subtract_recovered(round);
            }
            let (earlier, later) = (&rounds[..at], &rounds[at + 1..]);
            let of_earlier = || earlier.iter().flat_map(|round| round.result.kept_findings());
            let of_later = || later.iter().flat_map(|round| &round.result.findings);
            let partials = PartialFindings::new(round.result, || of_earlier().chain(of_later()));
            unmatched += partials.count_unmatched();
            maybe_open = maybe_open.saturating_sub(round.new.total()) + partials.count_unmatched();
            certainly_distinct += partials.certain;
            debts.push(Debt::new(*round, earlier));
        }
        let count = debts.iter().map(|debt| debt.min_missing).max().unwrap_or(0).max(certainly_distinct);
        let most = debts.iter().map(|debt| debt.max_missing).max().unwrap_or(0).max(maybe_open).max(count);
        let mut basis: Vec<Basis> =
            debts.iter().filter(|debt| debt.min_missing > 0).filter_map(|debt| debt.basis).collect();
        basis.sort_unstable();
        basis.dedup();
        let cut = || debts.iter().filter(|debt| !debt.round.result.cut.is_whole());
        Self {
            count,
            may_be_higher: most > count || rounds.last().is_some_and(|round| round.result.unread > 0),
            // A checkpoint or an id counts only the findings made so far. Even if all of them were kept, more may have
            // followed.
            has_stated_total: if count > 0 {
                cut().all(|debt| debt.basis.is_some())
            } else {
                cut().next().is_some() && cut().all(|debt| debt.basis == Some(Basis::Declared))
            },
            basis,
            needs_reaudit: unmatched.min(most),
        }
    }
}

/// The findings that one round made but did not deliver.
struct Debt<'a> {
    round: Round<'a>,
    /// The minimum number of findings.
    min_missing: usize,
    /// The maximum number of findings, as far as it is known.
    max_missing: usize,
    /// The number of undelivered findings about the completed dimensions.
    missing_in_completed_dimensions: usize,
    /// The dimensions that the round had completed at its last checkpoint.
    completed_dimensions: Vec<&'a str>,
    /// What the numbers are based on.
    basis: Option<Basis>,
}

impl<'a> Debt<'a> {
    fn new(round: Round<'a>, earlier: &[Round<'_>]) -> Self {
        let result = round.result;
        let partials =
            PartialFindings::new(result, || earlier.iter().flat_map(|round| round.result.kept_findings()));
        let (own, basis) = own_finding_count_range(round, &partials, earlier).unzip();
        let own = own.unwrap_or(0..=0);
        let kept = result.kept_findings().count();
        let missing_of = |expected: u32| (expected as usize).saturating_sub(kept + partials.repeated);
        let unread = result.discarded.max(result.unread) as usize;
        let checkpoint = result.checkpoint.as_ref().filter(|_| !result.cut.is_whole());
        let remaining = checkpoint.and_then(|checkpoint| checkpoint.remaining_dims.as_deref());
        let is_done =
            |dimension: &&String| remaining.is_some_and(|remaining| !is_named(dimension, remaining));
        let done: Vec<&str> = round.dimensions.iter().filter(is_done).map(String::as_str).collect();
        let made =
            checkpoint.and_then(|checkpoint| checkpoint.findings).filter(|_| !done.is_empty()).unwrap_or(0);
        Self {
            round,
            min_missing: missing_of(*own.start()).max(partials.certain).max(unread),
            max_missing: missing_of(*own.end()).max(partials.count_unmatched()).max(unread),
            missing_in_completed_dimensions: (made as usize).saturating_sub(kept),
            completed_dimensions: done,
            basis,
        }
    }

    /// Subtracts the new findings of a later round. Only a round about the completed dimensions reduces their part of
    /// the debt. A complete round about all dimensions with at least as many findings clears the debt.
    fn subtract_recovered(&mut self, later: &Round<'_>) {
        if self.completed_dimensions.iter().any(|dimension| later.is_about(dimension)) {
            self.missing_in_completed_dimensions =
                self.missing_in_completed_dimensions.saturating_sub(later.new.total());
        }
        self.min_missing =
            self.min_missing.saturating_sub(later.new.total()).max(self.missing_in_completed_dimensions);
        self.max_missing =
            self.max_missing.saturating_sub(later.new.certain).max(self.missing_in_completed_dimensions);
        let (own, result) = (self.round.result, later.result);
        let is_covered = || self.round.dimensions.iter().all(|dimension| later.is_about(dimension));
        let known_count = result.kept_findings().count().saturating_sub(later.new.uncertain);
        let has_unmatched_partials =
            || PartialFindings::new(own, || result.findings.iter()).count_unmatched() > 0;
        if result.cut.is_whole()
            && result.lost_count() == 0
            && own.seen_count() <= known_count
            && is_covered()
            && !has_unmatched_partials()
        {
            (self.min_missing, self.max_missing, self.missing_in_completed_dimensions) = (0, 0, 0);
        }
    }
}

/// Returns the minimum and maximum number of findings of this round alone. The stated number may also count findings of
/// earlier rounds: certainly if the ids continue theirs, and possibly if the round contains nothing new.
fn own_finding_count_range(
    round: Round<'_>,
    partials: &PartialFindings,
    earlier: &[Round<'_>],
) -> Option<(RangeInclusive<u32>, Basis)> {
    let Round { result, new, .. } = round;
    let expected = result.expected_count()?;
    let earlier_new: usize = earlier.iter().map(|round| round.new.total()).sum();
    let repeated = result.kept_findings().count().saturating_sub(new.total()) + partials.repeated;
    let others = u32::try_from(earlier_new.saturating_sub(repeated)).unwrap_or(u32::MAX);
    let skipped_ids = result.numbers.lowest_position().map_or(0, |lowest| lowest.saturating_sub(1));
    let declared = earlier.iter().filter_map(|round| round.result.declared_findings).max();
    // The highest number is the total, unless another round declared more.
    let is_total = expected.basis == Basis::HighestId || declared <= Some(expected.findings);
    let continues = skipped_ids > 0 && is_total && result.numbers.highest_count() == Some(expected.findings);
    let (most, least) = if continues {
        (others.min(skipped_ids), others.min(skipped_ids))
    } else if new.total() + partials.certain == 0 {
        (others, 0)
    } else {
        (0, 0)
    };
    let own = expected.findings.saturating_sub(most)..=expected.findings.saturating_sub(least);
    Some((own, expected.basis))
}

/// The findings of a result without source or sink, grouped by how they match the findings of other rounds.
struct PartialFindings {
    /// The number of findings that are the same as another one.
    repeated: usize,
    /// The number of findings that differ from all others.
    certain: usize,
    /// The number of findings that may be the same as another one in other words.
    uncertain: usize,
}

impl PartialFindings {
    /// Returns the number of findings that no other finding certainly matches.
    fn count_unmatched(&self) -> usize {
        self.certain + self.uncertain
    }

    fn new<'a, I: Iterator<Item = &'a ReadFinding>>(result: &AgentResult, others: impl Fn() -> I) -> Self {
        let mut partials = Self { repeated: 0, certain: 0, uncertain: 0 };
        for partial in result.findings.iter().filter(|read| read.state == FindingState::NeedsReaudit) {
            let is_cut = !result.cut.is_whole()
                && result.findings.last().is_some_and(|last| std::ptr::eq(last, partial));
            let likeness = |other: &ReadFinding| Likeness::compare(partial, other, is_cut);
            if others().any(|other| likeness(other) == Likeness::Same) {
                partials.repeated += 1;
            } else if has_only_id(partial) {
                // It is already counted by its number.
            } else if others().all(|other| likeness(other) == Likeness::Other) {
                partials.certain += 1;
            } else {
                partials.uncertain += 1;
            }
        }
        partials
    }
}

/// Whether the finding consists only of its id.
fn has_only_id(read: &ReadFinding) -> bool {
    read.finding.title.is_empty() && read.finding.is_bare()
}

/// Whether a partial finding is the same as one in another round.
#[derive(PartialEq, Eq)]
enum Likeness {
    Same,
    /// It may be the same finding in other words.
    Unknown,
    Other,
}

impl Likeness {
    /// Compares a partial finding with another one. They are the same if they share the title and are not in
    /// different files, or if they share place and weakness. In both cases, source and sink must not contradict. They
    /// are different if title and weakness differ and they are not known to share a file.
    fn compare(partial: &ReadFinding, other: &ReadFinding, is_cut: bool) -> Self {
        let (title_start, title) =
            (alphanumeric_key(&partial.finding.title), alphanumeric_key(&other.finding.title));
        // A later round may renumber a cut finding. If the finding is only an id, the id identifies it.
        let continues = has_only_id(partial)
            && other.state == FindingState::Truncated
            && partial.finding.id == other.finding.id;
        let is_begun =
            !title_start.is_empty() && (title_start == title || is_cut && title.starts_with(&title_start));
        let (partial, other) = (&partial.finding, &other.finding);
        let shares_cwe = partial.cwe.iter().any(|cwe| other.cwe.contains(cwe));
        let shares_file = share_file(partial, other);
        let both_locations = partial.location.as_ref().zip(other.location.as_ref());
        let shares_place = both_locations.is_some_and(|(half, other)| half.is_same_place(other));
        let shares_cwe_and_place = (partial.cwe.is_empty() || shares_cwe) && shares_place;
        let is_same = continues || is_begun && shares_file != Some(false) || shares_cwe_and_place;
        if is_same && !contradicts(partial, other) {
            return Self::Same;
        }
        let may_share_title = title.starts_with(&title_start) || title_start.starts_with(&title);
        let both_have_cwe = !partial.cwe.is_empty() && !other.cwe.is_empty();
        if !may_share_title && both_have_cwe && !shares_cwe && shares_file != Some(true) {
            Self::Other
        } else {
            Self::Unknown
        }
    }
}

/// Whether source or sink contradict: the text of the other finding does not start with that of the partial one.
fn contradicts(partial: &Finding, other: &Finding) -> bool {
    let of = |text: &Option<String>| text.as_deref().map(alphanumeric_key);
    let fields = [(of(&partial.source), of(&other.source)), (of(&partial.sink), of(&other.sink))];
    fields
        .into_iter()
        .any(|(half, other)| half.zip(other).is_some_and(|(half, other)| !other.starts_with(&half)))
}

/// Whether both findings are in the same file, or `None` if one names no file. Line numbers and leading folders may
/// differ.
fn share_file(one: &Finding, other: &Finding) -> Option<bool> {
    let mut pairs =
        one.file_lines().iter().flat_map(|one| other.file_lines().iter().map(move |other| (one, other)));
    let is_known = !one.file_lines().is_empty() && !other.file_lines().is_empty();
    let is_same =
        pairs.any(|(one, other)| one.file.ends_with(&other.file) || other.file.ends_with(&one.file));
    is_known.then_some(is_same)
}

/// Counts the new findings of each result in one group. The members of a group share a weakness and a place, and are
/// in the order of their results. A finding that the agent delivered in an earlier round is not new.
pub(super) fn count_new_findings(group: &[&GroupMember], new: &mut [NewFindings]) {
    let mut known: Vec<KnownFinding<'_>> = Vec::new();
    for round in group.chunk_by(|one, other| one.result == other.result) {
        let Some(new) = round.first().and_then(|first| new.get_mut(first.result)) else { continue };
        let round_findings: Vec<KnownFinding<'_>> =
            round.iter().map(|member| KnownFinding::new(member)).collect();
        for declared_findings in &round_findings {
            let mut own = known.iter().filter(|known| known.agent == declared_findings.agent).peekable();
            if own.peek().is_none() {
                new.certain += 1;
            } else if !own.any(|known| known.is_same(declared_findings)) {
                new.uncertain += 1;
            }
        }
        known.extend(round_findings);
    }
}

/// A finding of an agent, compared without case and punctuation.
struct KnownFinding<'a> {
    agent: Option<&'a str>,
    title: String,
    source: String,
    sink: String,
}

impl<'a> KnownFinding<'a> {
    fn new(member: &'a GroupMember) -> Self {
        let finding = &member.finding;
        let of = |text: &Option<String>| alphanumeric_key(text.as_deref().unwrap_or_default());
        Self {
            agent: member.agent.as_deref(),
            title: alphanumeric_key(&finding.title),
            source: of(&finding.source),
            sink: of(&finding.sink),
        }
    }

    /// Whether both are the same finding: same title, or same source and sink.
    fn is_same(&self, other: &Self) -> bool {
        let is_title = !self.title.is_empty() && self.title == other.title;
        let is_flow = self.source == other.source && self.sink == other.sink;
        is_title || is_flow
    }
}
