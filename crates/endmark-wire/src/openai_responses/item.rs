//! An output item: a message, a call, or anything else.

use crate::json::{Kind, Value};

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A message, of parts.
    Message,
    /// A call of a function.
    Call,
    /// A call of another kind, which the client has to answer too.
    OtherCall,
    /// The model's reasoning.
    Reasoning,
    /// Anything else, as what a tool that the server runs found.
    Other,
}

impl Item {
    /// What this item is.
    pub(super) fn of(item: Value<'_>) -> Self {
        match item.word("type").as_deref() {
            Some("message") => Self::Message,
            Some("function_call") => Self::Call,
            Some("reasoning") => Self::Reasoning,
            Some(
                "custom_tool_call" | "local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call",
            ) => Self::OtherCall,
            _ => Self::Other,
        }
    }
}

/// The texts of a message's parts, in order.
pub(super) fn texts(item: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let parts = item.field("content").into_iter().flat_map(Value::items);
    parts.filter_map(text_of)
}

/// The text of a part.
pub(super) fn text_of(part: Value<'_>) -> Option<Value<'_>> {
    part.field("text").filter(|text| text.kind() == Kind::String && part.says("type", "output_text"))
}

/// The words of a part that refuses.
pub(super) fn refusal_of(part: Value<'_>) -> Option<String> {
    part.word("refusal").filter(|_| part.says("type", "refusal"))
}
