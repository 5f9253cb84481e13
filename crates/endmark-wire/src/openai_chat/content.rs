//! The content of a message: a string, or parts of which some are text.

use crate::json::{Decoded, Fields, Kind, Value};

/// A message's text, and whether it has exactly the characters that were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    /// False if half a surrogate pair became U+FFFD.
    pub(super) exact: bool,
}

impl From<Decoded<'_>> for Text {
    fn from(decoded: Decoded<'_>) -> Self {
        Self { text: decoded.text.into_owned(), exact: decoded.exact }
    }
}

/// Returns the text of a `content` value, ignoring parts of other types. Returns `None` for null and other kinds.
pub(super) fn content_text(content: Value<'_>) -> Option<Text> {
    match content.kind() {
        Kind::String => content.decode().map(Text::from),
        Kind::Array => {
            let mut whole = Text { text: String::new(), exact: true };
            for part in text_parts(content).filter_map(Value::decode) {
                whole.text.push_str(&part.text);
                whole.exact &= part.exact;
            }
            Some(whole)
        }
        Kind::Object | Kind::Number | Kind::Bool | Kind::Null => None,
    }
}

/// Returns whether a message or delta has content that no request can contain: generated images, or the results of
/// server tools.
pub(super) fn has_other_content(message: &Fields<'_>) -> bool {
    ["images", "executed_tools"].into_iter().any(|name| message.non_empty(name).is_some())
}

/// Returns the strings of the text parts of a `content` array.
pub(super) fn text_parts(content: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    content
        .items()
        .filter(|part| part.has_text("type", "text"))
        .filter_map(|part| part.field("text"))
        .filter(|text| text.kind() == Kind::String)
}
