//! An output item: a message, a call, or anything else.

use crate::json::{Kind, Value};

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A message, of parts.
    Message,
    /// A call of a function, or of a custom tool, which takes free text.
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
            Some("function_call" | CUSTOM_CALL) => Self::Call,
            Some("reasoning") => Self::Reasoning,
            Some("local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call") => Self::OtherCall,
            _ => Self::Other,
        }
    }
}

const CUSTOM_CALL: &str = "custom_tool_call";

/// How a kind of call is written: a function's arguments are JSON, the input of a custom tool is free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallForm {
    /// The kind of its item.
    pub(super) kind: &'static str,
    /// The field with its arguments.
    pub(super) field: &'static str,
    /// What the names of the events with its arguments begin with.
    pub(super) event: &'static str,
    /// How the ids of its items begin.
    pub(super) id_prefix: &'static str,
}

impl CallForm {
    const FUNCTION: Self = Self {
        kind: "function_call",
        field: "arguments",
        event: "response.function_call_arguments",
        id_prefix: "fc",
    };
    const CUSTOM: Self = Self {
        kind: CUSTOM_CALL,
        field: "input",
        event: "response.custom_tool_call_input",
        id_prefix: "ctc",
    };

    /// That of an item which is a call.
    pub(super) fn of(item: Value<'_>) -> Self {
        Self::with(item.says("type", CUSTOM_CALL))
    }

    /// That of a call which takes free text, or JSON.
    pub(super) fn with(free_text: bool) -> Self {
        if free_text { Self::CUSTOM } else { Self::FUNCTION }
    }

    /// Whether the arguments are free text.
    pub(super) fn is_free_text(self) -> bool {
        self == Self::CUSTOM
    }
}

/// Whether an item is a search of the web, which is billed. Opening a page that it found is not.
pub(super) fn is_web_search(item: Value<'_>) -> bool {
    let action = item.field("action").and_then(|action| action.word("type"));
    item.says("type", "web_search_call") && action.is_none_or(|action| action == "search")
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
