//! Decides how to present a part to an upstream, and what the response must contain.

use endmark_recovery::{Join, ResumeAsk};
use endmark_store::Purpose;
use endmark_wire::ask::{Partial, ToolPrefill};
use endmark_wire::reply::ToolCall;

use super::super::expected::{ExpectedAnswer, ExpectedCall};
use super::super::suspect::Suspect;
use crate::reply::Part;

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
        known_signs: ask.known,
        exact: false,
        closed: false,
        call: expected_call(suspect),
    }
}

/// Returns the call that a response must contain, if the part is a call.
pub(super) fn expected_call(suspect: &Suspect) -> Option<ExpectedCall<'_>> {
    match &suspect.slot.part {
        Part::Text => None,
        Part::ToolCall(call) => {
            let (before, received) = (suspect.before.calls(), suspect.before.received_calls());
            Some(ExpectedCall { name: &call.name, before, received, is_text: false })
        }
    }
}

/// Returns the same as `expected_answer` for a call whose arguments were requested as text.
pub(super) fn expect_text(mut expected: ExpectedAnswer<'_>) -> ExpectedAnswer<'_> {
    if let Some(call) = &mut expected.call {
        call.is_text = true;
    }
    expected
}

/// Returns a cut call with the received arguments.
pub(super) fn call_so_far(suspect: &Suspect, so_far: &str) -> Option<ToolCall> {
    match &suspect.slot.part {
        Part::Text => None,
        Part::ToolCall(call) => Some(ToolCall { arguments: so_far.to_owned(), ..call.clone() }),
    }
}

pub(super) fn partial<'a>(suspect: &'a Suspect, so_far: &'a str, call: Option<&'a ToolCall>) -> Partial<'a> {
    let (content_before, calls_before) = (suspect.before.text(), suspect.before.calls());
    call.map_or(Partial::Text(so_far), |call| Partial::ToolCall { call, content_before, calls_before })
}

/// Decides how to present a cut tool call. If the prompt template writes calls as text, the model continues that
/// text. It would fail if the text is empty or ends in a blank. In these cases it writes the call again.
pub(super) fn tool_prefill(arguments: &str) -> ToolPrefill {
    if arguments.contains('"') && !arguments.ends_with(char::is_whitespace) {
        ToolPrefill::Hermes
    } else {
        ToolPrefill::Calls
    }
}
