//! A part of a reply that may be cut, and the tool calls that may follow it.

use std::sync::{Arc, OnceLock};

use endmark_recovery::{Ending, Judgement, Reply, Stop, Validate};
use endmark_text::Format;
use endmark_wire::reply::{Continuation, ToolCall};

use super::expected_answer::{are_same_calls, continues, is_json};
use super::mend::{JudgedPart, format_fault, judgement};
use super::schema::Schema;
use crate::reply::{ReplyPart, Slot};

/// A part of a reply as it was received.
pub(crate) struct Suspect {
    pub(crate) slot: Slot,
    /// The text of the part, including a beginning that the client wrote.
    pub(crate) reply: Reply,
    pub(crate) required_format: Option<Format>,
    pub(crate) schema: Option<Schema>,
    /// Whether the server reported the part as complete, and no required grammar could contradict that.
    pub(crate) is_proved_whole: bool,
    /// The text and the tool calls that precede a tool call in the message.
    pub(crate) before: PrecedingContent,
    /// Why no request can continue the part. `None` if one can.
    pub(crate) obstacle: Option<&'static str>,
    /// Whether the provider reports that the context window is full after this part.
    pub(crate) reached_window: bool,
    /// Whether the part is a tool call, and no other part of the message followed.
    pub(crate) is_last_call: bool,
    /// The tool calls of an earlier response, starting with this one.
    pub(crate) offered_calls: Option<LaterCalls>,
    /// The provider's own continuation token for a text.
    pub(crate) continuation: Option<Continuation>,
    /// The verdict, once computed.
    pub(crate) judgement: OnceLock<JudgedPart>,
}

impl Suspect {
    /// Whether the part needs neither recovery nor disclosure.
    pub(crate) fn needs_no_action(&self) -> bool {
        match judgement(self) {
            Judgement::Passed => true,
            Judgement::Whole { disclosed } => {
                let is_valid = |schema: &Schema| schema.validate(&self.reply.text).is_empty();
                !disclosed && format_fault(self).is_none() && self.schema.as_ref().is_none_or(is_valid)
            }
            Judgement::Cut(_) => false,
        }
    }
}

impl Suspect {
    /// Uses this tool call from the response that completed an earlier one, if that response also repeats the
    /// tool calls between them. That saves a request.
    pub(crate) fn take_repeated_call(&mut self, answered: &CallsAfter) {
        let ReplyPart::ToolCall(call) = &self.slot.part else { return };
        let Some(at) = self.before.received_calls().iter().position(|own| own.index == answered.call) else {
            return;
        };
        let between = self.before.calls().get(at + 1..).unwrap_or_default();
        let Some((same, rest)) = answered.later_calls.calls.split_at_checked(between.len()) else { return };
        let is_this_call = |own: &ToolCall| {
            own.name == call.name && continues(&self.reply.text, &own.arguments) && is_json(&own.arguments)
        };
        if are_same_calls(between, same) && !call.free_text && rest.first().is_some_and(is_this_call) {
            self.offered_calls = Some(LaterCalls { calls: rest.to_vec(), ..answered.later_calls });
        }
    }
}

/// The tool calls that followed the requested one in a response.
#[derive(Debug)]
pub(crate) struct CallsAfter {
    /// The index of the requested tool call.
    pub(crate) call: u32,
    pub(crate) later_calls: LaterCalls,
}

/// The text and the tool calls that precede a tool call in a message. All parts of the message share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrecedingContent {
    message: Arc<(String, Vec<ToolCall>)>,
    call_count: usize,
    /// The tool calls, including those that were recovered later.
    joined_calls: Option<Vec<ToolCall>>,
}

impl PrecedingContent {
    /// Creates the content from the message's text and the first `call_count` of its tool calls.
    pub(crate) fn new(message: Arc<(String, Vec<ToolCall>)>, call_count: usize) -> Self {
        Self { message, call_count, joined_calls: None }
    }

    /// Records recovered tool calls, because a request must show them as the client has them.
    pub(crate) fn set_recovered_calls(&mut self, whole: &[ToolCall]) {
        if whole.is_empty() {
            return;
        }
        let own =
            |call: &ToolCall| whole.iter().find(|whole| whole.index == call.index).unwrap_or(call).clone();
        self.joined_calls = Some(self.received_calls().iter().map(own).collect());
    }

    pub(crate) fn text(&self) -> &str {
        &self.message.0
    }

    /// Returns the tool calls as a request shows them.
    pub(crate) fn calls(&self) -> &[ToolCall] {
        self.joined_calls.as_deref().unwrap_or_else(|| self.received_calls())
    }

    /// Returns the tool calls as they were received.
    pub(crate) fn received_calls(&self) -> &[ToolCall] {
        self.message.1.get(..self.call_count).unwrap_or(&self.message.1)
    }
}

/// Tool calls that arrived instead of the rest of a text, or after a repeated tool call.
#[derive(Debug, Clone)]
pub(crate) struct LaterCalls {
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) ending: Ending,
    pub(crate) stop: Option<Stop>,
    /// Whether the text before these tool calls was in fact the beginning of one.
    pub(crate) replaces_text: bool,
}

impl LaterCalls {
    /// Returns the tool calls after the first one, if they show what the model wanted next. This requires
    /// that there are any, or that the model ended the response by itself.
    pub(crate) fn skip_first(&self) -> Option<Self> {
        let calls = self.calls.get(1..)?.to_vec();
        let is_ended = self.ending == Ending::Clean && self.stop == Some(Stop::Normal);
        (is_ended || !calls.is_empty()).then_some(Self { calls, ..*self })
    }
}

/// Obstacle: the text contains half a surrogate pair, so a request could only show a different text. See
/// [`Choice::exact`](endmark_wire::reply::Choice::exact).
pub(crate) const HALF_SURROGATE: &str = "it contains half a surrogate pair, which no request can represent";

/// Obstacle: there is other content in the text or next to it. See
/// [`Choice::mendable`](endmark_wire::reply::Choice::mendable) and
/// [`Choice::has_unrequestable_part`](endmark_wire::reply::Choice::has_unrequestable_part).
pub(crate) const UNREPRESENTABLE_CONTENT: &str = "it contains more than text and function calls, ends in reasoning, or was not read completely, so no request can represent it";

/// Obstacle: the server stopped the reply because it repeated itself. See
/// [`Meaning::Repetition`](endmark_wire::finish_reasons::Meaning::Repetition).
pub(crate) const REPETITION: &str =
    "the upstream stopped it because it repeated itself, and a continuation would repeat it further";

/// Obstacle: the upstream returned more choices than requested. It is unknown who pays for them.
pub(crate) const SURPLUS_CHOICES: &str = "the upstream returned more choices than requested";

/// Obstacle: the text follows a tool call. See
/// [`Choice::text_after_calls`](endmark_wire::reply::Choice::text_after_calls).
pub(crate) const TEXT_AFTER_CALLS: &str = "it follows a call whose result the model would need first";

/// Whether the server invented the arguments of a reply's last call. A format in which arguments are an object cannot
/// represent a cut. The server invented them if the reply reached its limit and the complete arguments violate the
/// function's schema.
pub(crate) fn has_invented_arguments(reply: &Reply, schema: Option<&Schema>) -> bool {
    let arguments = if reply.text.is_empty() { "{}" } else { &reply.text };
    reply.is_at_limit() && schema.is_some_and(|schema| schema.is_violated_by(arguments))
}
