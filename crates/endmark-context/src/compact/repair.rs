//! Repairs the kept turns so that every call has its result where the provider requires it (CX-3).

use std::collections::BTreeSet;

use crate::conversation::{
    CallPairs, Content, Conversation, Edit, InsertedMessage, NewResult, PartPosition, ResultTurns,
};

/// Text of the placeholder for a missing result.
const ABSENT_RESULT_TEXT: &str = "No result was recorded for this call.";
/// When a format writes the placeholder as an error, it adds at most this many bytes.
const PLACEHOLDER_MARGIN_BYTES: usize = 40;

/// Whether a result is such a placeholder, in the wording of any format.
pub(super) fn is_placeholder(text: &str) -> bool {
    text.len() <= ABSENT_RESULT_TEXT.len() + PLACEHOLDER_MARGIN_BYTES && text.contains(ABSENT_RESULT_TEXT)
}

/// Returns the edits that repair the kept turns. `stays` states for each turn whether it is kept.
pub(super) fn repair_edits(conversation: &Conversation<'_>, pairs: &CallPairs, stays: &[bool]) -> Vec<Edit> {
    let is_kept = |turn: usize| stays.get(turn).copied().unwrap_or(false);
    let mut edits = Vec::new();
    for (turn, standing) in conversation.turns.iter().enumerate().filter(|(turn, _)| is_kept(*turn)) {
        for (part, _) in standing.parts.iter().enumerate().filter(|(_, part)| part.result().is_some()) {
            let place = PartPosition { turn, part };
            let lacks_call = match pairs.call_of(place) {
                Some(call) => !is_kept(call.turn),
                None => pairs.is_orphan(place),
            };
            if lacks_call {
                edits.push(Edit::DropPart(place));
            }
        }
    }
    let (unanswerable, absent) = unanswered_calls(conversation, pairs, &is_kept);
    let dropped = dropped_calls(conversation, &unanswerable, &is_kept);
    edits.extend(dropped.iter().map(|place| Edit::DropPart(*place)));
    let order = conversation.order;
    for (turn, standing) in conversation.turns.iter().enumerate().filter(|(turn, _)| is_kept(*turn)) {
        let calls = (0..standing.parts.len()).map(|part| PartPosition { turn, part });
        let calls = calls.filter(|at| standing.parts[at.part].call().is_some() && !unanswerable.contains(at));
        let answers: Vec<NewResult> = calls
            .filter_map(|call| match pairs.result_of(call).filter(|result| is_kept(result.turn)) {
                Some(result) => Some(NewResult::Moved(result)),
                None => absent
                    .contains(&call)
                    .then(|| NewResult::Absent { call, text: ABSENT_RESULT_TEXT.to_owned() }),
            })
            .collect();
        if answers.is_empty() {
            continue;
        }
        let message = if order.results_follow_calls {
            if has_valid_results(conversation, turn, &answers, &is_kept) {
                continue;
            }
            InsertedMessage::Results(answers)
        } else {
            let new = answers.into_iter().filter(|answer| matches!(answer, NewResult::Absent { .. }));
            let new: Vec<NewResult> = new.collect();
            if new.is_empty() {
                continue;
            }
            InsertedMessage::Results(new)
        };
        edits.push(Edit::Insert { before: turn + 1, message });
    }
    edits
}

/// Returns the calls without a result in two sets: calls whose result cannot be a text, and calls whose result can.
fn unanswered_calls(
    conversation: &Conversation<'_>,
    pairs: &CallPairs,
    is_kept: &impl Fn(usize) -> bool,
) -> (BTreeSet<PartPosition>, BTreeSet<PartPosition>) {
    let calls = conversation.turns.iter().enumerate().filter(|(turn, _)| is_kept(*turn));
    let places = calls.flat_map(|(turn, standing)| {
        let parts = standing.parts.iter().enumerate();
        parts.filter_map(move |(part, it)| Some((PartPosition { turn, part }, it.call()?.can_be_answered)))
    });
    let open = places.filter(|(call, _)| !pairs.result_of(*call).is_some_and(|result| is_kept(result.turn)));
    let (answerable, unanswerable): (Vec<_>, Vec<_>) =
        open.partition(|(_, can_be_answered)| *can_be_answered);
    let places = |open: Vec<(PartPosition, bool)>| open.into_iter().map(|(call, _)| call).collect();
    (places(unanswerable), places(answerable))
}

/// Returns the calls to drop, together with preceding reasoning that only led to these calls.
fn dropped_calls(
    conversation: &Conversation<'_>,
    calls: &BTreeSet<PartPosition>,
    is_kept: &impl Fn(usize) -> bool,
) -> Vec<PartPosition> {
    let mut dropped: Vec<PartPosition> = calls.iter().copied().collect();
    for call in calls {
        let Some(before) = call.turn.checked_sub(1).filter(|turn| is_kept(*turn)) else { continue };
        let parts = &conversation.turns[before].parts;
        let is_alone = conversation.turns[call.turn].parts.len() == 1;
        if is_alone && parts.iter().all(|part| matches!(part.content, Content::Reasoning { .. })) {
            dropped.extend((0..parts.len()).map(|part| PartPosition { turn: before, part }));
        }
    }
    dropped
}

/// Whether the results of a turn's calls follow the turn as the provider requires.
fn has_valid_results(
    conversation: &Conversation<'_>,
    turn: usize,
    answers: &[NewResult],
    is_kept: &impl Fn(usize) -> bool,
) -> bool {
    let mut expected = BTreeSet::new();
    for answer in answers {
        match answer {
            NewResult::Moved(place) => expected.insert(*place),
            NewResult::Absent { .. } => return false,
        };
    }
    let in_one_turn = conversation.order.turns_of_results == ResultTurns::SingleTurn;
    let turns = (turn + 1..conversation.turns.len()).filter(|turn| is_kept(*turn));
    for next in turns {
        for part in 0..conversation.turns[next].parts.len() {
            if expected.is_empty() {
                return !in_one_turn;
            }
            if !expected.remove(&PartPosition { turn: next, part }) {
                return false;
            }
        }
        if expected.is_empty() {
            return true;
        }
        if in_one_turn {
            return false;
        }
    }
    expected.is_empty()
}
