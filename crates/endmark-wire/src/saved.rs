//! Reads a reply that was saved to a file: its format and its content, without its request.

use crate::error::ProviderError;
use crate::format::{FORMATS, WireFormat};
use crate::json::{Kind, Value};
use crate::reply::Choice;
use crate::request::RequestView;
use crate::response::Reply;

/// A saved reply.
#[derive(Debug, Clone)]
pub struct SavedReply {
    /// The format of the reply.
    pub format: &'static dyn WireFormat,
    /// The content of the reply.
    pub reply: Reply,
    /// The error that was saved with it.
    pub error: Option<ProviderError>,
}

/// Reads a reply of any format. Returns `None` for anything else, including other JSON.
///
/// A format recognises its own replies by a field and value that no other document has.
///
/// ```
/// use endmark_wire::saved::read_saved_reply;
///
/// let body = br#"{"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "length",
///     "message": {"role": "assistant", "content": "The harb"}}]}"#;
/// let saved = read_saved_reply(body).unwrap();
/// assert_eq!((saved.format.name(), saved.reply.choices[0].text.as_str()), ("openai_chat", "The harb"));
/// assert!(read_saved_reply(br#"{"choices": ["red", "blue"]}"#).is_none());
/// ```
pub fn read_saved_reply(body: &[u8]) -> Option<SavedReply> {
    let root = Value::parse_body(body).ok().filter(|root| root.kind() == Kind::Object)?;
    let written = FORMATS.into_iter().filter(|format| format.recognises(root)).find_map(|format| {
        let mut reply = format.reply(root, &RequestView::default()).ok()?;
        let error = format.read_error(root);
        if reply.choices.is_empty() && error.is_some() {
            // The request failed before any content arrived, so judge an empty choice.
            reply.choices.push(Choice::new(0));
        }
        (!reply.choices.is_empty()).then_some(SavedReply { format, reply, error })
    });
    written.or_else(|| bare_error(root))
}

/// The fields of a body that is only an error.
const ERROR_FIELDS: [&str; 9] =
    ["error", "type", "request_id", "user_id", "object", "message", "param", "code", "status"];

/// Reads a body that is a provider's error. It has a message, a type, code or status, and only fields of errors.
/// Other documents with a field `error` are ignored.
fn bare_error(root: Value<'_>) -> Option<SavedReply> {
    let field = root.field("error").filter(|error| error.kind() == Kind::Object);
    let error = field.or_else(|| root.has_text("object", "error").then_some(root))?;
    let is_stated = error.non_empty_text("message").is_some()
        && ["type", "code", "status"].iter().any(|name| error.text_or_number(name).is_some());
    let has_others = root.fields().any(|field| !ERROR_FIELDS.iter().any(|name| field.has_name(name)));
    if !is_stated || has_others {
        return None;
    }
    let name = match () {
        () if root.has_text("type", "error") => "anthropic_messages",
        () if error.field("status").is_some() => "gemini",
        () => "openai_chat",
    };
    let format = FORMATS.into_iter().find(|format| format.name() == name)?;
    let reply =
        Reply { id: None, model: String::new(), choices: vec![Choice::new(0)], usage: None, tier: None };
    Some(SavedReply { format, reply, error: Some(format.read_error(root)?) })
}
