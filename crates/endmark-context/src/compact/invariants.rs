//! What holds after every compaction (CX-3): one checker, for debug builds and for tests.

use crate::conversation::{Changes, Content, Conversation, Pairs, Part, Place, Role, Turn, TurnsOfResults};

/// What does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A result without its call.
    OrphanResult(Place),
    /// A call without its result.
    OrphanCall(Place),
    /// Of this turn and others that have to stay or go with it, only some stay.
    Parted(usize),
    /// The results of this turn's calls do not stand behind it as the provider demands it.
    Order(usize),
    /// The first turn is not the user's, although it was before.
    UserFirst,
    /// The first message of the user's has changed or gone.
    FirstUser,
    /// The newest message of the user's has changed or gone.
    NewestUser,
    /// A signed or encrypted reasoning stands in a turn of which something else has gone.
    Sealed(usize),
}

/// Checks a conversation as it is after these changes.
pub fn violations(before: &Conversation<'_>, changes: &Changes) -> Vec<Violation> {
    let after = changes.applied(before);
    let pairs = Pairs::of(&after);
    let mut found: Vec<Violation> =
        pairs.orphans().iter().map(|place| Violation::OrphanResult(*place)).collect();
    found.extend(pairs.unanswered().iter().map(|place| Violation::OrphanCall(*place)));
    let before_pairs = Pairs::of(before);
    let parted = before_pairs.steps().iter().filter(|step| {
        let gone = step.iter().filter(|turn| changes.drops_turn(**turn)).count();
        gone != 0 && gone != step.len()
    });
    found.extend(parted.filter_map(|step| step.first()).map(|turn| Violation::Parted(*turn)));
    if after.order.results_behind_calls {
        found.extend(
            (0..after.turns.len()).filter(|turn| !is_answered(&after, &pairs, *turn)).map(Violation::Order),
        );
    }
    if after.order.user_first && begins_with_user(before) && !begins_with_user(&after) {
        found.push(Violation::UserFirst);
    }
    let own =
        |turn: &Turn<'_>| turn.is_of_user() && !turn.texts().any(|text| super::summary::read(text).is_some());
    if before.turns.iter().find(|turn| own(turn)).map(said)
        != after.turns.iter().find(|turn| own(turn)).map(said)
    {
        found.push(Violation::FirstUser);
    }
    if before.turns.iter().rfind(|turn| own(turn)).map(said)
        != after.turns.iter().rfind(|turn| own(turn)).map(said)
    {
        found.push(Violation::NewestUser);
    }
    found.extend(broken_seals(before, changes));
    found
}

/// What a turn says beside results of tools.
fn said<'t>(turn: &'t Turn<'_>) -> Vec<&'t Content<'t>> {
    turn.parts.iter().map(|part| &part.content).filter(|it| !matches!(it, Content::Result(_))).collect()
}

fn begins_with_user(conversation: &Conversation<'_>) -> bool {
    let first = conversation.turns.iter().find(|turn| turn.role != Role::System);
    first.is_none_or(|turn| matches!(turn.role, Role::User))
}

/// Whether the results of a turn's calls come right behind it, before anything else.
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
                // A turn that answers may say more only where the provider takes that.
                return conversation.order.turns_of_results != TurnsOfResults::OneAlone;
            }
            if pairs.call_of(place).is_none_or(|call| call.turn != turn) {
                return false;
            }
            left -= 1;
        }
        if left == 0 {
            return true;
        }
        if conversation.order.turns_of_results == TurnsOfResults::OneAlone {
            return false;
        }
    }
    false
}

/// Turns that stay with a sealed part, and from which a part has gone.
fn broken_seals(before: &Conversation<'_>, changes: &Changes) -> Vec<Violation> {
    let is_sealed = |part: &Part<'_>| matches!(part.content, Content::Reasoning { sealed: true, .. });
    let kept = before.turns.iter().enumerate().filter(|(turn, _)| !changes.drops_turn(*turn));
    let broken = kept.filter(|(turn, standing)| {
        let gone = (0..standing.parts.len()).any(|part| changes.drops_part(Place { turn: *turn, part }));
        gone && standing.parts.iter().any(is_sealed)
    });
    broken.map(|(turn, _)| Violation::Sealed(turn)).collect()
}
