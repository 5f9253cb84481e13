//! What is known in advance about the answer to a further call.

use endmark_recovery::stitch::ReasoningSigns;
use endmark_recovery::{Join, PromptExcerpt};
use endmark_store::Purpose;
use endmark_text::Format;
use endmark_wire::reply::{Choice, ToolCall};
use serde::de::IgnoredAny;
use serde_json::Value;

/// What the answer should begin with, and how far it may stream.
pub(super) struct Expected<'a> {
    /// Why the call is made.
    pub(super) purpose: Purpose,
    /// What a prefill repeats before it continues, if it echoes.
    pub(super) echo: &'a str,
    /// The joined text so far, which an echoed continuation continues.
    pub(super) so_far: &'a str,
    /// The grammar that determines where to stop streaming.
    pub(super) demanded: Option<&'a Format>,
    /// How an answer without an echo is joined; `None` if it is not a continuation.
    pub(super) join: Option<Join>,
    /// How much of the text was shown, and the prompt, if there was one.
    pub(super) asked: (PromptExcerpt, &'a str),
    /// The signs of reasoning in the request.
    pub(super) known: ReasoningSigns,
    /// Whether an answer continues exactly at the end of the joined text, after its echo.
    pub(super) exact: bool,
    /// Nothing is passed on before the whole answer has arrived.
    pub(super) closed: bool,
    /// The tool call that the answer continues; `None` if the part is text.
    pub(super) call: Option<ExpectedCall<'a>>,
}

/// The part of an answer that continues the cut part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered<'a> {
    /// The text, or the arguments.
    pub(super) text: &'a str,
    /// The call with those arguments, if they are in one.
    pub(super) call: Option<&'a ToolCall>,
    /// The calls after that.
    pub(super) behind: &'a [ToolCall],
}

/// The cut call whose arguments an answer should have.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedCall<'a> {
    /// The function that it calls.
    pub(super) name: &'a str,
    /// The calls before it, which an answer with calls repeats.
    pub(super) before: &'a [ToolCall],
    /// The same as they were received. One that was recovered since may be made again.
    pub(super) received: &'a [ToolCall],
    /// The arguments were requested as text. Otherwise text is a message of the model, and not arguments.
    pub(super) as_text: bool,
}

impl Expected<'_> {
    /// Returns what belongs to the part: the answer's text, or the arguments of the continued call, with the calls
    /// after it. Returns nothing if it calls another function, or comes after other calls: the model then wants
    /// something else.
    pub(super) fn part<'a>(&self, choice: &'a Choice) -> Answered<'a> {
        let text = || Answered { text: &choice.text, call: None, behind: &choice.tool_calls };
        let Some(expected) = &self.call else { return text() };
        if expected.as_text && (choice.tool_calls.is_empty() || self.is_completed_by(&choice.text)) {
            return text();
        }
        let found = expected.found_in(&choice.tool_calls);
        let found = found.or_else(|| expected.found_alone_in(&choice.tool_calls, self.so_far));
        let Some((call, behind)) = found else { return Answered { text: "", call: None, behind: &[] } };
        Answered { text: &call.arguments, call: Some(call), behind }
    }

    /// As `part`, for an answer that is still arriving, as far as nothing later can change it.
    pub(super) fn part_so_far<'a>(&self, choice: &'a Choice) -> &'a str {
        let Some(expected) = &self.call else { return &choice.text };
        // Whether text before calls is the rest of the arguments is only known at its end.
        if expected.as_text && (choice.tool_calls.is_empty() || !choice.text.trim().is_empty()) {
            return &choice.text;
        }
        expected.found_in(&choice.tool_calls).map_or("", |(call, _)| &call.arguments)
    }

    /// Whether this text is the missing part of a cut call's arguments, or all of them, with or without a code fence.
    fn is_completed_by(&self, text: &str) -> bool {
        let rest = if self.echo.is_empty() { text } else { text.strip_prefix(self.echo).unwrap_or(text) };
        let rest = inside_fence(rest).unwrap_or(rest);
        let is_all = goes_on(self.so_far, rest) && is_json(rest);
        !rest.trim().is_empty() && (is_all || is_json(&[self.so_far, rest].concat()))
    }
}

impl ExpectedCall<'_> {
    /// Returns the call of an answer that comes after repeated earlier calls, and the calls after it.
    fn found_in<'a>(&self, calls: &'a [ToolCall]) -> Option<(&'a ToolCall, &'a [ToolCall])> {
        let (before, rest) = calls.split_at_checked(self.before.len())?;
        let (call, behind) = rest.split_first()?;
        (call.name == self.name && are_same(self.before, before)).then_some((call, behind))
    }

    /// As `found_in`, for an answer that repeats no earlier call: the model knows that they are made. With more
    /// calls, it might have made all of them again.
    fn found_alone_in<'a>(
        &self,
        calls: &'a [ToolCall],
        so_far: &str,
    ) -> Option<(&'a ToolCall, &'a [ToolCall])> {
        let (call, behind) = calls.split_first()?;
        let own = self.received.iter().filter(|own| own.name == call.name);
        let is_repeated = own.clone().any(|own| is_same_call(own, call));
        let is_told_apart =
            !so_far.trim().is_empty() && !own.clone().any(|own| goes_on(so_far, &own.arguments));
        // A received call is already delivered. An answer that makes it again is another turn, and would act twice.
        let acts_twice = behind.iter().any(|call| self.received.iter().any(|own| is_same_call(own, call)));
        let is_it = call.name == self.name && !is_repeated && !acts_twice && goes_on(so_far, &call.arguments);
        (is_it && (behind.is_empty() || is_told_apart)).then_some((call, behind))
    }
}

/// Whether these are the same calls, whatever their ids and the white space in their arguments.
pub(super) fn are_same(some: &[ToolCall], others: &[ToolCall]) -> bool {
    some.iter().zip(others).all(|(one, other)| is_same_call(one, other))
}

fn is_same_call(one: &ToolCall, other: &ToolCall) -> bool {
    one.name == other.name
        && (one.arguments == other.arguments || is_same_value(&one.arguments, &other.arguments))
}

/// Returns the content of a text that is one code block.
fn inside_fence(text: &str) -> Option<&str> {
    const FENCE: &str = "```";
    let (_, inside) = text.trim().strip_prefix(FENCE)?.split_once('\n')?;
    inside.strip_suffix(FENCE).filter(|inside| !inside.contains(FENCE))
}

/// Whether these arguments begin with those, whatever the white space in them.
pub(super) fn goes_on(so_far: &str, arguments: &str) -> bool {
    let signs = |text: &'_ str| text.chars().filter(|sign| !sign.is_whitespace()).collect::<String>();
    signs(arguments).starts_with(&signs(so_far))
}

pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether these are the same arguments, whatever the white space in them. Empty text equals an empty object.
pub(super) fn is_same_value(one: &str, other: &str) -> bool {
    let value =
        |text: &str| serde_json::from_str::<Value>(if text.trim().is_empty() { "{}" } else { text }).ok();
    value(one).is_some_and(|one| Some(one) == value(other))
}
