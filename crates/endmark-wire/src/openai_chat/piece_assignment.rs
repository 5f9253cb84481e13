//! Assigns the pieces of a stream to tool calls.

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::tool_call::CallView;
use crate::json::{Kind, Value};
use crate::reply::{PieceKey, Received, ToolCall};

/// The call that a piece belongs to.
pub(super) struct Owner {
    /// The number of its call.
    pub(super) call: u32,
    /// The place of the call's pieces, if the call begins here.
    pub(super) begins_at: Option<PieceKey>,
    /// Whether the piece may as well belong to another call.
    pub(super) is_uncertain: bool,
}

/// The relation of a piece to the call with its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Same,
    OtherCall,
    /// The piece belongs to the same call or another one.
    Uncertain,
}

/// Returns the call that a piece of this choice belongs to, either a known or a new one.
///
/// `ends` is whether the choice ends with the piece. `names_once` is whether this server is known to send a call's id
/// and name only at its beginning.
///
/// An index identifies a call, except if a server gives all calls the same index. Without an index, an id or a name
/// begins the next call, and anything else continues the last one.
pub(super) fn piece_owner(
    piece: &CallView<'_>,
    choice: u32,
    known: &Received,
    ends: bool,
    names_once: bool,
) -> Owner {
    let of = |call, begins_at| Owner { call, begins_at, is_uncertain: false };
    let next = |place| of(known.next_call(choice), Some(place));
    let Some(index) = piece.index else {
        return match known.choice_at(choice).and_then(|choice| choice.tool_calls.last()) {
            Some(last) if !begins_next(piece, last) => of(last.index, None),
            _ => next(PieceKey::Unreported),
        };
    };
    match known.call_sent_as(choice, index) {
        Some(call) => match relation(piece, call, ends, names_once) {
            Relation::OtherCall => next(PieceKey::Shared(index)),
            Relation::Same => of(call.index, None),
            Relation::Uncertain => Owner { is_uncertain: true, ..of(call.index, None) },
        },
        // This number was assigned here to a call that shared its index with others.
        None if known.call_at(choice, index).is_some() => next(PieceKey::Shared(index)),
        None => of(index, Some(PieceKey::Number)),
    }
}

/// Returns whether a piece without an index belongs to another call than the last. A piece that repeats the last id
/// does not.
fn begins_next(piece: &CallView<'_>, last: &ToolCall) -> bool {
    let is_told_again = piece.id.is_some() && piece.id == last.id;
    !is_told_again && (piece.id.is_some() || piece.name.is_some())
}

/// Decides whether a piece begins a call although another call has its index.
///
/// Some servers (older vLLM) repeat a call's name in every piece, with a new id. In that case a name begins another
/// call only if it differs, or if the known arguments are complete or cannot continue with this piece.
fn relation(piece: &CallView<'_>, known: &ToolCall, ends: bool, names_once: bool) -> Relation {
    let Some(name) = piece.name.as_ref().filter(|_| !known.name.is_empty()) else { return Relation::Same };
    let has_both_ids = piece.id.is_some() && known.id.is_some();
    if has_both_ids && piece.id == known.id {
        return Relation::Same;
    }
    let arguments = piece.arguments_text().0;
    let is_blank = arguments.trim().is_empty();
    let begins = *name != known.name
        || (has_both_ids && names_once)
        || (is_whole(&known.arguments) && (!is_blank || (has_both_ids && !ends)));
    if begins {
        return Relation::OtherCall;
    }
    let may_begin = arguments.trim_start().starts_with('{') || (is_blank && !ends);
    if !has_both_ids || known.arguments.trim().is_empty() || !may_begin {
        Relation::Same
    } else if is_blank || can_continue_with(&known.arguments, &arguments) {
        Relation::Uncertain
    } else {
        Relation::OtherCall
    }
}

/// Returns whether arguments and the next piece together are a valid beginning of JSON.
fn can_continue_with(arguments: &str, next: &str) -> bool {
    let mut detector = Detector::new(&Format::Json);
    detector.push(arguments.as_bytes());
    detector.push(next.as_bytes());
    !matches!(detector.verdict(), Verdict::Malformed { .. })
}

/// Returns whether arguments are a complete JSON object. Free text is not.
fn is_whole(arguments: &str) -> bool {
    // A cheap check first: mostly they are incomplete, and need not be parsed.
    arguments.trim_end().ends_with('}')
        && Value::parse_str(arguments).is_ok_and(|value| value.kind() == Kind::Object)
}
