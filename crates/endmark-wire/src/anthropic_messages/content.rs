//! The content of a message: a string, or blocks of many kinds.

use crate::json::{Kind, Value};

/// The text of a `content` value, and whether its characters are exactly those that were sent; blocks of
/// other kinds count as nothing.
pub(super) fn text_of(content: Value<'_>) -> (String, bool) {
    if let Some(decoded) = content.decoded() {
        return (decoded.text.into_owned(), decoded.exact);
    }
    let mut whole = (String::new(), true);
    for part in text_blocks(content).filter_map(|block| block.field("text")).filter_map(Value::decoded) {
        whole.0.push_str(&part.text);
        whole.1 &= part.exact;
    }
    whole
}

/// The text blocks of a `content` array that hold a string.
pub(super) fn text_blocks(content: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    content.items().filter(|block| {
        block.says("type", "text") && block.field("text").is_some_and(|text| text.kind() == Kind::String)
    })
}

/// The blocks by which the model calls the client's tools, in order.
pub(super) fn call_blocks(content: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    content.items().filter(|block| block.says("type", "tool_use"))
}
