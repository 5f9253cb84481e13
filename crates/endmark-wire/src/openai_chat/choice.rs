//! One choice of a reply, from a whole response or put together from a stream.

use super::content::text_of;
use super::finish::{Finish, read_finish};
use super::tool_call::{CallView, ToolCall};
use crate::json::{Kind, Value};

/// One choice of a reply, as far as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its number among the choices of the reply.
    pub index: u32,
    /// The text, without reasoning and refusals; empty if there is none.
    pub text: String,
    /// The tool calls, in the order in which they began.
    pub tool_calls: Vec<ToolCall>,
    /// Whether reasoning came with it.
    pub reasoned: bool,
    /// Whether the model refused, in a field of its own or by its stop reason.
    pub refused: bool,
    /// How it ended; none while it has not.
    pub finish: Option<Finish>,
    /// Whether `text` and `tool_calls` are all that was received, character for character. If not (too long
    /// to be kept, a chunk that could not be read, half a surrogate pair, a call of another tool than a
    /// function) the choice can only be passed on, and both may be empty.
    pub mendable: bool,
    /// How many bytes of text and arguments were received, kept or not.
    pub received: usize,
}

impl Choice {
    /// A choice of which nothing has come yet.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            text: String::new(),
            tool_calls: Vec::new(),
            reasoned: false,
            refused: false,
            finish: None,
            mendable: true,
            received: 0,
        }
    }

    /// The finish reason of this choice when it is whole: `tool_calls`, `function_call` or `stop`.
    pub fn normal_word(&self) -> &'static str {
        match self.tool_calls.first() {
            Some(call) if call.legacy => "function_call",
            Some(_) => "tool_calls",
            None => "stop",
        }
    }

    /// Reads an item of a response's `choices`.
    pub(super) fn read(value: Value<'_>, position: u32, has_stop: bool) -> Self {
        let mut choice = Self::new(index_of(value).unwrap_or(position));
        if let Some(message) = value.field("message") {
            if let Some(content) = message.field("content").and_then(text_of) {
                choice.text = content.text;
                choice.mendable &= content.exact;
            }
            for (number, call) in (0..).zip(CallView::all(message)) {
                let (arguments, exact) = call.arguments_text();
                choice.mendable &= exact && call.of_function;
                choice.tool_calls.push(ToolCall {
                    index: number,
                    id: call.id,
                    name: call.name.unwrap_or_default(),
                    arguments,
                    legacy: call.legacy,
                });
            }
            choice.reasoned = reasoning_of(message).is_some();
            choice.refused = said(message, "refusal").is_some();
        }
        let arguments = choice.tool_calls.iter().map(|call| call.arguments.len());
        choice.received = choice.text.len() + arguments.sum::<usize>();
        choice.end(read_finish(value, choice.index, has_stop, choice.refused));
        choice
    }

    /// Notes how the choice ended.
    pub(super) fn end(&mut self, finish: Option<Finish>) {
        if let Some(finish) = finish {
            self.refused |= finish.stop == Some(endmark_core::Stop::Refused);
            self.finish = Some(finish);
        }
    }
}

/// The number a choice names itself.
pub(super) fn index_of(choice: Value<'_>) -> Option<u32> {
    choice.field("index").and_then(Value::as_u64).and_then(|index| u32::try_from(index).ok())
}

/// The reasoning in a message or delta, under the names servers have for it.
pub(super) fn reasoning_of(message: Value<'_>) -> Option<String> {
    let thinking = || {
        let parts = message.field("content").filter(|content| content.kind() == Kind::Array)?.items();
        let mut thinking =
            parts.filter(|part| part.field("type").and_then(Value::text).as_deref() == Some("thinking"));
        thinking
            .next()
            .map(|part| part.at("thinking[0].text").and_then(Value::text).unwrap_or_default().into_owned())
    };
    said(message, "reasoning_content").or_else(|| said(message, "reasoning")).or_else(thinking)
}

/// A field's text, if it is there and not empty.
pub(super) fn said(message: Value<'_>, name: &str) -> Option<String> {
    let text = message.field(name).and_then(Value::text)?;
    (!text.is_empty()).then(|| text.into_owned())
}
