//! A part of a reply under suspicion, and what its rest may turn out to be.

use std::sync::OnceLock;

use endmark_core::{Ending, Format, Reply, Stop};
use endmark_wire::reply::{Continuation, ToolCall};

use super::mend::Judged;
use super::schema::Schema;
use crate::exchange::Slot;

/// A part of a reply as it was received.
pub(crate) struct Suspect {
    pub(crate) slot: Slot,
    /// Its text, with what the client itself began it with.
    pub(crate) reply: Reply,
    pub(crate) demanded: Option<Format>,
    pub(crate) schema: Option<Schema>,
    /// The message's text before a tool call.
    pub(crate) content_before: String,
    /// The message's calls before a tool call.
    pub(crate) calls_before: Vec<ToolCall>,
    /// Why no request can go on with it, where none can.
    pub(crate) hindrance: Option<&'static str>,
    /// The provider says that the model's window is full behind it.
    pub(crate) fills_window: bool,
    /// The provider's own way to go on with a text.
    pub(crate) continuation: Option<Continuation>,
    /// What it was judged to be, once that was asked.
    pub(crate) judged: OnceLock<Judged>,
}

/// Tool calls that came where the rest of a text was asked for, or behind the call whose rest was.
#[derive(Debug)]
pub(crate) struct Following {
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) ending: Ending,
    pub(crate) stop: Option<Stop>,
    /// The text before them was the beginning of the call itself, not yet recognised as one.
    pub(crate) instead_of_text: bool,
}

/// A request could only show another text than the client has; see [`Choice::exact`](endmark_wire::reply::Choice::exact).
pub(crate) const HALVED: &str = "half a surrogate pair stands in it, which no request can show";

/// What stands next to the text, or in it; see [`Choice::mendable`](endmark_wire::reply::Choice::mendable) and
/// [`Choice::beside`](endmark_wire::reply::Choice::beside).
pub(crate) const UNSHOWN: &str = "it holds more than text and calls of functions, ends in a thought, or was not read as a whole, which no request can show";

/// What the model said behind a call; see [`Choice::behind_calls`](endmark_wire::reply::Choice::behind_calls).
pub(crate) const BEHIND_CALLS: &str =
    "it stands behind a call, of which the model would first have to know the result";

/// Whether the arguments of a reply's last call are not the model's. Where the reply reached its limit, whole arguments
/// that the function does not take are what a server made of a beginning that it could not read: in formats that have an
/// object for them it has no other way to say it.
pub(crate) fn is_made_up(reply: &Reply, schema: Option<&Schema>) -> bool {
    let arguments = if reply.text.is_empty() { "{}" } else { &reply.text };
    reply.is_at_limit() && schema.is_some_and(|schema| schema.refuses(arguments))
}
