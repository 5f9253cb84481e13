//! Computes how many findings of an agent are missing over all its rounds. (AR-5, AR-6)
//!
//! Each round has a debt: the findings that it had and did not deliver. The new findings of a later round reduce that
//! debt. A later round's own debt concerns the same findings, not additional ones. The largest debt is therefore the
//! loss.

use std::ops::RangeInclusive;

use super::expected::Basis;
use super::finding::Finding;
use super::join::Member;
use super::transcript::{AgentResult, FindingState, ReadFinding, is_named, letters};

/// The number of findings in a result that its agent had not delivered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NewFindings {
    /// Findings that are certainly different from the earlier ones.
    pub(super) certain: usize,
    /// Findings at the place of an earlier one but with different content. They may or may not be the same.
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
    pub(super) is_doubtful: bool,
    /// Whether the text states how many findings to expect.
    pub(super) is_known: bool,
    /// The evidence for the number.
    pub(super) basis: Vec<Basis>,
    /// The number of findings that appeared without source or sink and that no later round completed.
    pub(super) needs_reaudit: usize,
}

impl Loss {
    /// Computes the loss from the results of one agent, in order.
    pub(super) fn from_rounds(rounds: &[Round<'_>]) -> Self {
        let mut debts: Vec<Debt<'_>> = Vec::new();
        // Partial findings: those that no other round mentions, those that a later one may have reworded, and those
        // that certainly differ from all others.
        let (mut unspoken, mut open, mut apart) = (0, 0_usize, 0);
        for (at, round) in rounds.iter().enumerate() {
            for debt in &mut debts {
                debt.subtract_recovered(round);
            }
            let (earlier, later) = (&rounds[..at], &rounds[at + 1..]);
            let of_earlier = || earlier.iter().flat_map(|round| round.result.kept_findings());
            let of_later = || later.iter().flat_map(|round| &round.result.findings);
            let halves = PartialFindings::new(round.result, || of_earlier().chain(of_later()));
            unspoken += halves.count_unmatched();
            open = open.saturating_sub(round.new.total()) + halves.count_unmatched();
            apart += halves.certain;
            debts.push(Debt::new(*round, earlier));
        }
        let count = debts.iter().map(|debt| debt.min_missing).max().unwrap_or(0).max(apart);
        let most = debts.iter().map(|debt| debt.max_missing).max().unwrap_or(0).max(open).max(count);
        let mut basis: Vec<Basis> =
            debts.iter().filter(|debt| debt.min_missing > 0).filter_map(|debt| debt.basis).collect();
        basis.sort_unstable();
        basis.dedup();
        let cut = || debts.iter().filter(|debt| !debt.round.result.cut.is_whole());
        Self {
            count,
            is_doubtful: most > count || rounds.last().is_some_and(|round| round.result.unread > 0),
            // A checkpoint or an id only counts findings that exist already. If all of them were kept, more may have
            // followed.
            is_known: if count > 0 {
                cut().all(|debt| debt.basis.is_some())
            } else {
                cut().next().is_some() && cut().all(|debt| debt.basis == Some(Basis::Declared))
            },
            basis,
            needs_reaudit: unspoken.min(most),
        }
    }
}

/// The findings that one round had but did not deliver.
struct Debt<'a> {
    round: Round<'a>,
    /// The minimum number of findings.
    min_missing: usize,
    /// The maximum number of findings, as far as known.
    max_missing: usize,
    /// The number of findings made before the remaining dimensions were started, and the dimensions that these cover.
    found: usize,
    completed: Vec<&'a str>,
    /// The evidence for the numbers.
    basis: Option<Basis>,
}

impl<'a> Debt<'a> {
    fn new(round: Round<'a>, earlier: &[Round<'_>]) -> Self {
        let result = round.result;
        let halves =
            PartialFindings::new(result, || earlier.iter().flat_map(|round| round.result.kept_findings()));
        let (own, basis) = own_findings(round, &halves, earlier).unzip();
        let own = own.unwrap_or(0..=0);
        let kept = result.kept_findings().count();
        let short = |expected: u32| (expected as usize).saturating_sub(kept + halves.again);
        let unread = result.discarded.max(result.unread) as usize;
        let checkpoint = result.checkpoint.as_ref().filter(|_| !result.cut.is_whole());
        let remaining = checkpoint.and_then(|declared_findings| declared_findings.remaining_dims.as_deref());
        let is_done =
            |dimension: &&String| remaining.is_some_and(|remaining| !is_named(dimension, remaining));
        let done: Vec<&str> = round.dimensions.iter().filter(is_done).map(String::as_str).collect();
        let made = checkpoint
            .and_then(|declared_findings| declared_findings.findings)
            .filter(|_| !done.is_empty())
            .unwrap_or(0);
        Self {
            round,
            min_missing: short(*own.start()).max(halves.certain).max(unread),
            max_missing: short(*own.end()).max(halves.count_unmatched()).max(unread),
            found: (made as usize).saturating_sub(kept),
            completed: done,
            basis,
        }
    }

    /// Subtracts the new findings of a later round. Only a round about the dimensions in `done` reduces `made`. A
    /// complete round about all dimensions that repeats at least as many findings clears the debt.
    fn subtract_recovered(&mut self, later: &Round<'_>) {
        if self.completed.iter().any(|dimension| later.is_about(dimension)) {
            self.found = self.found.saturating_sub(later.new.total());
        }
        self.min_missing = self.min_missing.saturating_sub(later.new.total()).max(self.found);
        self.max_missing = self.max_missing.saturating_sub(later.new.certain).max(self.found);
        let (own, result) = (self.round.result, later.result);
        let is_covered = || self.round.dimensions.iter().all(|dimension| later.is_about(dimension));
        let declared_findings = result.kept_findings().count().saturating_sub(later.new.uncertain);
        let is_begun = || PartialFindings::new(own, || result.findings.iter()).count_unmatched() > 0;
        if result.cut.is_whole()
            && result.lost_count() == 0
            && own.seen_count() <= declared_findings
            && is_covered()
            && !is_begun()
        {
            (self.min_missing, self.max_missing, self.found) = (0, 0, 0);
        }
    }
}

/// Returns the minimum and maximum number of findings that belong to this round alone. The stated number may include
/// those of earlier rounds. It does if the ids continue those of earlier rounds. It may if the round brings nothing
/// new.
fn own_findings(
    round: Round<'_>,
    halves: &PartialFindings,
    earlier: &[Round<'_>],
) -> Option<(RangeInclusive<u32>, Basis)> {
    let Round { result, new, .. } = round;
    let expected = result.expected_count()?;
    let brought: usize = earlier.iter().map(|round| round.new.total()).sum();
    let again = result.kept_findings().count().saturating_sub(new.total()) + halves.again;
    let others = u32::try_from(brought.saturating_sub(again)).unwrap_or(u32::MAX);
    let passed = result.numbers.lowest().map_or(0, |lowest| lowest.saturating_sub(1));
    let declared = earlier.iter().filter_map(|round| round.result.declared_findings).max();
    // The highest number is the total, unless another round declared more.
    let is_total = expected.basis == Basis::HighestId || declared <= Some(expected.findings);
    let continues = passed > 0 && is_total && result.numbers.highest() == Some(expected.findings);
    let (most, least) = if continues {
        (others.min(passed), others.min(passed))
    } else if new.total() + halves.certain == 0 {
        (others, 0)
    } else {
        (0, 0)
    };
    let own = expected.findings.saturating_sub(most)..=expected.findings.saturating_sub(least);
    Some((own, expected.basis))
}

/// The findings of a result without source or sink, grouped by how they match the findings of other rounds.
struct PartialFindings {
    /// The finding is the same as another one.
    again: usize,
    /// The finding differs from all others.
    certain: usize,
    /// Another finding may be the same in other words.
    uncertain: usize,
}

impl PartialFindings {
    /// Returns the number of findings that no other finding certainly matches.
    fn count_unmatched(&self) -> usize {
        self.certain + self.uncertain
    }

    fn new<'a, I: Iterator<Item = &'a ReadFinding>>(result: &AgentResult, others: impl Fn() -> I) -> Self {
        let mut halves = Self { again: 0, certain: 0, uncertain: 0 };
        for half in result.findings.iter().filter(|read| read.state == FindingState::NeedsReaudit) {
            let is_cut =
                !result.cut.is_whole() && result.findings.last().is_some_and(|last| std::ptr::eq(last, half));
            let likeness = |other: &ReadFinding| Likeness::compare(half, other, is_cut);
            if others().any(|other| likeness(other) == Likeness::Same) {
                halves.again += 1;
            } else if is_only_numbered(half) {
                // Its number already counts it.
            } else if others().all(|other| likeness(other) == Likeness::Other) {
                halves.certain += 1;
            } else {
                halves.uncertain += 1;
            }
        }
        halves
    }
}

/// Whether the finding has nothing but its number.
fn is_only_numbered(read: &ReadFinding) -> bool {
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
    /// different files. They are also the same if they share place and weakness. In both cases source and sink must
    /// not contradict. They differ if title and weakness differ and they are not known to share a file.
    fn compare(half: &ReadFinding, other: &ReadFinding, is_cut: bool) -> Self {
        let (title_start, title) = (letters(&half.finding.title), letters(&other.finding.title));
        // A cut finding may be renumbered later. If it has nothing but a number, the number identifies it.
        let continues = is_only_numbered(half)
            && other.state == FindingState::Truncated
            && half.finding.id == other.finding.id;
        let is_begun =
            !title_start.is_empty() && (title_start == title || is_cut && title.starts_with(&title_start));
        let (half, other) = (&half.finding, &other.finding);
        let is_weakness = half.cwe.iter().any(|cwe| other.cwe.contains(cwe));
        let is_file = share_file(half, other);
        let is_place = half.location.as_ref().zip(other.location.as_ref());
        let is_place = is_place.is_some_and(|(half, other)| half.is_same_place(other));
        let is_there = (half.cwe.is_empty() || is_weakness) && is_place;
        let is_same = continues || is_begun && is_file != Some(false) || is_there;
        if is_same && !contradicts(half, other) {
            return Self::Same;
        }
        let is_titled_so = title.starts_with(&title_start) || title_start.starts_with(&title);
        let are_known = !half.cwe.is_empty() && !other.cwe.is_empty();
        if !is_titled_so && are_known && !is_weakness && is_file != Some(true) {
            Self::Other
        } else {
            Self::Unknown
        }
    }
}

/// Whether the source or sink of the other finding does not start with that of the partial one. It may then be a
/// different finding.
fn contradicts(half: &Finding, other: &Finding) -> bool {
    let of = |text: &Option<String>| text.as_deref().map(letters);
    let fields = [(of(&half.source), of(&other.source)), (of(&half.sink), of(&other.sink))];
    fields
        .into_iter()
        .any(|(half, other)| half.zip(other).is_some_and(|(half, other)| !other.starts_with(&half)))
}

/// Whether both are in one file, or `None` if one has no place. Line numbers may have changed and folders may be
/// missing.
fn share_file(one: &Finding, other: &Finding) -> Option<bool> {
    let mut pairs = one.places().iter().flat_map(|one| other.places().iter().map(move |other| (one, other)));
    let is_known = !one.places().is_empty() && !other.places().is_empty();
    let is_same =
        pairs.any(|(one, other)| one.file.ends_with(&other.file) || other.file.ends_with(&one.file));
    is_known.then_some(is_same)
}

/// Counts the new findings of each result among the members of one group: findings of one weakness at one place, in
/// the order of their results. A finding that the agent delivered in an earlier round is not new.
pub(super) fn count_new(group: &[&Member], new: &mut [NewFindings]) {
    let mut known: Vec<KnownFinding<'_>> = Vec::new();
    for round in group.chunk_by(|one, other| one.result == other.result) {
        let Some(new) = round.first().and_then(|first| new.get_mut(first.result)) else { continue };
        let declared_findings: Vec<KnownFinding<'_>> =
            round.iter().map(|member| KnownFinding::new(member)).collect();
        for declared_findings in &declared_findings {
            let mut own = known.iter().filter(|known| known.agent == declared_findings.agent).peekable();
            if own.peek().is_none() {
                new.certain += 1;
            } else if !own.any(|known| known.is_same(declared_findings)) {
                new.uncertain += 1;
            }
        }
        known.extend(declared_findings);
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
    fn new(member: &'a Member) -> Self {
        let finding = &member.finding;
        let of = |text: &Option<String>| letters(text.as_deref().unwrap_or_default());
        Self {
            agent: member.agent.as_deref(),
            title: letters(&finding.title),
            source: of(&finding.source),
            sink: of(&finding.sink),
        }
    }

    /// Whether both are one finding: same title, or same source and sink.
    fn is_same(&self, other: &Self) -> bool {
        let is_title = !self.title.is_empty() && self.title == other.title;
        let is_flow = self.source == other.source && self.sink == other.sink;
        is_title || is_flow
    }
}
