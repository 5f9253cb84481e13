//! The content of a message: a string, or blocks of many types.

use crate::json::{Kind, Value};

/// Returns the text of a `content` value, and whether it has exactly the characters that were sent. Blocks of other
/// types are ignored.
pub(super) fn read_text(content: Value<'_>) -> (String, bool) {
    if let Some(decoded) = content.decode() {
        return (decoded.text.into_owned(), decoded.exact);
    }
    let mut whole = (String::new(), true);
    for part in text_blocks(content).filter_map(|block| block.field("text")).filter_map(Value::decode) {
        whole.0.push_str(&part.text);
        whole.1 &= part.exact;
    }
    whole
}

/// Returns the start of the last part in the text of a `content` array. This is the last text block. If a
/// document extends over several text blocks, it is the first of them.
pub(super) fn last_part(content: Value<'_>) -> usize {
    let mut parts = TextParts::default();
    let mut length = 0;
    for block in content.items() {
        let text = block.field("text").filter(|_| block.has_text("type", "text")).and_then(Value::decode);
        match text {
            Some(text) => {
                parts.note_text_block(length);
                parts.note_text(&text.text);
                length += text.text.len();
            }
            None => parts.note_other_block(),
        }
    }
    parts.last_start
}

/// Returns the position in the text of a `content` array at which the last call was made.
pub(super) fn last_call_at(content: Value<'_>) -> usize {
    let (mut length, mut at) = (0, 0);
    for block in content.items() {
        if block.has_text("type", "tool_use") {
            at = length;
        } else if block.has_text("type", "text") {
            length += block.field("text").and_then(Value::decode).map_or(0, |text| text.text.len());
        }
    }
    at
}

/// Tracks the parts of a text while its blocks arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct TextParts {
    /// The start of the last part.
    last_start: usize,
    /// Whether no text of that part has arrived.
    is_empty: bool,
    /// Whether that part is a document that may continue in the next text block.
    is_document: bool,
}

impl TextParts {
    /// Records that a text block begins after `at` bytes of text. Returns the start of the last part.
    pub(super) fn note_text_block(&mut self, at: usize) -> usize {
        if !self.is_document {
            *self = Self { last_start: at, is_empty: true, is_document: false };
        }
        self.last_start
    }

    /// Records the next characters of a text block.
    pub(super) fn note_text(&mut self, text: &str) {
        let text = text.trim_start();
        if self.is_empty && !text.is_empty() {
            self.is_empty = false;
            self.is_document = text.starts_with(['{', '[']);
        }
    }

    /// Records a block of another type. The next text block begins a new part.
    pub(super) fn note_other_block(&mut self) {
        self.is_document = false;
    }
}

/// Returns the text blocks of a `content` array that contain a string.
pub(super) fn text_blocks(content: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    content.items().filter(|block| {
        block.has_text("type", "text") && block.field("text").is_some_and(|text| text.kind() == Kind::String)
    })
}

/// Returns whether the provider cites sources for a block. The citations cover only the text of that block.
pub(super) fn is_cited(block: Value<'_>) -> bool {
    block.non_empty("citations").is_some()
}

/// Returns the blocks that call the client's tools, in order.
pub(super) fn call_blocks(content: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    content.items().filter(|block| block.has_text("type", "tool_use"))
}
