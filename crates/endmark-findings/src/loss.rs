//! What is missing of an agent's findings, reckoned over all its rounds. (AR-5, AR-6)
//!
//! A later round is to bring what an earlier one lost: what it brings is taken off that, and what it loses itself is the
//! same findings again, not more of them.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::expected::Basis;
use super::finding::Finding;
use super::join::Member;
use super::transcript::{AgentResult, Cut, FindingState, ReadFinding, is_named, letters};
use begun::{begun_and_never_told, is_again, told_apart};

mod begun;

/// How many findings of a result its agent had not handed over before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct New {
    /// These are others, without doubt.
    pub(super) certain: usize,
    /// These are at the place of an earlier one, but say something else: they may be it, or not.
    pub(super) doubtful: usize,
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
    /// Reckons the results of one agent, in their order, each with what was new in it.
    pub(super) fn of(results: &[(&AgentResult, New)]) -> Self {
        let mut loss = Self::default();
        let mut most = 0_usize;
        let mut before = Before::default();
        let mut ways: Vec<Option<Basis>> = Vec::new();
        let mut pinned: Option<Pinned<'_>> = None;
        for (at, (result, new)) in results.iter().enumerate() {
            let (own, basis) = before.own_expected(result, *new).unzip();
            let again = before.halves_again(result);
            let there = result.kept().count() + again;
            let short = |expected: u32| (expected as usize).saturating_sub(there);
            let halves = result.count(FindingState::NeedsReaudit) - again;
            let unread = result.discarded.max(result.unread) as usize;
            let perhaps_known = usize::from(before.may_stop_in_known(result, *new));
            let missing = own.as_ref().map_or(0, |own| short(*own.start()));
            let missing = missing.max(halves.saturating_sub(perhaps_known)).max(unread);
            let perhaps = own.as_ref().map_or(0, |own| short(*own.end())).max(halves).max(unread);
            let (missing, perhaps) = match run_again(at, results) {
                None => (missing, perhaps),
                Some(RunAgain::Anew) => (0, 0),
                Some(RunAgain::WithEarlier) => (0, perhaps),
            };
            loss.count = loss.count.saturating_sub(new.certain + new.doubtful).max(missing);
            most = most.saturating_sub(new.certain).max(perhaps);
            let is_made_again = is_made_again(result, *new, &results[..at]);
            if is_made_again {
                (loss.count, most) = (0, 0);
            }
            if let Some(pinned) = &mut pinned {
                pinned.count = if is_made_again { 0 } else { pinned.behind(result, *new) };
                (loss.count, most) = (loss.count.max(pinned.count), most.max(pinned.count));
            } else if missing > 0 {
                pinned = Pinned::of(result);
            }
            if missing > 0 {
                loss.basis.extend(basis);
            }
            loss.is_doubtful = result.unread > 0;
            if !result.cut.is_whole() {
                ways.push(basis);
            }
            before.add(result, *new);
        }
        most = most.max(begun_and_never_told(results));
        let apart = told_apart(results);
        (loss.count, most) = (loss.count.max(apart), most.max(apart));
        loss.is_doubtful |= most > loss.count;
        // A checkpoint and an id tell of those that were there; where all of them are kept, more may have been to come.
        loss.is_known = if loss.count > 0 {
            ways.iter().all(Option::is_some)
        } else {
            !ways.is_empty() && ways.iter().all(|basis| *basis == Some(Basis::Declared))
        };
        if loss.count == 0 {
            loss.basis.clear();
        }
        loss.basis.sort_unstable();
        loss.basis.dedup();
        loss.needs_reaudit = unresolved(results).min(most);
        loss
    }
}

/// Findings that were made before the dimensions that remain were begun, and are not there: what is found in those is none of
/// them.
struct Pinned<'a> {
    count: usize,
    dimensions: Vec<&'a str>,
}

impl<'a> Pinned<'a> {
    /// Those of a cut run, by its last checkpoint.
    fn of(result: &'a AgentResult) -> Option<Self> {
        let checkpoint = result.checkpoint.as_ref().filter(|_| !result.cut.is_whole())?;
        let (made, remaining) = (checkpoint.findings?, checkpoint.remaining_dims.as_ref()?);
        let is_done = |dimension: &&String| !is_named(dimension, remaining);
        let dimensions: Vec<&str> = result.dimensions.iter().filter(is_done).map(String::as_str).collect();
        let count = (made as usize).saturating_sub(result.findings.len());
        (count > 0 && !dimensions.is_empty()).then_some(Self { count, dimensions })
    }

    /// How many are left behind a later run: one that looks into none of their dimensions brings none of them.
    fn behind(&self, result: &AgentResult, new: New) -> usize {
        let is_looked_into = |dimension: &&str| is_named(dimension, &result.dimensions);
        let may_have_some = result.dimensions.is_empty() || self.dimensions.iter().any(is_looked_into);
        if may_have_some { self.count.saturating_sub(new.certain + new.doubtful) } else { self.count }
    }
}

/// What the rounds before a result have brought.
#[derive(Default)]
struct Before<'a> {
    kept: Vec<&'a ReadFinding>,
    /// How many of them are others.
    distinct: usize,
    /// Of those that were whole.
    highest: Option<u32>,
    highest_begun: Option<u32>,
    /// The most that one of them declares.
    declared: Option<u32>,
}

impl<'a> Before<'a> {
    fn add(&mut self, result: &'a AgentResult, new: New) {
        self.kept.extend(result.kept());
        self.distinct += new.certain + new.doubtful;
        let highest = |kept: &mut dyn Iterator<Item = &ReadFinding>| {
            kept.filter_map(|read| read.finding.id.number()).max()
        };
        let is_whole = |read: &&ReadFinding| read.state == FindingState::Complete;
        self.highest = self.highest.max(highest(&mut result.kept().filter(is_whole)));
        self.highest_begun = self.highest_begun.max(highest(&mut result.kept()));
        self.declared = self.declared.max(result.declared_findings);
    }

    /// How many findings a result itself must have had, at least and at most: one that goes on with the numbers of an
    /// earlier round, or begins with what stopped there, does not have those of that round. One that tells it all again may
    /// have been about to tell the rest of it, or something else.
    fn own_expected(&self, result: &AgentResult, new: New) -> Option<(RangeInclusive<u32>, Basis)> {
        let expected = result.expected()?;
        let lowest = result.numbers.lowest();
        // Where its numbers go on behind those of others, and beyond what it declares, it declares its own.
        let goes_beyond =
            expected.basis == Basis::HighestId && lowest > Some(1) && self.highest_begun.is_some();
        if let Some(declared) = result.declared_findings.filter(|_| goes_beyond) {
            return Some((declared..=declared, Basis::Declared));
        }
        // As many as its highest number are all there are, unless another round has declared more.
        let is_total = expected.basis == Basis::HighestId
            || result.numbers.highest() == Some(expected.findings)
                && self.declared <= Some(expected.findings);
        let others = u32::try_from(self.others(result, new)).unwrap_or(u32::MAX);
        // Numbers before its own are those of others.
        let passed = lowest.map_or(0, |lowest| lowest.saturating_sub(1));
        // What stopped it says again itself; rounds that count from one have more than their highest number.
        let goes_on = self.highest_begun.filter(|_| is_total && passed > 0 && self.highest <= Some(passed));
        let goes_on = goes_on.map(|begun| begun.max(others).min(passed));
        let (most, least) = match goes_on {
            Some(before) => (before, before),
            None if self.is_told_again(result, new) => {
                (others, if is_total { others.min(passed) } else { 0 })
            }
            None => (0, 0),
        };
        let own = expected.findings.saturating_sub(most)..=expected.findings.saturating_sub(least);
        Some((own, expected.basis))
    }

    /// Whether all that has come of a result was handed over before under the same numbers, so that what it says of how
    /// many there are may count those of the earlier rounds; also where none of its findings has come, or too little of the
    /// last one.
    fn is_told_again(&self, result: &AgentResult, new: New) -> bool {
        let is_known = |read: &ReadFinding| {
            let is_cut = is_stopped_in(result, read);
            self.same(read, is_cut).is_some() || is_cut && self.may_be_known(read)
        };
        new.certain + new.doubtful == 0 && result.findings.iter().all(is_known)
    }

    /// Whether a result tells all again up to a finding of which too little has come to say that it is another one.
    fn may_stop_in_known(&self, result: &AgentResult, new: New) -> bool {
        let last = result.findings.last().filter(|last| is_stopped_in(result, last));
        last.is_some_and(|last| self.may_be_known(last) && self.same(last, true).is_none())
            && self.is_told_again(result, new)
    }

    /// Whether a finding that stops may be that of an earlier round with its number, in other words: it says no place, and
    /// no other weakness.
    fn may_be_known(&self, read: &ReadFinding) -> bool {
        let (id, cwe) = (&read.finding.id, &read.finding.cwe);
        let is_like = |known: &Finding| cwe.is_empty() || cwe.iter().any(|cwe| known.cwe.contains(cwe));
        let is_known = |known: &&ReadFinding| known.finding.id == *id && is_like(&known.finding);
        read.finding.location.is_none() && self.kept.iter().any(is_known)
    }

    /// How many findings of the earlier rounds a result does not repeat.
    fn others(&self, result: &AgentResult, new: New) -> usize {
        let known = result.kept().count().saturating_sub(new.certain + new.doubtful);
        let again = known + self.halves_again(result);
        self.distinct.saturating_sub(again)
    }

    /// How many findings without source or sink are there already from an earlier round.
    fn halves_again(&self, result: &AgentResult) -> usize {
        let halves = result.findings.iter().filter(|read| read.state == FindingState::NeedsReaudit);
        halves.filter(|half| self.same(half, is_stopped_in(result, half)).is_some()).count()
    }

    /// What an earlier round has under the number of a finding that says the same of it, as far as it goes.
    fn same(&self, read: &ReadFinding, is_cut: bool) -> Option<&ReadFinding> {
        let is_same = |known: &&&ReadFinding| {
            let is_id = known.finding.id == read.finding.id;
            let is_open = known.state == FindingState::Truncated;
            let is_again = is_again(read, known, is_cut);
            // What was cut may be numbered anew; where there is nothing but a number, it goes on with that.
            let goes_on = is_cut && is_open && if is_only_numbered(read) { is_id } else { is_again };
            goes_on || is_id && is_again
        };
        self.kept.iter().find(is_same).copied()
    }
}

/// Whether a result stops in this finding.
fn is_stopped_in(result: &AgentResult, read: &ReadFinding) -> bool {
    result.cut != Cut::Whole && result.findings.last().is_some_and(|last| std::ptr::eq(last, read))
}

/// Whether nothing but the number of a finding is there.
fn is_only_numbered(read: &ReadFinding) -> bool {
    letters(&read.finding.title).is_empty() && read.finding.is_bare()
}

/// Whether a result is whole and says, about all that each of the earlier ones looked into, as many findings as that was to
/// have: it has been made anew, and nothing of them is missing. An earlier one of which nothing says that it had more has
/// lost nothing that is known.
fn is_made_again(result: &AgentResult, new: New, earlier: &[(&AgentResult, New)]) -> bool {
    let is_covered = |before: &AgentResult| {
        before.expected().is_none() && before.lost() == 0 && before.discarded == 0
            || is_as_much(result, new, before)
    };
    is_thorough(result) && earlier.iter().all(|(before, _)| is_covered(before))
}

/// Whether a result has its end, and lacks nothing.
fn is_thorough(result: &AgentResult) -> bool {
    result.cut == Cut::Whole && result.lost() == 0
}

/// Whether a result says, about all that an earlier one looked into, as many findings as that was to have.
fn is_as_much(result: &AgentResult, new: New, before: &AgentResult) -> bool {
    let said = result.kept().count().saturating_sub(new.doubtful);
    let is_said = |dimension: &String| is_named(dimension, &result.dimensions);
    let is_covered = result.dimensions.is_empty() || before.dimensions.iter().all(is_said);
    is_covered && before.expected().is_some_and(|expected| expected.findings as usize <= said)
}

/// A cut run that a later, whole one makes again: it says as many findings, and all of those that had begun.
enum RunAgain {
    /// None of what it says was whole before that run, or that run had begun to say just this.
    Anew,
    /// Some of it was, and may stand in the place of what that run did not come to.
    WithEarlier,
}

/// How the run at this place is made again, if it is.
fn run_again(at: usize, results: &[(&AgentResult, New)]) -> Option<RunAgain> {
    let (earlier, rest) = results.split_at_checked(at)?;
    let ((result, _), later) = rest.split_first()?;
    // What could not be read is not known to be said again.
    if result.cut.is_whole() || result.unread > 0 {
        return None;
    }
    let title = |read: &ReadFinding| letters(&read.finding.title);
    later.iter().find_map(|(again, new)| {
        if !is_thorough(again) || !is_as_much(again, *new, result) {
            return None;
        }
        let titles: HashSet<String> = again.kept().map(title).filter(|title| !title.is_empty()).collect();
        let is_said = |read: &ReadFinding| titles.contains(&title(read));
        let is_begun = |read: &ReadFinding| {
            let begun = title(read);
            begun.is_empty()
                || is_stopped_in(result, read) && titles.iter().any(|title| title.starts_with(&begun))
        };
        let is_half = |read: &ReadFinding| read.state == FindingState::NeedsReaudit;
        let is_all = result.findings.iter().all(|read| is_said(read) || is_half(read) && is_begun(read));
        let mut whole = earlier.iter().flat_map(|(earlier, _)| earlier.kept());
        let is_anew = is_beginning_of(result, again)
            || !whole.any(|read| read.state == FindingState::Complete && is_said(read));
        is_all.then_some(if is_anew { RunAgain::Anew } else { RunAgain::WithEarlier })
    })
}

/// Whether a run has begun to say what another says: it declares as many, and has the same titles under the same numbers.
fn is_beginning_of(begun: &AgentResult, whole: &AgentResult) -> bool {
    let name = |read: &ReadFinding| (read.finding.id.number(), letters(&read.finding.title));
    let names: HashSet<_> = whole.kept().map(name).collect();
    begun.declared_findings.is_some()
        && begun.declared_findings == whole.declared_findings
        && begun.kept().next().is_some()
        && begun.kept().all(|read| names.contains(&name(read)))
}

/// How many findings without source or sink no other round speaks of.
fn unresolved(results: &[(&AgentResult, New)]) -> usize {
    let mut before = Before::default();
    let mut count = 0;
    for (at, (result, new)) in results.iter().enumerate() {
        let later = || results[at + 1..].iter().flat_map(|(result, _)| &result.findings);
        let is_open = |half: &&ReadFinding| {
            let is_cut = is_stopped_in(result, half);
            before.same(half, is_cut).is_none() && !later().any(|again| is_again(half, again, is_cut))
        };
        let halves = result.findings.iter().filter(|read| read.state == FindingState::NeedsReaudit);
        count += halves.filter(is_open).count();
        before.add(result, *new);
    }
    count
}

/// What is new in each result among the members of one group: findings of one weakness at one place, in the order of
/// their results. What an agent has handed over in an earlier round is not.
pub(super) fn count_new(group: &[&Member], new: &mut [New]) {
    let mut known: Vec<Known<'_>> = Vec::new();
    for round in group.chunk_by(|one, other| one.result == other.result) {
        let Some(new) = round.first().and_then(|first| new.get_mut(first.result)) else { continue };
        // What was known before is taken once in a round.
        let mut left = vec![true; known.len()];
        let mut take = |fits: &dyn Fn(&Known<'_>) -> bool| {
            let found = known.iter().zip(&mut left).find(|(known, is_left)| **is_left && fits(known));
            found.is_some_and(|(_, is_left)| std::mem::take(is_left))
        };
        let said = round.iter().map(|member| Known::of(member));
        let others: Vec<Known<'_>> = said.filter(|said| !take(&|known| known.is_same(said))).collect();
        for said in &others {
            let is_of_agent = take(&|known| known.agent == said.agent);
            *(if is_of_agent { &mut new.doubtful } else { &mut new.certain }) += 1;
        }
        known.extend(others);
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
        self.agent == other.agent && (is_title || is_flow)
    }
}
