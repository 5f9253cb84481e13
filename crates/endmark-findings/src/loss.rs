//! What is missing of an agent's findings, reckoned over all its rounds. (AR-5, AR-6)
//!
//! Each round owes what it had and did not hand over. A later round pays with what it brings that is new, and what it owes
//! itself is the same findings again, not more of them: the largest debt is what is missing.

use std::ops::RangeInclusive;

use super::expected::Basis;
use super::finding::Finding;
use super::join::Member;
use super::transcript::{AgentResult, FindingState, ReadFinding, is_named, letters};

/// How many findings of a result its agent had not handed over before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct New {
    /// These are others, without doubt.
    pub(super) certain: usize,
    /// These are at the place of an earlier one, but say something else: they may be it, or not.
    pub(super) doubtful: usize,
}

impl New {
    fn all(self) -> usize {
        self.certain + self.doubtful
    }
}

/// A result of an agent, and what was new in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round<'a> {
    pub(super) result: &'a AgentResult,
    pub(super) new: New,
    /// What it is about; empty if nothing says.
    pub(super) dimensions: &'a [String],
}

impl Round<'_> {
    /// Whether it may have looked into a dimension.
    fn is_about(&self, dimension: &str) -> bool {
        self.dimensions.is_empty() || is_named(dimension, self.dimensions)
    }
}

/// What is missing of an agent's findings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Loss {
    /// At least so many.
    pub(super) count: usize,
    /// Whether there may be more, since a later round may have said an earlier finding in other words, or since
    /// something that looks like a finding could not be read.
    pub(super) is_doubtful: bool,
    /// Whether anything says how many there were to come.
    pub(super) is_known: bool,
    /// How the number is known.
    pub(super) basis: Vec<Basis>,
    /// How many of them have been seen without source or sink, and in no later round with them.
    pub(super) needs_reaudit: usize,
}

impl Loss {
    /// Reckons the results of one agent, in their order.
    pub(super) fn of(rounds: &[Round<'_>]) -> Self {
        let mut debts: Vec<Debt<'_>> = Vec::new();
        // Halves that no other round speaks of; those that a later one may have said in other words; those that none has.
        let (mut unspoken, mut open, mut apart) = (0, 0_usize, 0);
        for (at, round) in rounds.iter().enumerate() {
            for debt in &mut debts {
                debt.pay(round);
            }
            let (earlier, later) = (&rounds[..at], &rounds[at + 1..]);
            let of_earlier = || earlier.iter().flat_map(|round| round.result.kept());
            let of_later = || later.iter().flat_map(|round| &round.result.findings);
            let halves = Halves::of(round.result, || of_earlier().chain(of_later()));
            unspoken += halves.lost();
            open = open.saturating_sub(round.new.all()) + halves.lost();
            apart += halves.certain;
            debts.push(Debt::of(*round, earlier));
        }
        let count = debts.iter().map(|debt| debt.least).max().unwrap_or(0).max(apart);
        let most = debts.iter().map(|debt| debt.most).max().unwrap_or(0).max(open).max(count);
        let mut basis: Vec<Basis> =
            debts.iter().filter(|debt| debt.least > 0).filter_map(|debt| debt.basis).collect();
        basis.sort_unstable();
        basis.dedup();
        let cut = || debts.iter().filter(|debt| !debt.round.result.cut.is_whole());
        Self {
            count,
            is_doubtful: most > count || rounds.last().is_some_and(|round| round.result.unread > 0),
            // A checkpoint and an id tell of those that were there; where all of them are kept, more may have been to come.
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

/// What one round has not handed over of what it had.
struct Debt<'a> {
    round: Round<'a>,
    /// At least so many findings.
    least: usize,
    /// At most so many, as far as anybody knows.
    most: usize,
    /// How many of them were made before the dimensions that remained were begun, and the dimensions of which they are.
    made: usize,
    done: Vec<&'a str>,
    /// How that is known.
    basis: Option<Basis>,
}

impl<'a> Debt<'a> {
    fn of(round: Round<'a>, earlier: &[Round<'_>]) -> Self {
        let result = round.result;
        let halves = Halves::of(result, || earlier.iter().flat_map(|round| round.result.kept()));
        let (own, basis) = own(round, &halves, earlier).unzip();
        let own = own.unwrap_or(0..=0);
        let kept = result.kept().count();
        let short = |expected: u32| (expected as usize).saturating_sub(kept + halves.again);
        let unread = result.discarded.max(result.unread) as usize;
        let checkpoint = result.checkpoint.as_ref().filter(|_| !result.cut.is_whole());
        let remaining = checkpoint.and_then(|said| said.remaining_dims.as_deref());
        let is_done =
            |dimension: &&String| remaining.is_some_and(|remaining| !is_named(dimension, remaining));
        let done: Vec<&str> = round.dimensions.iter().filter(is_done).map(String::as_str).collect();
        let made = checkpoint.and_then(|said| said.findings).filter(|_| !done.is_empty()).unwrap_or(0);
        Self {
            round,
            least: short(*own.start()).max(halves.certain).max(unread),
            most: short(*own.end()).max(halves.lost()).max(unread),
            made: (made as usize).saturating_sub(kept),
            done,
            basis,
        }
    }

    /// Takes off what a later round brings, which is none of what was made before its dimensions were begun. One that is whole
    /// and says, about all that was looked into, as many findings as there were has been made anew: nothing is owed any more.
    fn pay(&mut self, later: &Round<'_>) {
        if self.done.iter().any(|dimension| later.is_about(dimension)) {
            self.made = self.made.saturating_sub(later.new.all());
        }
        self.least = self.least.saturating_sub(later.new.all()).max(self.made);
        self.most = self.most.saturating_sub(later.new.certain).max(self.made);
        let (own, result) = (self.round.result, later.result);
        let is_covered = || self.round.dimensions.iter().all(|dimension| later.is_about(dimension));
        let said = result.kept().count().saturating_sub(later.new.doubtful);
        let is_begun = || Halves::of(own, || result.findings.iter()).lost() > 0;
        if result.cut.is_whole() && result.lost() == 0 && own.seen() <= said && is_covered() && !is_begun() {
            (self.least, self.most, self.made) = (0, 0, 0);
        }
    }
}

/// How many findings a round itself had, at least and at most. What it says of that may count those of earlier rounds: where its
/// numbers go on with theirs it does, and where it brings nothing but what they have it may.
fn own(round: Round<'_>, halves: &Halves, earlier: &[Round<'_>]) -> Option<(RangeInclusive<u32>, Basis)> {
    let Round { result, new, .. } = round;
    let expected = result.expected()?;
    let brought: usize = earlier.iter().map(|round| round.new.all()).sum();
    let again = result.kept().count().saturating_sub(new.all()) + halves.again;
    let others = u32::try_from(brought.saturating_sub(again)).unwrap_or(u32::MAX);
    let passed = result.numbers.lowest().map_or(0, |lowest| lowest.saturating_sub(1));
    let declared = earlier.iter().filter_map(|round| round.result.declared_findings).max();
    // Unless another round has declared more, as many as its highest number are all there are.
    let is_total = expected.basis == Basis::HighestId || declared <= Some(expected.findings);
    let goes_on = passed > 0 && is_total && result.numbers.highest() == Some(expected.findings);
    let (most, least) = if goes_on {
        (others.min(passed), others.min(passed))
    } else if new.all() + halves.certain == 0 {
        (others, 0)
    } else {
        (0, 0)
    };
    let own = expected.findings.saturating_sub(most)..=expected.findings.saturating_sub(least);
    Some((own, expected.basis))
}

/// The findings of a result that lack source or sink, by what others say of them.
struct Halves {
    /// One of the others is the same.
    again: usize,
    /// Each of the others is another.
    certain: usize,
    /// One of the others may be the same in other words.
    doubtful: usize,
}

impl Halves {
    /// How many of them no other is.
    fn lost(&self) -> usize {
        self.certain + self.doubtful
    }

    fn of<'a, I: Iterator<Item = &'a ReadFinding>>(result: &AgentResult, others: impl Fn() -> I) -> Self {
        let mut halves = Self { again: 0, certain: 0, doubtful: 0 };
        for half in result.findings.iter().filter(|read| read.state == FindingState::NeedsReaudit) {
            let is_cut =
                !result.cut.is_whole() && result.findings.last().is_some_and(|last| std::ptr::eq(last, half));
            let likeness = |other: &ReadFinding| Likeness::of(half, other, is_cut);
            if others().any(|other| likeness(other) == Likeness::Same) {
                halves.again += 1;
            } else if is_only_numbered(half) {
                // It is counted by its number.
            } else if others().all(|other| likeness(other) == Likeness::Other) {
                halves.certain += 1;
            } else {
                halves.doubtful += 1;
            }
        }
        halves
    }
}

/// Whether nothing but the number of a finding is there.
fn is_only_numbered(read: &ReadFinding) -> bool {
    read.finding.title.is_empty() && read.finding.is_bare()
}

/// Whether what has begun is what another round says.
#[derive(PartialEq, Eq)]
enum Likeness {
    Same,
    /// They may be the same in other words.
    Unknown,
    Other,
}

impl Likeness {
    /// The same have one title, unless they are in different files; or a place and weakness in common. Others have another
    /// title, another weakness and no file in common.
    fn of(half: &ReadFinding, other: &ReadFinding, is_cut: bool) -> Self {
        let (begun, title) = (letters(&half.finding.title), letters(&other.finding.title));
        // What was cut may be numbered anew; where there is nothing but a number, it goes on with that.
        let goes_on = is_only_numbered(half)
            && other.state == FindingState::Truncated
            && half.finding.id == other.finding.id;
        let is_begun = !begun.is_empty() && (begun == title || is_cut && title.starts_with(&begun));
        let (half, other) = (&half.finding, &other.finding);
        let is_weakness = half.cwe.iter().any(|cwe| other.cwe.contains(cwe));
        let is_file = share_file(half, other);
        let is_place = half.location.as_ref().zip(other.location.as_ref());
        let is_place = is_place.is_some_and(|(half, other)| half.is_where(other));
        let is_there = (half.cwe.is_empty() || is_weakness) && is_place;
        let is_same = goes_on || is_begun && is_file != Some(false) || is_there;
        if is_same && !contradicts(half, other) {
            return Self::Same;
        }
        let is_titled_so = title.starts_with(&begun) || begun.starts_with(&title);
        let are_known = !half.cwe.is_empty() && !other.cwe.is_empty();
        if !is_titled_so && are_known && !is_weakness && is_file != Some(true) {
            Self::Other
        } else {
            Self::Unknown
        }
    }
}

/// Whether another finding says of source or sink what does not go on with what has begun: it may be another one.
fn contradicts(half: &Finding, other: &Finding) -> bool {
    let of = |text: &Option<String>| text.as_deref().map(letters);
    let fields = [(of(&half.source), of(&other.source)), (of(&half.sink), of(&other.sink))];
    fields
        .into_iter()
        .any(|(half, other)| half.zip(other).is_some_and(|(half, other)| !other.starts_with(&half)))
}

/// Whether both are in one file, where both say where they are: lines may have been counted anew, and folders left out.
fn share_file(one: &Finding, other: &Finding) -> Option<bool> {
    let mut pairs = one.places().iter().flat_map(|one| other.places().iter().map(move |other| (one, other)));
    let is_known = !one.places().is_empty() && !other.places().is_empty();
    let is_same =
        pairs.any(|(one, other)| one.file.ends_with(&other.file) || other.file.ends_with(&one.file));
    is_known.then_some(is_same)
}

/// What is new in each result among the members of one group: findings of one weakness at one place, in the order of
/// their results. What an agent has handed over in an earlier round is not.
pub(super) fn count_new(group: &[&Member], new: &mut [New]) {
    let mut known: Vec<Known<'_>> = Vec::new();
    for round in group.chunk_by(|one, other| one.result == other.result) {
        let Some(new) = round.first().and_then(|first| new.get_mut(first.result)) else { continue };
        let said: Vec<Known<'_>> = round.iter().map(|member| Known::of(member)).collect();
        for said in &said {
            let mut own = known.iter().filter(|known| known.agent == said.agent).peekable();
            if own.peek().is_none() {
                new.certain += 1;
            } else if !own.any(|known| known.is_same(said)) {
                new.doubtful += 1;
            }
        }
        known.extend(said);
    }
}

/// What an agent says of a finding, case and signs aside.
struct Known<'a> {
    agent: Option<&'a str>,
    title: String,
    source: String,
    sink: String,
}

impl<'a> Known<'a> {
    fn of(member: &'a Member) -> Self {
        let finding = &member.finding;
        let of = |text: &Option<String>| letters(text.as_deref().unwrap_or_default());
        Self {
            agent: member.agent.as_deref(),
            title: letters(&finding.title),
            source: of(&finding.source),
            sink: of(&finding.sink),
        }
    }

    /// Whether both are one finding: in other words perhaps, but under the same title, or from the same source to the same
    /// sink.
    fn is_same(&self, other: &Self) -> bool {
        let is_title = !self.title.is_empty() && self.title == other.title;
        let is_flow = self.source == other.source && self.sink == other.sink;
        is_title || is_flow
    }
}
