//! Decides how to present a part to an upstream, and what the response must contain.

use endmark_recovery::{Join, ResumeAsk};
use endmark_store::Purpose;
use endmark_wire::ask::{Partial, ToolPrefill};
use endmark_wire::reply::ToolCall;

use super::super::expected_answer::{ExpectedAnswer, ExpectedCall};
use super::super::suspect::Suspect;
use crate::reply::ReplyPart;

pub(super) fn expected_answer<'a>(
    suspect: &'a Suspect,
    echo: &'a str,
    ask: &'a ResumeAsk,
    join: Option<Join>,
) -> ExpectedAnswer<'a> {
    ExpectedAnswer {
        purpose: Purpose::Resume,
        echo,
        so_far: &ask.so_far,
        required_format: suspect.required_format.as_ref(),
        join,
        question: (ask.shown, &ask.prompt),
        known_markers: ask.known,
        is_exact: false,
        is_held_back: false,
        call: expected_call(suspect),
    }
}

/// Returns the tool call that a response must contain, if the part is a tool call.
pub(super) fn expected_call(suspect: &Suspect) -> Option<ExpectedCall<'_>> {
    match &suspect.slot.part {
        ReplyPart::Text => None,
        ReplyPart::ToolCall(call) => {
            let (before, received) = (suspect.before.calls(), suspect.before.received_calls());
            Some(ExpectedCall { name: &call.name, before, received, is_text: false })
        }
    }
}

/// Records that the arguments of the expected tool call were requested as text.
pub(super) fn expect_text(mut expected: ExpectedAnswer<'_>) -> ExpectedAnswer<'_> {
    if let Some(call) = &mut expected.call {
        call.is_text = true;
    }
    expected
}

/// Returns a cut tool call with the received arguments.
pub(super) fn call_so_far(suspect: &Suspect, so_far: &str) -> Option<ToolCall> {
    match &suspect.slot.part {
        ReplyPart::Text => None,
        ReplyPart::ToolCall(call) => Some(ToolCall { arguments: so_far.to_owned(), ..call.clone() }),
    }
}

pub(super) fn partial_message<'a>(
    suspect: &'a Suspect,
    so_far: &'a str,
    call: Option<&'a ToolCall>,
) -> Partial<'a> {
    let (content_before, calls_before) = (suspect.before.text(), suspect.before.calls());
    call.map_or(Partial::Text(so_far), |call| Partial::ToolCall { call, content_before, calls_before })
}

/// Decides how to present a cut tool call. With `Hermes`, the prompt template writes the tool call as text,
/// and the model continues it. That fails if the arguments are empty or end in white space. In these cases,
/// the model writes the tool call again.
pub(super) fn tool_prefill(arguments: &str) -> ToolPrefill {
    if arguments.contains('"') && !arguments.ends_with(char::is_whitespace) {
        ToolPrefill::Hermes
    } else {
        ToolPrefill::Calls
    }
}
