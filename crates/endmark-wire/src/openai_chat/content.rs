//! The content of a message: a string, or a list of parts.

use crate::json::{DecodedString, Fields, Kind, Value};

/// The text of a message, and whether it has exactly the characters that were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MessageText {
    pub(super) text: String,
    /// False if half a surrogate pair became U+FFFD.
    pub(super) is_exact: bool,
}

impl From<DecodedString<'_>> for MessageText {
    fn from(decoded: DecodedString<'_>) -> Self {
        Self { text: decoded.text.into_owned(), is_exact: decoded.exact }
    }
}

/// Returns the text of a `content` value without parts of other types. Returns `None` if the value is neither
/// a string nor a list.
pub(super) fn content_text(content: Value<'_>) -> Option<MessageText> {
    match content.kind() {
        Kind::String => content.decode().map(MessageText::from),
        Kind::Array => {
            let mut whole = MessageText { text: String::new(), is_exact: true };
            for part in text_parts(content).filter_map(Value::decode) {
                whole.text.push_str(&part.text);
                whole.is_exact &= part.exact;
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
