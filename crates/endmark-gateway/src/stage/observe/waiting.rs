//! Holds a tool call whose arguments arrived at once until the next event. If it has no arguments or violates
//! the function's schema, the server may have parsed only part of a cut tool call.

use endmark_wire::reply::{Event, Piece, Received};

use crate::exchange::Exchange;

/// The choices whose last event was a tool call that must wait.
#[derive(Debug, Default)]
pub(super) struct WaitingChoices(Vec<u32>);

impl WaitingChoices {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Processes the next event. Returns whether it must also wait.
    pub(super) fn process_event(&mut self, exchange: &Exchange, received: &Received, event: &Event) -> bool {
        let ends = |choice: &u32| event.finishes.iter().any(|finish| finish.choice == *choice);
        let continues = |choice: &u32| event.pieces.iter().any(|delta| delta.choice == *choice);
        self.0.retain(|choice| !ends(choice) && !continues(choice));
        for (position, delta) in event.pieces.iter().enumerate() {
            let behind = event.pieces.get(position + 1..).unwrap_or_default();
            let is_last = !ends(&delta.choice) && behind.iter().all(|later| later.choice != delta.choice);
            if is_last && is_doubtful(exchange, received, delta.choice, &delta.piece) {
                self.0.push(delta.choice);
            }
        }
        !self.is_empty()
    }
}

/// Whether a piece is a tool call that would count as cut if the reply had reached its limit.
fn is_doubtful(exchange: &Exchange, received: &Received, choice: u32, piece: &Piece) -> bool {
    let Piece::ToolCall { index, .. } = piece else { return false };
    let Some(call) = received.call_at(choice, *index) else { return false };
    let is_empty = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(&call.arguments)
        .map_or(call.arguments.is_empty(), |arguments| arguments.is_empty());
    is_empty || exchange.tool_schema(&call.name).is_some_and(|schema| schema.is_violated_by(&call.arguments))
}
