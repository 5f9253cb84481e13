//! Which call of a stream a piece belongs to.

use endmark_text::detect::Detector;
use endmark_text::{Format, Verdict};

use super::tool_call::CallView;
use crate::json::{Kind, Value};
use crate::reply::{Place, Received, ToolCall};

/// Whose a piece is.
pub(super) struct Owner {
    /// The number of its call.
    pub(super) call: u32,
    /// Where that call's pieces go, if it begins here.
    pub(super) begins_at: Option<Place>,
    /// Whether it could as well be of another call.
    pub(super) is_uncertain: bool,
}

/// What a piece is to the call that has its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Same,
    Another,
    /// Either.
    Uncertain,
}

/// The call that a piece of this choice belongs to, of those that are known or another one. `ends` is whether the choice ends
/// with the piece, `names_once` whether this server is known to say a call's id and name only where that begins.
///
/// An index names a call, but for servers that number all of theirs alike. Without one, an id or a name begins the next call,
/// and anything else goes on with the last.
pub(super) fn whose(
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
            _ => next(Place::Untold),
        };
    };
    match known.call_sent_as(choice, index) {
        Some(call) => match relation(piece, call, ends, names_once) {
            Relation::Another => next(Place::Shared(index)),
            Relation::Same => of(call.index, None),
            Relation::Uncertain => Owner { is_uncertain: true, ..of(call.index, None) },
        },
        // A call that shared its index with others was given this one here.
        None if known.call_at(choice, index).is_some() => next(Place::Shared(index)),
        None => of(index, Some(Place::Number)),
    }
}

/// Whether a piece without an index is of another call than the last; one that says the same id again is not.
fn begins_next(piece: &CallView<'_>, last: &ToolCall) -> bool {
    let is_told_again = piece.id.is_some() && piece.id == last.id;
    !is_told_again && (piece.id.is_some() || piece.name.is_some())
}

/// Whether a piece begins a call though another one has its index. Some servers say a call's name in every piece of it, and a
/// new id, too (older vLLM): then a name is of another call only where it is another, or the arguments have come to their end,
/// or cannot go on like that.
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
        return Relation::Another;
    }
    let may_begin = arguments.trim_start().starts_with('{') || (is_blank && !ends);
    if !has_both_ids || known.arguments.trim().is_empty() || !may_begin {
        Relation::Same
    } else if is_blank || can_go_on_with(&known.arguments, &arguments) {
        Relation::Uncertain
    } else {
        Relation::Another
    }
}

/// Whether arguments and what comes next are JSON together, as far as they came.
fn can_go_on_with(arguments: &str, next: &str) -> bool {
    let mut detector = Detector::new(&Format::Json);
    detector.push(arguments.as_bytes());
    detector.push(next.as_bytes());
    !matches!(detector.verdict(), Verdict::Malformed { .. })
}

/// Whether arguments are a whole JSON object. Free text is not.
fn is_whole(arguments: &str) -> bool {
    // Mostly they are not, and so need not be read.
    arguments.trim_end().ends_with('}')
        && Value::parse_str(arguments).is_ok_and(|value| value.kind() == Kind::Object)
}
