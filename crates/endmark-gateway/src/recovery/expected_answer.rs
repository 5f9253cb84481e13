//! Describes what is known in advance about the response to a further call.

use endmark_recovery::stitch::ReasoningSigns;
use endmark_recovery::{Join, PromptExcerpt};
use endmark_store::Purpose;
use endmark_text::Format;
use endmark_wire::reply::{Choice, ToolCall};
use serde::de::IgnoredAny;
use serde_json::Value;

/// How the response should begin, and how much of it may be streamed.
pub(super) struct ExpectedAnswer<'a> {
    /// The purpose of the call.
    pub(super) purpose: Purpose,
    /// The text that an upstream repeats first, if it echoes a prefill.
    pub(super) echo: &'a str,
    /// The joined text so far. The response may repeat it as an echo.
    pub(super) so_far: &'a str,
    /// The grammar that determines where the part ends.
    pub(super) required_format: Option<&'a Format>,
    /// How to join a response without an echo. `None` if it is not a continuation.
    pub(super) join: Option<Join>,
    /// The excerpt that was shown, and the prompt if there was one.
    pub(super) question: (PromptExcerpt, &'a str),
    /// The markers of reasoning in the request.
    pub(super) known_markers: ReasoningSigns,
    /// Whether the response, after its echo, continues exactly at the end of the joined text.
    pub(super) is_exact: bool,
    /// Whether nothing may be forwarded before the complete response has arrived.
    pub(super) is_held_back: bool,
    /// The tool call that the response continues. `None` if the part is text.
    pub(super) call: Option<ExpectedCall<'a>>,
}

/// The content of a response that continues the cut part.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerPart<'a> {
    /// The text, or the arguments.
    pub(super) text: &'a str,
    /// The tool call that contains the arguments, unless they arrived as text.
    pub(super) call: Option<&'a ToolCall>,
    /// The tool calls after the part.
    pub(super) calls_after: &'a [ToolCall],
}

/// A cut tool call whose arguments the response should contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedCall<'a> {
    /// The name of the called function.
    pub(super) name: &'a str,
    /// The preceding tool calls, which a response may repeat.
    pub(super) before: &'a [ToolCall],
    /// The preceding tool calls as received. A tool call that was recovered later may be repeated.
    pub(super) received: &'a [ToolCall],
    /// Whether the arguments were requested as text. If not, text in the response is a message of the model.
    pub(super) is_text: bool,
}

impl ExpectedAnswer<'_> {
    /// Returns the content that belongs to the part: the response's text, or the arguments of the continued
    /// tool call and the tool calls after it. Returns nothing if the response calls another function, or if
    /// it contains other tool calls first. In both cases the model does not continue the part.
    pub(super) fn part<'a>(&self, choice: &'a Choice) -> AnswerPart<'a> {
        let text = || AnswerPart { text: &choice.text, call: None, calls_after: &choice.tool_calls };
        let Some(expected) = &self.call else { return text() };
        if expected.is_text && (choice.tool_calls.is_empty() || self.completes(&choice.text)) {
            return text();
        }
        let found = expected.find_after_repeated(&choice.tool_calls);
        let found = found.or_else(|| expected.find_without_repeated(&choice.tool_calls, self.so_far));
        let Some((call, behind)) = found else {
            return AnswerPart { text: "", call: None, calls_after: &[] };
        };
        AnswerPart { text: &call.arguments, call: Some(call), calls_after: behind }
    }

    /// Like `part`, for a response that is still arriving. Returns only text that later bytes cannot change.
    pub(super) fn part_so_far<'a>(&self, choice: &'a Choice) -> &'a str {
        let Some(expected) = &self.call else { return &choice.text };
        // Only the end of the response shows whether text before tool calls belongs to the arguments.
        if expected.is_text && (choice.tool_calls.is_empty() || !choice.text.trim().is_empty()) {
            return &choice.text;
        }
        expected.find_after_repeated(&choice.tool_calls).map_or("", |(call, _)| &call.arguments)
    }

    /// Whether this text is the missing part of a cut tool call's arguments, or all of the arguments. It may
    /// be in a code fence.
    fn completes(&self, text: &str) -> bool {
        let rest = if self.echo.is_empty() { text } else { text.strip_prefix(self.echo).unwrap_or(text) };
        let rest = inside_fence(rest).unwrap_or(rest);
        let is_all = continues(self.so_far, rest) && is_json(rest);
        !rest.trim().is_empty() && (is_all || is_json(&[self.so_far, rest].concat()))
    }
}

impl ExpectedCall<'_> {
    /// Returns the tool call that follows the repeated earlier ones in a response, and the tool calls after
    /// it.
    fn find_after_repeated<'a>(&self, calls: &'a [ToolCall]) -> Option<(&'a ToolCall, &'a [ToolCall])> {
        let (before, rest) = calls.split_at_checked(self.before.len())?;
        let (call, behind) = rest.split_first()?;
        (call.name == self.name && are_same_calls(self.before, before)).then_some((call, behind))
    }

    /// Like `find_after_repeated`, for a response that does not repeat the earlier tool calls, because the
    /// model has seen them. If the response has several tool calls, the model may have repeated all of them
    /// instead.
    fn find_without_repeated<'a>(
        &self,
        calls: &'a [ToolCall],
        so_far: &str,
    ) -> Option<(&'a ToolCall, &'a [ToolCall])> {
        let (call, behind) = calls.split_first()?;
        let own = self.received.iter().filter(|own| own.name == call.name);
        let is_repeated = own.clone().any(|own| is_same_call(own, call));
        let is_distinguished =
            !so_far.trim().is_empty() && !own.clone().any(|own| continues(so_far, &own.arguments));
        // A received tool call was already delivered. A response that repeats it is a different turn, and the
        // client would execute the tool call twice.
        let repeats_delivered_call =
            behind.iter().any(|call| self.received.iter().any(|own| is_same_call(own, call)));
        let is_cut_call = call.name == self.name
            && !is_repeated
            && !repeats_delivered_call
            && continues(so_far, &call.arguments);
        (is_cut_call && (behind.is_empty() || is_distinguished)).then_some((call, behind))
    }
}

/// Whether these tool calls are equal, ignoring ids and white space in the arguments.
pub(super) fn are_same_calls(some: &[ToolCall], others: &[ToolCall]) -> bool {
    some.iter().zip(others).all(|(one, other)| is_same_call(one, other))
}

fn is_same_call(one: &ToolCall, other: &ToolCall) -> bool {
    one.name == other.name
        && (one.arguments == other.arguments || is_same_value(&one.arguments, &other.arguments))
}

/// Returns the content of a text that consists of one code block.
fn inside_fence(text: &str) -> Option<&str> {
    const FENCE: &str = "```";
    let (_, inside) = text.trim().strip_prefix(FENCE)?.split_once('\n')?;
    inside.strip_suffix(FENCE).filter(|inside| !inside.contains(FENCE))
}

/// Whether `arguments` begins with `so_far`, ignoring white space.
pub(super) fn continues(so_far: &str, arguments: &str) -> bool {
    let characters = |text: &'_ str| text.chars().filter(|sign| !sign.is_whitespace()).collect::<String>();
    characters(arguments).starts_with(&characters(so_far))
}

pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether two argument texts are equal, ignoring white space. An empty text equals an empty object.
pub(super) fn is_same_value(one: &str, other: &str) -> bool {
    let value =
        |text: &str| serde_json::from_str::<Value>(if text.trim().is_empty() { "{}" } else { text }).ok();
    value(one).is_some_and(|one| Some(one) == value(other))
}
