//! Tokens of a whole request, in any of the formats: what the model is given to read of it.
//!
//! The formats differ in where a text stands, not in that it is one. So every text below the fields that a model reads is
//! counted; names, ids, signatures and settings are not.

use endmark_text::replace_lone_surrogates;
use serde_json::Value;

use super::image::{Dimensions, dimensions};
use super::{Count, Family};

/// The fields of a request that a model reads, in all formats.
const READ_FIELDS: &[&str] =
    &["messages", "contents", "input", "system", "instructions", "systemInstruction", "system_instruction"];
/// What it offers the model: counted as it is written, since the provider shows it in some form of its own.
const OFFER_FIELDS: &[&str] = &["tools", "functions", "response_format", "responseSchema"];
/// Values that no model reads, or that are opaque.
const UNREAD_FIELDS: &[&str] = &[
    "cache_control",
    "call_id",
    "encrypted_content",
    "file_id",
    "id",
    "media_type",
    "mimeType",
    "mime_type",
    "role",
    "signature",
    "status",
    "thoughtSignature",
    "thought_signature",
    "tool_call_id",
    "tool_use_id",
    "type",
];
/// Values that are shown to the model as JSON: arguments and results of tools.
const JSON_FIELDS: &[&str] = &["args", "input", "response", "arguments"];
/// What frames a message, and the reply that is to come: OpenAI's figures, near enough for the others.
const FRAME_TOKENS: u64 = 3;
const MESSAGE_TOKENS: u64 = 4;
/// An image of which nothing is known but its address.
const USUAL_IMAGE: Dimensions = Dimensions { width: 1_024, height: 1_024 };

/// A body that is no request and no list of messages.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON.
    #[error("the conversation is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON of another kind.
    #[error("a request, or a list of its messages, was expected")]
    NoConversation,
}

/// Tokens of a request's body, or of a bare list of messages, for this model. It is an estimate: what a provider puts
/// around messages and tools is not published.
///
/// ```
/// use endmark_context::count::request;
/// let body = r#"{"model":"gpt-5","messages":[{"role":"user","content":"Keep the work whole."}]}"#;
/// let counted = request(body, "gpt-5")?;
/// assert_eq!((counted.tokens, counted.exact), (5 + 4 + 3, false));
/// # Ok::<(), endmark_context::count::Unreadable>(())
/// ```
pub fn request(body: &str, model: &str) -> Result<Count, Unreadable> {
    let family = Family::of(model);
    let body: Value = serde_json::from_str(&replace_lone_surrogates(body))?;
    let read = match &body {
        Value::Array(_) => read(&body, family),
        Value::Object(fields) => {
            let known = |names: &[&str], name: &String| names.contains(&name.as_str());
            if !fields.keys().any(|name| known(READ_FIELDS, name)) {
                return Err(Unreadable::NoConversation);
            }
            let conversation = fields.iter().filter(|(name, _)| known(READ_FIELDS, name));
            let offers = fields.iter().filter(|(name, _)| known(OFFER_FIELDS, name));
            conversation.map(|(_, value)| read(value, family)).sum::<u64>()
                + offers.map(|(_, value)| family.tokens(&value.to_string())).sum::<u64>()
        }
        _ => return Err(Unreadable::NoConversation),
    };
    Ok(Count { tokens: read.saturating_add(FRAME_TOKENS), exact: false })
}

/// Tokens of all texts and images in a value.
fn read(value: &Value, family: Family) -> u64 {
    match value {
        Value::String(text) => text_or_image(text, family),
        Value::Array(items) => items.iter().map(|item| read(item, family)).sum(),
        Value::Object(fields) => {
            if let Some(image) = base64_of(value) {
                return image_tokens(image, family);
            }
            let frame = if fields.contains_key("role") { MESSAGE_TOKENS } else { 0 };
            let fields = fields.iter().filter(|(name, _)| !UNREAD_FIELDS.contains(&name.as_str()));
            let tokens = fields.map(|(name, value)| match value {
                Value::Object(_) if JSON_FIELDS.contains(&name.as_str()) => family.tokens(&value.to_string()),
                value => read(value, family),
            });
            frame + tokens.sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The base64 text of an image that an object holds, in Anthropic's and in Google's words.
fn base64_of(value: &Value) -> Option<&str> {
    let kind = ["media_type", "mimeType", "mime_type"].iter().find_map(|name| value.get(name)?.as_str())?;
    value.get("data")?.as_str().filter(|_| kind.starts_with("image/"))
}

/// OpenAI's words for an image are an address, which may be the image itself.
fn text_or_image(text: &str, family: Family) -> u64 {
    match text.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,")) {
        Some((_, image)) => image_tokens(image, family),
        None => family.tokens(text),
    }
}

fn image_tokens(base64: &str, family: Family) -> u64 {
    family.image_tokens(dimensions(base64).unwrap_or(USUAL_IMAGE))
}
