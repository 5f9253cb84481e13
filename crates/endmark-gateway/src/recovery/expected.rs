//! What is known beforehand of the answer to a further call.

use endmark_core::{AskedFrom, Format};
use endmark_store::Purpose;
use endmark_wire::reply::{Choice, ToolCall};
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
    /// Where an answer that repeats nothing is taken to go on; none where it is no continuation.
    pub(super) from: Option<AskedFrom>,
    /// Whether an answer goes on from the joined text to the byte, behind what it repeats of it.
    pub(super) exact: bool,
    /// Nothing is handed on before all of the answer is there.
    pub(super) closed: bool,
    /// The tool call that the answer goes on with; none where the part is text.
    pub(super) call: Option<ExpectedCall<'a>>,
}

/// The cut call whose arguments an answer is to have.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedCall<'a> {
    /// The function that it calls.
    pub(super) name: &'a str,
    /// The calls before it, which an answer with calls repeats.
    pub(super) before: &'a [ToolCall],
    /// The arguments were asked for as text. Otherwise text is what the model has to say, and no arguments.
    pub(super) as_text: bool,
}

impl Expected<'_> {
    /// What of an answer belongs to the part: its text, or the arguments of the call that is gone on with. Nothing
    /// where it calls another function, or stands behind other calls: what the model wants by now is another thing.
    pub(super) fn part<'a>(&self, choice: &'a Choice) -> &'a str {
        let Some(expected) = &self.call else { return &choice.text };
        if choice.tool_calls.is_empty() {
            return if expected.as_text { &choice.text } else { "" };
        }
        expected.found_in(&choice.tool_calls).map_or("", |(call, _)| &call.arguments)
    }
}

impl ExpectedCall<'_> {
    /// The call among those of an answer, and those behind it.
    pub(super) fn found_in<'a>(&self, calls: &'a [ToolCall]) -> Option<(&'a ToolCall, &'a [ToolCall])> {
        let (before, rest) = calls.split_at_checked(self.before.len())?;
        let (call, behind) = rest.split_first()?;
        (call.name == self.name && are_same(self.before, before)).then_some((call, behind))
    }
}

/// Whether these are the same calls, whatever their ids and the whitespace in their arguments.
fn are_same(some: &[ToolCall], others: &[ToolCall]) -> bool {
    some.iter().zip(others).all(|(one, other)| {
        one.name == other.name
            && (one.arguments == other.arguments || is_same_value(&one.arguments, &other.arguments))
    })
}

fn is_same_value(one: &str, other: &str) -> bool {
    let value =
        |text: &str| serde_json::from_str::<Value>(if text.trim().is_empty() { "{}" } else { text }).ok();
    value(one).is_some_and(|one| Some(one) == value(other))
}
