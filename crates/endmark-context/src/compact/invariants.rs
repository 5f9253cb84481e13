//! The invariants of every compaction (CX-3): one checker, for debug builds and for tests.

use crate::conversation::{Changes, Content, Conversation, Pairs, Part, Place, ResultTurns, Role, Turn};

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A result without its call.
    OrphanResult(Place),
    /// A call without its result.
    OrphanCall(Place),
    /// Of turns that must stay or be dropped together, only some have stayed. This is the first of them.
    SeparatedResult(usize),
    /// The results of this turn's calls do not follow the turn as the provider requires.
    Order(usize),
    /// The first turn is not a user turn, although it was before.
    UserFirst,
    /// The first user message was changed or dropped.
    FirstUser,
    /// The newest user message was changed or dropped.
    NewestUser,
    /// This turn has signed or encrypted reasoning, but another part of the turn was dropped.
    Sealed(usize),
}

/// Checks a conversation after these changes.
pub fn violations(before: &Conversation<'_>, changes: &Changes) -> Vec<Violation> {
    let after = changes.apply(before);
    let pairs = Pairs::of(&after);
    let mut found: Vec<Violation> =
        pairs.orphans().iter().map(|place| Violation::OrphanResult(*place)).collect();
    found.extend(pairs.unanswered().iter().map(|place| Violation::OrphanCall(*place)));
    let before_pairs = Pairs::of(before);
    let parted = before_pairs.steps().iter().filter(|step| {
        let gone = step.iter().filter(|turn| changes.drops_turn(**turn)).count();
        gone != 0 && gone != step.len()
    });
    found.extend(parted.filter_map(|step| step.first()).map(|turn| Violation::SeparatedResult(*turn)));
    if after.order.results_behind_calls {
        found.extend(
            (0..after.turns.len()).filter(|turn| !is_answered(&after, &pairs, *turn)).map(Violation::Order),
        );
    }
    if after.order.user_first && begins_with_user(before) && !begins_with_user(&after) {
        found.push(Violation::UserFirst);
    }
    let own = |turn: &Turn<'_>| {
        turn.is_from_user() && !turn.texts().any(|text| super::summary::read(text).is_some())
    };
    if before.turns.iter().find(|turn| own(turn)).map(spoken_contents)
        != after.turns.iter().find(|turn| own(turn)).map(spoken_contents)
    {
        found.push(Violation::FirstUser);
    }
    if before.turns.iter().rfind(|turn| own(turn)).map(spoken_contents)
        != after.turns.iter().rfind(|turn| own(turn)).map(spoken_contents)
    {
        found.push(Violation::NewestUser);
    }
    found.extend(broken_seals(before, changes));
    found
}

/// Returns the contents of a turn except tool results.
fn spoken_contents<'t>(turn: &'t Turn<'_>) -> Vec<&'t Content<'t>> {
    turn.parts.iter().map(|part| &part.content).filter(|it| !matches!(it, Content::Result(_))).collect()
}

fn begins_with_user(conversation: &Conversation<'_>) -> bool {
    let first = conversation.turns.iter().find(|turn| turn.role != Role::System);
    first.is_none_or(|turn| matches!(turn.role, Role::User))
}

/// Whether the results of a turn's calls follow directly after the turn.
fn is_answered(conversation: &Conversation<'_>, pairs: &Pairs, turn: usize) -> bool {
    let places =
        |turn: usize| (0..conversation.turns[turn].parts.len()).map(move |part| Place { turn, part });
    let part = |place: Place| -> &Part<'_> { &conversation.turns[place.turn].parts[place.part] };
    let mut left = places(turn).filter(|place| part(*place).call().is_some()).count();
    if left == 0 {
        return true;
    }
    for next in turn + 1..conversation.turns.len() {
        for place in places(next) {
            if left == 0 {
                // A turn with results may have other content only if the provider accepts that.
                return conversation.order.turns_of_results != ResultTurns::SingleTurn;
            }
            if pairs.call_of(place).is_none_or(|call| call.turn != turn) {
                return false;
            }
            left -= 1;
        }
        if left == 0 {
            return true;
        }
        if conversation.order.turns_of_results == ResultTurns::SingleTurn {
            return false;
        }
    }
    false
}

/// Returns the kept turns with sealed reasoning that have lost another part.
fn broken_seals(before: &Conversation<'_>, changes: &Changes) -> Vec<Violation> {
    let is_sealed = |part: &Part<'_>| matches!(part.content, Content::Reasoning { sealed: true, .. });
    let kept = before.turns.iter().enumerate().filter(|(turn, _)| !changes.drops_turn(*turn));
    let broken = kept.filter(|(turn, standing)| {
        let gone = (0..standing.parts.len()).any(|part| changes.drops_part(Place { turn: *turn, part }));
        gone && standing.parts.iter().any(is_sealed)
    });
    broken.map(|(turn, _)| Violation::Sealed(turn)).collect()
}
