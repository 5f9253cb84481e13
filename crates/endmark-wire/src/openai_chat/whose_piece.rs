//! Which call of a stream a piece belongs to.

use super::tool_call::CallView;
use crate::json::{Kind, Value};
use crate::reply::{Place, Received, ToolCall};

/// The number of the call that a piece of this choice belongs to, of those that are known or of another; and where that one's pieces
/// go, if it begins here. `ends` is whether the choice ends with the piece.
///
/// An index names a call, but for servers that number all of theirs alike. Without one, an id or a name begins the next call,
/// and anything else goes on with the last.
pub(super) fn whose(piece: &CallView<'_>, choice: u32, known: &Received, ends: bool) -> (u32, Option<Place>) {
    let next = || known.next_call(choice);
    let Some(index) = piece.index else {
        return match known.choice_at(choice).and_then(|choice| choice.tool_calls.last()) {
            Some(last) if !begins_next(piece, last) => (last.index, None),
            _ => (next(), Some(Place::Untold)),
        };
    };
    match known.call_sent_as(choice, index) {
        Some(call) if begins_another(piece, call, ends) => (next(), Some(Place::Shared(index))),
        Some(call) => (call.index, None),
        // A call that shared its index with others was given this one here.
        None if known.call_at(choice, index).is_some() => (next(), Some(Place::Shared(index))),
        None => (index, Some(Place::Number)),
    }
}

/// Whether a piece without an index is of another call than the last; one that says the same id again is not.
fn begins_next(piece: &CallView<'_>, last: &ToolCall) -> bool {
    let is_told_again = piece.id.is_some() && piece.id == last.id;
    !is_told_again && (piece.id.is_some() || piece.name.is_some())
}

/// Whether a piece begins a call though another one has its index. Some servers say a call's name in every piece of it, and a
/// new id, too (older vLLM): then a name is of another call only where it is another, or the arguments have come to their end.
fn begins_another(piece: &CallView<'_>, known: &ToolCall, ends: bool) -> bool {
    let Some(name) = piece.name.as_ref().filter(|_| !known.name.is_empty()) else { return false };
    let has_both_ids = piece.id.is_some() && known.id.is_some();
    if has_both_ids && piece.id == known.id {
        return false;
    }
    let has_arguments = || !piece.arguments_text().0.trim().is_empty();
    *name != known.name || (is_whole(&known.arguments) && (has_arguments() || (has_both_ids && !ends)))
}

fn is_whole(arguments: &str) -> bool {
    // Mostly they are not, and so need not be read.
    arguments.trim_end().ends_with('}')
        && Value::parse_str(arguments).is_ok_and(|value| value.kind() == Kind::Object)
}
