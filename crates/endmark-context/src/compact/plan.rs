//! Plans a compaction (CX-1, CX-2): which turns stay, which are condensed, and whether results are shortened.

use std::collections::BTreeSet;

use super::sizes::PartSizes;
use super::summary::{self, ParsedSummary};
use crate::conversation::{CallPairs, Content, Conversation, PartPosition, Role};

/// Results are never shortened to fewer tokens than this.
const MIN_RESULT_TOKENS: u64 = 90;
/// If results would have to be shortened to fewer tokens than this, fewer turns are kept instead.
const COMFORTABLE_RESULT_TOKENS: u64 = 250;
/// For compaction by share: the tenths of the budget that the ledger may use before turns are dropped. The
/// tokens of turns that always stay are subtracted from the budget first.
pub(super) const LEDGER_TENTHS: u64 = 8;
/// The same for compaction by size. Here values are dropped before the newest turns.
pub(super) const VALUE_TENTHS: u64 = 2;

/// The facts about a conversation that do not depend on the budget.
#[derive(Debug, Clone, Default)]
pub(super) struct FixedParts {
    /// Index of the first turn after the leading instructions, where the history begins.
    pub(super) head: usize,
    /// Index of the first turn that may be condensed.
    pub(super) from: usize,
    /// Indexes of later turns that always stay.
    pub(super) pinned: BTreeSet<usize>,
    /// Earlier summaries, with the indexes of their turns.
    pub(super) summaries: Vec<(usize, ParsedSummary)>,
    /// For each turn, whether the kept tail may begin there.
    may_begin_tail: Vec<bool>,
}

impl FixedParts {
    pub(super) fn of(conversation: &Conversation<'_>, pairs: &CallPairs) -> Self {
        let turns = &conversation.turns;
        let summaries: Vec<(usize, ParsedSummary)> =
            (0..turns.len()).filter_map(|at| Some((at, own_summary(conversation, at)?))).collect();
        let is_own = |at: usize| summaries.iter().any(|(own, _)| *own == at);
        let of_user = |at: &usize| turns[*at].is_from_user() && !is_own(*at);
        let first_user = (0..turns.len()).find(of_user);
        let newest_user = (0..turns.len()).rfind(of_user);
        let head = turns.iter().take_while(|turn| turn.role == Role::System).count();
        let from = first_user.map_or(head, |first| (first + 1).max(head));
        let mut pinned: BTreeSet<usize> = newest_user.into_iter().collect();
        // The first and the newest instructions stay wherever they are.
        let system = |at: &usize| turns[*at].role == Role::System;
        pinned.extend((0..turns.len()).find(system));
        pinned.extend((0..turns.len()).rfind(system));
        // Only the provider can read content that it condensed itself.
        let is_compaction = |at: &usize| {
            let kinds = turns[*at].parts.iter();
            kinds.into_iter().any(
                |part| matches!(&part.content, Content::Server { kind, .. } if kind.starts_with("compaction")),
            )
        };
        pinned.extend((0..turns.len()).filter(is_compaction));
        let answers =
            pairs.pairs().filter(|(call, _)| pinned.contains(&call.turn)).map(|(_, result)| result.turn);
        pinned.extend(answers.collect::<Vec<_>>());
        pinned.retain(|at| *at >= from);
        let may_begin = may_begin(conversation, pairs);
        Self { head, from, pinned, summaries, may_begin_tail: may_begin }
    }

    /// Returns the last turn at or before `at` where the kept tail may begin. Looks back at most `most_back`
    /// turns, because a very late result does not justify keeping everything since its call.
    pub(super) fn tail_begin(&self, at: usize, most_back: usize) -> usize {
        let least = at.saturating_sub(most_back).max(self.from);
        (least..=at)
            .rev()
            .find(|at| self.may_begin_tail.get(*at).copied().unwrap_or(true))
            .unwrap_or(at.max(self.from))
    }
}

/// Returns the earlier summary in this turn. Returns `None` if the turn contains anything else.
fn own_summary(conversation: &Conversation<'_>, at: usize) -> Option<ParsedSummary> {
    let turn = conversation.turns.get(at)?;
    match turn.parts.as_slice() {
        [only] if turn.role == Role::User => match &only.content {
            Content::Text(text) => summary::read(text),
            _ => None,
        },
        _ => None,
    }
}

/// Returns for each turn whether the kept tail may begin there. The tail must not separate a result from its
/// call (or from references that may be its call), or reasoning from the turn after it.
fn may_begin(conversation: &Conversation<'_>, pairs: &CallPairs) -> Vec<bool> {
    let turns = &conversation.turns;
    let mut open_pair_changes = vec![0_i64; turns.len() + 2];
    for (call, result) in pairs.pairs() {
        open_pair_changes[call.turn + 1] += 1;
        open_pair_changes[result.turn + 1] -= 1;
    }
    for step in pairs.turn_groups() {
        if let (Some(first), Some(last)) = (step.first(), step.last()) {
            open_pair_changes[first + 1] += 1;
            open_pair_changes[last + 1] -= 1;
        }
    }
    let mut open = 0;
    let is_reasoning = |at: usize| {
        let parts = &turns[at].parts;
        !parts.is_empty() && parts.iter().all(|part| matches!(part.content, Content::Reasoning { .. }))
    };
    let begins = (0..=turns.len()).map(|at| {
        open += open_pair_changes[at];
        let splits_reasoning =
            at > 0 && at < turns.len() && is_reasoning(at - 1) && turns[at].role == Role::Assistant;
        open <= 0 && !splits_reasoning
    });
    begins.collect()
}

/// A planned compaction.
#[derive(Debug, Clone, Default)]
pub(super) struct CompactionPlan {
    /// Index of the first of the newest turns that stay.
    pub(super) tail: usize,
    /// Maximum tokens of each result in these turns. `None` if results are not shortened.
    pub(super) result_tokens: Option<u64>,
    /// Whether the result fits into the budget.
    pub(super) fits: bool,
}

/// The input for a plan.
pub(super) struct Planner<'p> {
    pub(super) conversation: &'p Conversation<'p>,
    pub(super) fixed: &'p FixedParts,
    pub(super) sizes: &'p PartSizes,
    /// For each turn, the number of tokens of the anchors in all earlier turns.
    pub(super) anchors_before: &'p [u64],
    pub(super) budget: u64,
    pub(super) ledger_tenths: u64,
}

impl Planner<'_> {
    /// Returns the first plan that fits. If none fits, returns the smallest one.
    ///
    /// At most `most` newest turns stay, plus at most `most_back` earlier turns that belong to them. The
    /// plans are tried in this order: the newest turns in full, the same turns with shortened results, fewer
    /// turns, and finally only the last turn.
    pub(super) fn plan(&self, most: usize, most_back: usize) -> CompactionPlan {
        let last = self.conversation.turns.len();
        let mut plan = CompactionPlan::default();
        let mut before = None;
        for keep in (1..=most.max(1)).rev() {
            let tail = self.fixed.tail_begin(last.saturating_sub(keep), most_back);
            if before == Some(tail) {
                continue;
            }
            for shortens in [false, true] {
                if shortens || before.is_none() {
                    plan = self.plan_with_tail(tail, shortens);
                    if plan.fits {
                        return plan;
                    }
                }
            }
            before = Some(tail);
        }
        plan
    }

    fn plan_with_tail(&self, tail: usize, shortens: bool) -> CompactionPlan {
        let kept: u64 =
            self.pinned_turns().filter(|at| *at < tail).map(|at| self.sizes.turn(at)).sum::<u64>()
                + self.sizes.tokens_from(tail);
        let wanted = self.anchors_before.get(tail).copied().unwrap_or_default();
        let pinned: u64 = self.pinned_turns().map(|at| self.sizes.turn(at)).sum();
        let claim = wanted.min(self.budget.saturating_sub(pinned) * self.ledger_tenths / 10);
        if !shortens {
            let fits = kept + claim <= self.budget;
            return CompactionPlan { tail, result_tokens: None, fits };
        }
        let results: Vec<u64> = self.shortenable_results(tail).map(|place| self.sizes.part(place)).collect();
        let all: u64 = results.iter().sum();
        let available = self.budget.saturating_sub(kept - all);
        let comfortable: u64 = results.iter().map(|tokens| (*tokens).min(COMFORTABLE_RESULT_TOKENS)).sum();
        let fits = kept - all + claim + comfortable <= self.budget;
        // If nothing else can be dropped, the ledger and the results share the rest of the budget in
        // proportion to their sizes.
        let claim = if fits { claim } else { claim.min(available * wanted / (wanted + all).max(1)) };
        let level = size_limit(&results, available.saturating_sub(claim));
        CompactionPlan { tail, result_tokens: Some(level.max(MIN_RESULT_TOKENS)), fits }
    }

    /// Returns the indexes of the turns that always stay.
    fn pinned_turns(&self) -> impl Iterator<Item = usize> {
        (self.fixed.head..self.fixed.from).chain(self.fixed.pinned.iter().copied())
    }

    /// Returns the results in the kept tail that may be shortened.
    pub(super) fn shortenable_results(&self, tail: usize) -> impl Iterator<Item = PartPosition> {
        let turns = self.conversation.turns.iter().enumerate().skip(tail);
        turns.flat_map(|(turn, standing)| {
            let parts = standing.parts.iter().enumerate();
            parts
                .filter(|(_, part)| part.result().is_some_and(|result| !result.is_fixed))
                .map(move |(part, _)| PartPosition { turn, part })
        })
    }
}

/// Returns the size to which larger items must be shortened so that all items together need at most `room`.
fn size_limit(sizes: &[u64], room: u64) -> u64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let (mut left, mut others) = (room, sorted.len() as u64);
    for size in sorted {
        if size * others > left {
            return left / others;
        }
        left -= size;
        others -= 1;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_results_are_shortened() {
        assert_eq!(size_limit(&[10, 500, 30], 240), 200);
        assert_eq!(size_limit(&[10, 500, 30], 540), u64::MAX);
        assert_eq!(size_limit(&[100, 100], 0), 0);
        assert_eq!(size_limit(&[], 5), u64::MAX);
    }
}
