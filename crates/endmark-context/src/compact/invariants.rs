//! The invariants of every compaction (CX-3). Debug builds and tests check them.

use crate::conversation::{
    CallPairs, Content, Conversation, ConversationChanges, Part, PartPosition, ResultTurns, Role, Turn,
};

/// An invariant that a compaction violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvariantViolation {
    /// A result was kept, but its call was not.
    OrphanResult(PartPosition),
    /// A call was kept, but its result was not.
    OrphanCall(PartPosition),
    /// Turns that must be kept or dropped together were separated. The number is the first of them.
    SeparatedResult(usize),
    /// The results of this turn's calls do not follow it in the order that the provider requires.
    WrongOrder(usize),
    /// The conversation began with a user turn before, but does not anymore.
    NoLongerBeginsWithUser,
    /// The first user message was changed or dropped.
    FirstUserMessageChanged,
    /// The newest user message was changed or dropped.
    NewestUserMessageChanged,
    /// This turn keeps signed or encrypted reasoning, but lost another part.
    SealedTurnChanged(usize),
}

/// Returns the invariants that these changes of a conversation violate.
pub fn violations(before: &Conversation<'_>, changes: &ConversationChanges) -> Vec<InvariantViolation> {
    let after = changes.apply(before);
    let pairs = CallPairs::of(&after);
    let mut found: Vec<InvariantViolation> =
        pairs.orphan_results().iter().map(|place| InvariantViolation::OrphanResult(*place)).collect();
    found.extend(pairs.unanswered().iter().map(|place| InvariantViolation::OrphanCall(*place)));
    let before_pairs = CallPairs::of(before);
    let separated_steps = before_pairs.turn_groups().iter().filter(|step| {
        let gone = step.iter().filter(|turn| changes.drops_turn(**turn)).count();
        gone != 0 && gone != step.len()
    });
    found.extend(
        separated_steps
            .filter_map(|step| step.first())
            .map(|turn| InvariantViolation::SeparatedResult(*turn)),
    );
    if after.order.results_follow_calls {
        found.extend(
            (0..after.turns.len())
                .filter(|turn| !are_results_in_order(&after, &pairs, *turn))
                .map(InvariantViolation::WrongOrder),
        );
    }
    if after.order.begins_with_user && begins_with_user(before) && !begins_with_user(&after) {
        found.push(InvariantViolation::NoLongerBeginsWithUser);
    }
    let own = |turn: &Turn<'_>| {
        turn.is_from_user() && !turn.texts().any(|text| super::summary::read(text).is_some())
    };
    if before.turns.iter().find(|turn| own(turn)).map(contents_without_results)
        != after.turns.iter().find(|turn| own(turn)).map(contents_without_results)
    {
        found.push(InvariantViolation::FirstUserMessageChanged);
    }
    if before.turns.iter().rfind(|turn| own(turn)).map(contents_without_results)
        != after.turns.iter().rfind(|turn| own(turn)).map(contents_without_results)
    {
        found.push(InvariantViolation::NewestUserMessageChanged);
    }
    found.extend(broken_seals(before, changes));
    found
}

/// Returns the contents of a turn except tool results.
fn contents_without_results<'t>(turn: &'t Turn<'_>) -> Vec<&'t Content<'t>> {
    turn.parts.iter().map(|part| &part.content).filter(|it| !matches!(it, Content::Result(_))).collect()
}

fn begins_with_user(conversation: &Conversation<'_>) -> bool {
    let first = conversation.turns.iter().find(|turn| turn.role != Role::System);
    first.is_none_or(|turn| matches!(turn.role, Role::User))
}

/// Whether the results of a turn's calls directly follow the turn, as the provider requires.
fn are_results_in_order(conversation: &Conversation<'_>, pairs: &CallPairs, turn: usize) -> bool {
    let places =
        |turn: usize| (0..conversation.turns[turn].parts.len()).map(move |part| PartPosition { turn, part });
    let part = |place: PartPosition| -> &Part<'_> { &conversation.turns[place.turn].parts[place.part] };
    let mut left = places(turn).filter(|place| part(*place).call().is_some()).count();
    if left == 0 {
        return true;
    }
    for next in turn + 1..conversation.turns.len() {
        for place in places(next) {
            if left == 0 {
                // Other content besides results is allowed unless the provider requires a turn with only
                // results.
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

/// Returns the turns that keep sealed reasoning but lost another part.
fn broken_seals(before: &Conversation<'_>, changes: &ConversationChanges) -> Vec<InvariantViolation> {
    let is_sealed = |part: &Part<'_>| matches!(part.content, Content::Reasoning { sealed: true, .. });
    let kept = before.turns.iter().enumerate().filter(|(turn, _)| !changes.drops_turn(*turn));
    let broken = kept.filter(|(turn, standing)| {
        let gone =
            (0..standing.parts.len()).any(|part| changes.drops_part(PartPosition { turn: *turn, part }));
        gone && standing.parts.iter().any(is_sealed)
    });
    broken.map(|(turn, _)| InvariantViolation::SealedTurnChanged(turn)).collect()
}
