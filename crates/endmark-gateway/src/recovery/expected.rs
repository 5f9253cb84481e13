//! What is known beforehand of the answer to a further call.

use endmark_recovery::stitch::ReasoningSigns;
use endmark_recovery::{Join, Shown};
use endmark_store::Purpose;
use endmark_text::Format;
use endmark_wire::reply::{Choice, ToolCall};
use serde::de::IgnoredAny;
use serde_json::Value;

/// What the answer is expected to begin with, and where it may flow to.
pub(super) struct Expected<'a> {
    /// Why the call is made.
    pub(super) purpose: Purpose,
    /// What a prefill repeats before it goes on, if it repeats anything.
    pub(super) echo: &'a str,
    /// The joined text so far, which an echoed continuation goes on from.
    pub(super) so_far: &'a str,
    /// The grammar that says where to stop handing on.
    pub(super) demanded: Option<&'a Format>,
    /// How an answer that repeats nothing is joined; none where it is no continuation.
    pub(super) join: Option<Join>,
    /// How much of the text was shown, and the prompt, where it was asked for in words.
    pub(super) asked: (Shown, &'a str),
    /// The signs of reasoning that the request has.
    pub(super) known: ReasoningSigns,
    /// Whether an answer goes on from the joined text to the byte, behind what it repeats of it.
    pub(super) exact: bool,
    /// Nothing is handed on before all of the answer is there.
    pub(super) closed: bool,
    /// The tool call that the answer goes on with; none where the part is text.
    pub(super) call: Option<ExpectedCall<'a>>,
}

/// What an answer has of the part that it goes on with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered<'a> {
    /// The text, or the arguments.
    pub(super) text: &'a str,
    /// The call in it that has those arguments, where it has them in one.
    pub(super) call: Option<&'a ToolCall>,
    /// The calls behind that.
    pub(super) behind: &'a [ToolCall],
}

/// The cut call whose arguments an answer is to have.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedCall<'a> {
    /// The function that it calls.
    pub(super) name: &'a str,
    /// The calls before it, which an answer with calls repeats.
    pub(super) before: &'a [ToolCall],
    /// The same as they were received. One that was made whole since may be made once more.
    pub(super) received: &'a [ToolCall],
    /// The arguments were asked for as text. Otherwise text is what the model has to say, and no arguments.
    pub(super) as_text: bool,
}

impl Expected<'_> {
    /// What of an answer belongs to the part: its text, or the arguments of the call that is gone on with. Nothing
    /// where it calls another function, or stands behind other calls: what the model wants by now is another thing.
    /// What stands behind it comes with it.
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

    /// The same of an answer that is still coming, as far as nothing that may come can change it.
    pub(super) fn part_so_far<'a>(&self, choice: &'a Choice) -> &'a str {
        let Some(expected) = &self.call else { return &choice.text };
        // Whether text in front of calls is the rest of the arguments is seen when all of it is there.
        if expected.as_text && (choice.tool_calls.is_empty() || !choice.text.trim().is_empty()) {
            return &choice.text;
        }
        expected.found_in(&choice.tool_calls).map_or("", |(call, _)| &call.arguments)
    }

    /// Whether this text is what a cut call's arguments lack, or all of them, in a fence of code or without one.
    fn is_completed_by(&self, text: &str) -> bool {
        let rest = if self.echo.is_empty() { text } else { text.strip_prefix(self.echo).unwrap_or(text) };
        let rest = inside_fence(rest).unwrap_or(rest);
        let is_all = goes_on(self.so_far, rest) && is_json(rest);
        !rest.trim().is_empty() && (is_all || is_json(&[self.so_far, rest].concat()))
    }
}

impl ExpectedCall<'_> {
    /// The call among those of an answer that repeats those before it, and those behind it.
    fn found_in<'a>(&self, calls: &'a [ToolCall]) -> Option<(&'a ToolCall, &'a [ToolCall])> {
        let (before, rest) = calls.split_at_checked(self.before.len())?;
        let (call, behind) = rest.split_first()?;
        (call.name == self.name && are_same(self.before, before)).then_some((call, behind))
    }

    /// The same in an answer that repeats none of those before it: a model that sees them knows that they are made. With
    /// more calls in it, it might have made all of them anew.
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
        // A call that was received is delivered already: an answer that makes it again is another turn, and acts twice.
        let acts_twice = behind.iter().any(|call| self.received.iter().any(|own| is_same_call(own, call)));
        let is_it = call.name == self.name && !is_repeated && !acts_twice && goes_on(so_far, &call.arguments);
        (is_it && (behind.is_empty() || is_told_apart)).then_some((call, behind))
    }
}

/// Whether these are the same calls, whatever their ids and the whitespace in their arguments.
pub(super) fn are_same(some: &[ToolCall], others: &[ToolCall]) -> bool {
    some.iter().zip(others).all(|(one, other)| is_same_call(one, other))
}

fn is_same_call(one: &ToolCall, other: &ToolCall) -> bool {
    one.name == other.name
        && (one.arguments == other.arguments || is_same_value(&one.arguments, &other.arguments))
}

/// What stands in the one block of code that a text is.
fn inside_fence(text: &str) -> Option<&str> {
    const FENCE: &str = "```";
    let (_, inside) = text.trim().strip_prefix(FENCE)?.split_once('\n')?;
    inside.strip_suffix(FENCE).filter(|inside| !inside.contains(FENCE))
}

/// Whether these arguments begin with those, whatever the whitespace in them.
pub(super) fn goes_on(so_far: &str, arguments: &str) -> bool {
    let signs = |text: &'_ str| text.chars().filter(|sign| !sign.is_whitespace()).collect::<String>();
    signs(arguments).starts_with(&signs(so_far))
}

pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether these are the same arguments, whatever the whitespace in them; none at all are those of an empty object.
pub(super) fn is_same_value(one: &str, other: &str) -> bool {
    let value =
        |text: &str| serde_json::from_str::<Value>(if text.trim().is_empty() { "{}" } else { text }).ok();
    value(one).is_some_and(|one| Some(one) == value(other))
}
