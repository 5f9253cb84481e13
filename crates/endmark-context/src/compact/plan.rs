//! Plans a compaction: which turns stay, which are condensed, and whether results are shortened (CX-1, CX-2).

use std::collections::BTreeSet;

use super::sizes::Sizes;
use super::summary::{self, Summary};
use crate::conversation::{Content, Conversation, Pairs, Place, Role};

/// Results are never shortened below this limit, in tokens.
const MIN_RESULT_TOKENS: u64 = 90;
/// Below this limit in tokens, fewer turns are kept instead of shortening results further.
const COMFORTABLE_RESULT_TOKENS: u64 = 250;
/// For compaction by share: the part of the budget that the ledger may use before turns are dropped, in tenths. Turns
/// that always stay are first subtracted from the budget.
pub(super) const LEDGER_TENTHS: u64 = 8;
/// The same for compaction by size, where values are dropped before the newest turns.
pub(super) const VALUE_TENTHS: u64 = 2;

/// Parts of a conversation that do not depend on the budget.
#[derive(Debug, Clone, Default)]
pub(super) struct FixedParts {
    /// The begin of the history, after the instructions.
    pub(super) head: usize,
    /// The first turn that may be condensed.
    pub(super) from: usize,
    /// Turns after `from` that always stay.
    pub(super) pinned: BTreeSet<usize>,
    /// Earlier summaries, with their turns.
    pub(super) summaries: Vec<(usize, Summary)>,
    /// For each turn: whether the kept tail may begin there.
    may_begin: Vec<bool>,
}

impl FixedParts {
    pub(super) fn of(conversation: &Conversation<'_>, pairs: &Pairs) -> Self {
        let turns = &conversation.turns;
        let summaries: Vec<(usize, Summary)> =
            (0..turns.len()).filter_map(|at| Some((at, own_summary(conversation, at)?))).collect();
        let is_own = |at: usize| summaries.iter().any(|(own, _)| *own == at);
        let of_user = |at: &usize| turns[*at].is_from_user() && !is_own(*at);
        let first_user = (0..turns.len()).find(of_user);
        let newest_user = (0..turns.len()).rfind(of_user);
        let head = turns.iter().take_while(|turn| turn.role == Role::System).count();
        let from = first_user.map_or(head, |first| (first + 1).max(head));
        let mut pinned: BTreeSet<usize> = newest_user.into_iter().collect();
        // The first and the newest instructions stay, at any position.
        let system = |at: &usize| turns[*at].role == Role::System;
        pinned.extend((0..turns.len()).find(system));
        pinned.extend((0..turns.len()).rfind(system));
        // Only the provider can read its own condensed content.
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
        Self { head, from, pinned, summaries, may_begin }
    }

    /// Returns the nearest turn, at or before this one, where the kept tail may begin. It looks back at most `most_back`
    /// turns, because a very late result does not justify keeping everything since its call.
    pub(super) fn begin(&self, at: usize, most_back: usize) -> usize {
        let least = at.saturating_sub(most_back).max(self.from);
        (least..=at)
            .rev()
            .find(|at| self.may_begin.get(*at).copied().unwrap_or(true))
            .unwrap_or(at.max(self.from))
    }
}

/// Returns the summary in a turn that consists only of one.
fn own_summary(conversation: &Conversation<'_>, at: usize) -> Option<Summary> {
    let turn = conversation.turns.get(at)?;
    match turn.parts.as_slice() {
        [only] if turn.role == Role::User => match &only.content {
            Content::Text(text) => summary::read(text),
            _ => None,
        },
        _ => None,
    }
}

/// Returns for every turn whether the kept tail may begin there. The tail must not separate a result from its call
/// (or from references that may be its call), or reasoning from the turn after it.
fn may_begin(conversation: &Conversation<'_>, pairs: &Pairs) -> Vec<bool> {
    let turns = &conversation.turns;
    let mut parted = vec![0_i64; turns.len() + 2];
    for (call, result) in pairs.pairs() {
        parted[call.turn + 1] += 1;
        parted[result.turn + 1] -= 1;
    }
    for step in pairs.steps() {
        if let (Some(first), Some(last)) = (step.first(), step.last()) {
            parted[first + 1] += 1;
            parted[last + 1] -= 1;
        }
    }
    let mut open = 0;
    let is_reasoning = |at: usize| {
        let parts = &turns[at].parts;
        !parts.is_empty() && parts.iter().all(|part| matches!(part.content, Content::Reasoning { .. }))
    };
    let begins = (0..=turns.len()).map(|at| {
        open += parted[at];
        let splits_reasoning =
            at > 0 && at < turns.len() && is_reasoning(at - 1) && turns[at].role == Role::Assistant;
        open <= 0 && !splits_reasoning
    });
    begins.collect()
}

/// The plan of a compaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// The first of the newest turns that stay.
    pub(super) tail: usize,
    /// Most tokens of each result in the turns that stay.
    pub(super) result_tokens: Option<u64>,
    /// Whether everything fits the budget.
    pub(super) fits: bool,
}

/// Input of a plan.
pub(super) struct Planner<'p> {
    pub(super) conversation: &'p Conversation<'p>,
    pub(super) fixed: &'p FixedParts,
    pub(super) sizes: &'p Sizes,
    /// For each turn: the tokens of the anchors in all earlier turns.
    pub(super) anchors_before: &'p [u64],
    pub(super) budget: u64,
    pub(super) ledger_tenths: u64,
}

impl Planner<'_> {
    /// Returns the first plan that fits.
    ///
    /// It tries the newest turns in full, then with shortened results, then fewer turns, and finally only the open turn. At
    /// most `most` turns stay, and `most_back` earlier ones that belong to them.
    pub(super) fn plan(&self, most: usize, most_back: usize) -> Plan {
        let last = self.conversation.turns.len();
        let mut plan = Plan::default();
        let mut before = None;
        for keep in (1..=most.max(1)).rev() {
            let tail = self.fixed.begin(last.saturating_sub(keep), most_back);
            if before == Some(tail) {
                continue;
            }
            for shortens in [false, true] {
                if shortens || before.is_none() {
                    plan = self.plan_for(tail, shortens);
                    if plan.fits {
                        return plan;
                    }
                }
            }
            before = Some(tail);
        }
        plan
    }

    fn plan_for(&self, tail: usize, shortens: bool) -> Plan {
        let kept: u64 = self.always().filter(|at| *at < tail).map(|at| self.sizes.turn(at)).sum::<u64>()
            + self.sizes.tokens_from(tail);
        let wanted = self.anchors_before.get(tail).copied().unwrap_or_default();
        let pinned: u64 = self.always().map(|at| self.sizes.turn(at)).sum();
        let claim = wanted.min(self.budget.saturating_sub(pinned) * self.ledger_tenths / 10);
        if !shortens {
            let fits = kept + claim <= self.budget;
            return Plan { tail, result_tokens: None, fits };
        }
        let results: Vec<u64> = self.results(tail).map(|place| self.sizes.part(place)).collect();
        let all: u64 = results.iter().sum();
        let available = self.budget.saturating_sub(kept - all);
        let comfortable: u64 = results.iter().map(|tokens| (*tokens).min(COMFORTABLE_RESULT_TOKENS)).sum();
        let fits = kept - all + claim + comfortable <= self.budget;
        // If nothing else can be dropped, the summary and the results share the rest in proportion to their sizes.
        let claim = if fits { claim } else { claim.min(available * wanted / (wanted + all).max(1)) };
        let level = level(&results, available.saturating_sub(claim));
        Plan { tail, result_tokens: Some(level.max(MIN_RESULT_TOKENS)), fits }
    }

    /// Returns the turns that always stay.
    fn always(&self) -> impl Iterator<Item = usize> {
        (self.fixed.head..self.fixed.from).chain(self.fixed.pinned.iter().copied())
    }

    /// Returns the results among the newest turns that may be shortened.
    pub(super) fn results(&self, tail: usize) -> impl Iterator<Item = Place> {
        let turns = self.conversation.turns.iter().enumerate().skip(tail);
        turns.flat_map(|(turn, standing)| {
            let parts = standing.parts.iter().enumerate();
            parts
                .filter(|(_, part)| part.result().is_some_and(|result| !result.is_fixed))
                .map(move |(part, _)| Place { turn, part })
        })
    }
}

/// Returns the largest limit per item with which all items together need at most `room`.
fn level(sizes: &[u64], room: u64) -> u64 {
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
    fn large_turns_are_condensed_first() {
        assert_eq!(level(&[10, 500, 30], 240), 200);
        assert_eq!(level(&[10, 500, 30], 540), u64::MAX);
        assert_eq!(level(&[100, 100], 0), 0);
        assert_eq!(level(&[], 5), u64::MAX);
    }
}
