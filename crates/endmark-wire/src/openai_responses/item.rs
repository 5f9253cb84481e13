//! An output item: a message, a call, or anything else.

use crate::json::{Kind, Value};

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// A message, which consists of parts.
    Message,
    /// A call of a function, or of a custom tool, which accepts free text.
    Call,
    /// Another kind of call that the client must answer.
    OtherCall,
    /// The model's reasoning.
    Reasoning,
    /// Anything else, such as the results of a tool that the server runs.
    Other,
}

impl ItemKind {
    /// Returns the kind of this item.
    pub(super) fn classify(item: Value<'_>) -> Self {
        match item.non_empty_text("type").as_deref() {
            Some("message") => Self::Message,
            Some("function_call" | CUSTOM_CALL) => Self::Call,
            Some("reasoning") => Self::Reasoning,
            Some("local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call") => Self::OtherCall,
            _ => Self::Other,
        }
    }
}

const CUSTOM_CALL: &str = "custom_tool_call";

/// How a call is written: the arguments of a function are JSON, and the input of a custom tool is free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallForm {
    /// The type of the call's item.
    pub(super) kind: &'static str,
    /// The name of the field with the arguments.
    pub(super) field: &'static str,
    /// The prefix of the names of the events that contain the arguments.
    pub(super) event: &'static str,
    /// The prefix of the items' ids.
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

    /// Returns the form of an item that is a call.
    pub(super) fn from_item(item: Value<'_>) -> Self {
        Self::from_free_text(item.has_text("type", CUSTOM_CALL))
    }

    /// Returns the form of a call with free text or with JSON arguments.
    pub(super) fn from_free_text(free_text: bool) -> Self {
        if free_text { Self::CUSTOM } else { Self::FUNCTION }
    }

    /// Returns whether the arguments are free text.
    pub(super) fn is_free_text(self) -> bool {
        self == Self::CUSTOM
    }
}

/// Returns whether an item is a web search, which is billed. Opening a page from the results is not billed.
pub(super) fn is_web_search(item: Value<'_>) -> bool {
    let action = item.field("action").and_then(|action| action.non_empty_text("type"));
    item.has_text("type", "web_search_call") && action.is_none_or(|action| action == "search")
}

/// Returns the texts of a message's parts, in order.
pub(super) fn texts(item: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let parts = item.field("content").into_iter().flat_map(Value::items);
    parts.filter_map(part_text)
}

/// Returns the text of a part.
pub(super) fn part_text(part: Value<'_>) -> Option<Value<'_>> {
    part.field("text").filter(|text| text.kind() == Kind::String && part.has_text("type", "output_text"))
}

/// Returns the text of a refusal part.
pub(super) fn part_refusal(part: Value<'_>) -> Option<String> {
    part.non_empty_text("refusal").filter(|_| part.has_text("type", "refusal"))
}
