//! A part of a reply that may be cut, and the calls that may follow it.

use std::sync::{Arc, OnceLock};

use endmark_recovery::{Ending, Judgement, Reply, Stop, Validate};
use endmark_text::Format;
use endmark_wire::reply::{Continuation, ToolCall};

use super::expected::{are_same, continues, is_json};
use super::mend::{JudgedPart, form_fault, judgement};
use super::schema::Schema;
use crate::reply::{Part, Slot};

/// A part of a reply as it was received.
pub(crate) struct Suspect {
    pub(crate) slot: Slot,
    /// The text of the part, including a beginning that the client wrote.
    pub(crate) reply: Reply,
    pub(crate) required_format: Option<Format>,
    pub(crate) schema: Option<Schema>,
    /// Whether the server reported the part as complete, and no required grammar could contradict that.
    pub(crate) is_proved: bool,
    /// The text and calls that precede a tool call in the message.
    pub(crate) before: PrecedingCalls,
    /// Why no request can continue the part. `None` if one can.
    pub(crate) obstacle: Option<&'static str>,
    /// Whether the provider reports that the context window is full after this part.
    pub(crate) reached_window: bool,
    /// Whether the part is a call, and no other part of the message followed.
    pub(crate) is_last_call: bool,
    /// This call in the response for an earlier part, with the calls that follow it there.
    pub(crate) offered_calls: Option<LaterCalls>,
    /// The provider's own continuation token for a text.
    pub(crate) continuation: Option<Continuation>,
    /// The verdict, once computed.
    pub(crate) judgement: OnceLock<JudgedPart>,
}

impl Suspect {
    /// Whether the part needs neither recovery nor disclosure.
    pub(crate) fn needs_nothing(&self) -> bool {
        match judgement(self) {
            Judgement::Passed => true,
            Judgement::Whole { disclosed } => {
                let is_valid = |schema: &Schema| schema.validate(&self.reply.text).is_empty();
                !disclosed && form_fault(self).is_none() && self.schema.as_ref().is_none_or(is_valid)
            }
            Judgement::Cut(_) => false,
        }
    }
}

impl Suspect {
    /// Takes this call from the response that completed the call `after`, if the calls there match the original ones.
    /// That saves a request.
    pub(crate) fn take_repeated_call(&mut self, answered: &CallsAfter) {
        let Part::ToolCall(call) = &self.slot.part else { return };
        let Some(at) = self.before.received_calls().iter().position(|own| own.index == answered.call) else {
            return;
        };
        let between = self.before.calls().get(at + 1..).unwrap_or_default();
        let Some((same, rest)) = answered.following.calls.split_at_checked(between.len()) else { return };
        let is_it = |own: &ToolCall| {
            own.name == call.name && continues(&self.reply.text, &own.arguments) && is_json(&own.arguments)
        };
        if are_same(between, same) && !call.free_text && rest.first().is_some_and(is_it) {
            self.offered_calls = Some(LaterCalls { calls: rest.to_vec(), ..answered.following });
        }
    }
}

/// The calls that followed the requested one in a response.
#[derive(Debug)]
pub(crate) struct CallsAfter {
    /// The number of the requested call.
    pub(crate) call: u32,
    pub(crate) following: LaterCalls,
}

/// The text and calls that precede a call in a message. All parts of the message share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrecedingCalls {
    message: Arc<(String, Vec<ToolCall>)>,
    calls: usize,
    /// The calls, including those that were recovered later.
    joined_calls: Option<Vec<ToolCall>>,
}

impl PrecedingCalls {
    /// Creates it from the message's text and the first `calls` of its calls.
    pub(crate) fn new(message: Arc<(String, Vec<ToolCall>)>, calls: usize) -> Self {
        Self { message, calls, joined_calls: None }
    }

    /// Records recovered calls, because a request must show them as the client has them.
    pub(crate) fn join(&mut self, whole: &[ToolCall]) {
        if whole.is_empty() {
            return;
        }
        let own =
            |call: &ToolCall| whole.iter().find(|whole| whole.index == call.index).unwrap_or(call).clone();
        self.joined_calls = Some(self.received_calls().iter().map(own).collect());
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.message.0
    }

    /// Returns the calls as a request shows them.
    pub(crate) fn calls(&self) -> &[ToolCall] {
        self.joined_calls.as_deref().unwrap_or_else(|| self.received_calls())
    }

    /// Returns the calls as they were received.
    pub(crate) fn received_calls(&self) -> &[ToolCall] {
        self.message.1.get(..self.calls).unwrap_or(&self.message.1)
    }
}

/// Tool calls that arrived instead of the rest of a text, or after a call that was requested again.
#[derive(Debug, Clone)]
pub(crate) struct LaterCalls {
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) ending: Ending,
    pub(crate) stop: Option<Stop>,
    /// Whether the text before these calls was actually the beginning of a call.
    pub(crate) replaces_text: bool,
}

impl LaterCalls {
    /// Returns the calls after the first one, if they show what the model wanted next. This requires further calls,
    /// or a response that ended by itself.
    pub(crate) fn skip_first(&self) -> Option<Self> {
        let calls = self.calls.get(1..)?.to_vec();
        let is_ended = self.ending == Ending::Clean && self.stop == Some(Stop::Normal);
        (is_ended || !calls.is_empty()).then_some(Self { calls, ..*self })
    }
}

/// The text contains half a surrogate pair, so a request could only show a different text. See
/// [`Choice::exact`](endmark_wire::reply::Choice::exact).
pub(crate) const HALVED: &str = "it contains half a surrogate pair, which no request can show";

/// There is other content in the text or next to it. See [`Choice::mendable`](endmark_wire::reply::Choice::mendable)
/// and [`Choice::has_unrequestable_part`](endmark_wire::reply::Choice::has_unrequestable_part).
pub(crate) const UNSHOWN: &str = "it holds more than text and calls of functions, ends in a thought, or was not read as a whole, which no request can show";

/// The server stopped the reply because it repeated itself. See
/// [`Meaning::Repetition`](endmark_wire::finish_reasons::Meaning::Repetition).
pub(crate) const REPEATED: &str =
    "the upstream stopped it because it repeated itself, and a continuation would repeat it further";

/// The upstream returned more choices than requested. It is unknown who pays for them.
pub(crate) const SURPLUS: &str = "the upstream answered more choices than were asked for";

/// The text follows a call. See [`Choice::text_after_calls`](endmark_wire::reply::Choice::text_after_calls).
pub(crate) const BEHIND_CALLS: &str = "it follows a call whose result the model would need first";

/// Whether the server invented the arguments of a reply's last call. A format in which arguments are an object cannot
/// represent a cut. The server invented them if the reply reached its limit and the complete arguments violate the
/// function's schema.
pub(crate) fn has_made_up_arguments(reply: &Reply, schema: Option<&Schema>) -> bool {
    let arguments = if reply.text.is_empty() { "{}" } else { &reply.text };
    reply.is_at_limit() && schema.is_some_and(|schema| schema.refuses(arguments))
}
