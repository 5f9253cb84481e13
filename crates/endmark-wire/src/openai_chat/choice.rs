//! A choice in Chat Completions: an item of `choices`.

use super::content::{content_text, has_other_content};
use super::finish::read_finish;
use super::tool_call::CallView;
use crate::json::{Fields, Kind, Value};
use crate::reply::{Choice, ToolCall};

impl Choice {
    /// Returns the finish reason of this choice when it is complete: `tool_calls`, `function_call` or `stop`.
    pub fn normal_finish_reason(&self) -> &'static str {
        match self.tool_calls.first() {
            Some(call) if call.legacy => "function_call",
            Some(_) => "tool_calls",
            None => "stop",
        }
    }
}

/// Reads an item of a response's `choices`.
pub(super) fn read_choice(value: Value<'_>, position: u32, has_stop: bool) -> Choice {
    let value = Fields::new(value);
    let mut choice = Choice::new(choice_index(&value, position));
    if let Some(message) = value.get("message").map(Fields::new) {
        if let Some(content) = message.get("content").and_then(content_text) {
            choice.text = content.text;
            choice.exact &= content.is_exact;
        }
        // No request can contain audio of the assistant.
        choice.is_mendable &= message.non_empty("audio").is_none();
        choice.has_unrequestable_part = has_other_content(&message);
        choice.ends_in_unshown_part = choice.has_unrequestable_part && choice.text.trim().is_empty();
        for (number, call) in (0..).zip(CallView::message_calls(&message)) {
            if !call.is_readable {
                choice.note_unshowable();
                continue;
            }
            choice.ends_in_unshown_part = false;
            let (arguments, exact) = call.arguments_text();
            choice.exact &= exact;
            choice.tool_calls.push(ToolCall {
                index: number,
                id: call.id,
                name: call.name.unwrap_or_default(),
                arguments,
                legacy: call.legacy,
                free_text: call.free_text,
                ..ToolCall::default()
            });
        }
        let (reasoning, refusal) = (message_reasoning(&message), non_empty_text(&message, "refusal"));
        [&reasoning, &refusal].into_iter().flatten().for_each(|text| choice.written.add(text));
        (choice.has_reasoning, choice.is_refused) = (reasoning.is_some(), refusal.is_some());
    }
    // A message does not state the order, but models write text before calls.
    choice.last_call_at = choice.text.len();
    choice.note_written();
    choice.end(read_finish(&value, choice.index, has_stop, choice.is_refused));
    choice
}

/// Returns the `index` of a choice, or its position if it has none.
pub(super) fn choice_index(choice: &Fields<'_>, position: u32) -> u32 {
    let stated = choice.get("index").and_then(Value::as_u64);
    stated.and_then(|index| u32::try_from(index).ok()).unwrap_or(position)
}

/// Returns the reasoning in a message or delta, under any of the names that servers use.
pub(super) fn message_reasoning(message: &Fields<'_>) -> Option<String> {
    let thinking = || {
        let parts = message.get("content").filter(|content| content.kind() == Kind::Array)?.items();
        let mut thinking = parts.filter(|part| part.has_text("type", "thinking"));
        thinking
            .next()
            .map(|part| part.at("thinking[0].text").and_then(Value::text).unwrap_or_default().into_owned())
    };
    non_empty_text(message, "reasoning_content")
        .or_else(|| non_empty_text(message, "reasoning"))
        .or_else(thinking)
}

/// Returns a field's text, if present and not empty.
pub(super) fn non_empty_text(message: &Fields<'_>, name: &str) -> Option<String> {
    let text = message.get(name).and_then(Value::text)?;
    (!text.is_empty()).then(|| text.into_owned())
}
