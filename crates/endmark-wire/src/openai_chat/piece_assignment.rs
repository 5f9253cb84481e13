//! Assigns the pieces of a stream to tool calls.

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::tool_call::CallView;
use crate::json::{Kind, Value};
use crate::reply::{PieceKey, Received, ToolCall};

/// The call that a piece belongs to.
pub(super) struct PieceOwner {
    /// The number of the call.
    pub(super) call: u32,
    /// How later pieces identify the call, if it begins with this piece.
    pub(super) begins_at: Option<PieceKey>,
    /// Whether the piece may belong to another call instead.
    pub(super) is_uncertain: bool,
}

/// The relation of a piece to the known call with the same index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceRelation {
    Same,
    OtherCall,
    /// The piece may belong to this call or to another one.
    Uncertain,
}

/// Returns the known or new call that a piece of this choice belongs to.
///
/// `ends` is whether the choice ends with the piece. `names_calls_once` is whether this server is known to send
/// a call's id and name only at its beginning.
///
/// An index identifies a call, except if a server gives all calls the same index. Without an index, an id or
/// a name begins the next call, and any other piece continues the last one.
pub(super) fn piece_owner(
    piece: &CallView<'_>,
    choice: u32,
    known: &Received,
    ends: bool,
    names_calls_once: bool,
) -> PieceOwner {
    let of = |call, begins_at| PieceOwner { call, begins_at, is_uncertain: false };
    let next = |place| of(known.next_call(choice), Some(place));
    let Some(index) = piece.index else {
        return match known.choice_at(choice).and_then(|choice| choice.tool_calls.last()) {
            Some(last) if !begins_next(piece, last) => of(last.index, None),
            _ => next(PieceKey::Unreported),
        };
    };
    match known.call_sent_as(choice, index) {
        Some(call) => match relation(piece, call, ends, names_calls_once) {
            PieceRelation::OtherCall => next(PieceKey::Shared(index)),
            PieceRelation::Same => of(call.index, None),
            PieceRelation::Uncertain => PieceOwner { is_uncertain: true, ..of(call.index, None) },
        },
        // `next` already assigned this number to a call whose index other calls share.
        None if known.call_at(choice, index).is_some() => next(PieceKey::Shared(index)),
        None => of(index, Some(PieceKey::Number)),
    }
}

/// Returns whether a piece without an index begins another call. A piece that repeats the last call's id
/// continues that call.
fn begins_next(piece: &CallView<'_>, last: &ToolCall) -> bool {
    let repeats_id = piece.id.is_some() && piece.id == last.id;
    !repeats_id && (piece.id.is_some() || piece.name.is_some())
}

/// Decides whether a piece begins a new call although a known call has its index.
///
/// Some servers (older vLLM) repeat a call's name in every piece, with a new id. For such servers, a name
/// begins another call only if it differs from the known one, or if the known arguments are complete or
/// cannot continue with this piece.
fn relation(piece: &CallView<'_>, known: &ToolCall, ends: bool, names_calls_once: bool) -> PieceRelation {
    let Some(name) = piece.name.as_ref().filter(|_| !known.name.is_empty()) else {
        return PieceRelation::Same;
    };
    let has_both_ids = piece.id.is_some() && known.id.is_some();
    if has_both_ids && piece.id == known.id {
        return PieceRelation::Same;
    }
    let arguments = piece.arguments_text().0;
    let is_blank = arguments.trim().is_empty();
    let begins = *name != known.name
        || (has_both_ids && names_calls_once)
        || (is_whole(&known.arguments) && (!is_blank || (has_both_ids && !ends)));
    if begins {
        return PieceRelation::OtherCall;
    }
    let may_begin = arguments.trim_start().starts_with('{') || (is_blank && !ends);
    if !has_both_ids || known.arguments.trim().is_empty() || !may_begin {
        PieceRelation::Same
    } else if is_blank || can_continue_with(&known.arguments, &arguments) {
        PieceRelation::Uncertain
    } else {
        PieceRelation::OtherCall
    }
}

/// Returns whether the arguments, followed by the next piece, are a valid beginning of JSON.
fn can_continue_with(arguments: &str, next: &str) -> bool {
    let mut detector = Detector::new(&Format::Json);
    detector.push(arguments.as_bytes());
    detector.push(next.as_bytes());
    !matches!(detector.verdict(), Verdict::Malformed { .. })
}

/// Returns whether arguments are a complete JSON object. Free text never is.
fn is_whole(arguments: &str) -> bool {
    // Check the last character first, because most arguments are incomplete and need not be parsed.
    arguments.trim_end().ends_with('}')
        && Value::parse_str(arguments).is_ok_and(|value| value.kind() == Kind::Object)
}
