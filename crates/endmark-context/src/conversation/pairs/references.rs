//! References to items that the provider stored.
//!
//! Such an item may be a call. Therefore a result without a visible call belongs to the references before it.
//! Reasoning among the references belongs to the call after it.

use std::collections::HashMap;

use super::PartPosition;
use crate::conversation::{Content, Conversation, Part, Role, Turn};

/// Prefixes of OpenAI's ids for items that are not calls.
const NON_CALL_ID_PREFIXES: [&str; 2] = ["msg_", "rs_"];

/// Consecutive turns of the model, at least one of which contains a reference, and the results of their
/// calls.
#[derive(Debug, Default)]
struct ReferenceGroup {
    turns: Vec<usize>,
    has_reference: bool,
    may_contain_call: bool,
}

/// Returns the groups of turns that belong together, and removes their results from `orphans`.
pub(super) fn reference_groups(
    conversation: &Conversation<'_>,
    orphans: &mut Vec<PartPosition>,
) -> Vec<Vec<usize>> {
    let mut waiting = orphans.iter().copied().peekable();
    let mut steps: Vec<ReferenceGroup> = Vec::new();
    let mut left = Vec::new();
    let mut has_more = false;
    // The last group with a reference, and the last group with a reference that may be a call.
    let (mut last_reference, mut last_call) = (None, None);
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (position, turn) in conversation.turns.iter().enumerate() {
        if turn.role == Role::Assistant && turn.parts.iter().all(|part| part.result().is_none()) {
            if !has_more {
                steps.push(ReferenceGroup::default());
            }
            has_more = true;
            let current = steps.len() - 1;
            let step = &mut steps[current];
            step.turns.push(position);
            step.has_reference |= references(turn).next().is_some();
            by_id.extend(references(turn).map(|id| (id, current)));
            step.may_contain_call |=
                references(turn).any(|id| !NON_CALL_ID_PREFIXES.iter().any(|begins| id.starts_with(begins)));
            last_reference = if step.has_reference { Some(current) } else { last_reference };
            last_call = if step.may_contain_call { Some(current) } else { last_call };
            continue;
        }
        has_more = false;
        while let Some(place) = waiting.next_if(|place| place.turn <= position) {
            let result = turn.parts.get(place.part).and_then(Part::result);
            // The result of an approval refers to the item itself. The result of a call refers to the call
            // inside the item.
            let named = result.and_then(|result| by_id.get(result.call_id.as_deref()?)).copied();
            match named.or(last_call).or(last_reference) {
                Some(step) if steps[step].turns.last() != Some(&position) => steps[step].turns.push(position),
                Some(_) => {}
                None => left.push(place),
            }
        }
    }
    left.extend(waiting);
    *orphans = left;
    steps.into_iter().filter(|step| step.has_reference).map(|step| step.turns).collect()
}

fn references<'t>(turn: &'t Turn<'_>) -> impl Iterator<Item = &'t str> {
    turn.parts.iter().filter_map(|part| match &part.content {
        Content::Reference { id } => Some(id.as_ref()),
        _ => None,
    })
}
