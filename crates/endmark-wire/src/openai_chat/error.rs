//! Errors in OpenAI's shape, from Endmark and from providers.

use crate::error::ProviderError;
use crate::json::{Fields, Kind, Value, quote};

/// Returns an error body in OpenAI's shape, so that client libraries raise their own exceptions.
///
/// `kind` begins with `endmark_`. The message states how to resolve the error.
///
/// ```
/// use endmark_wire::openai_chat::error_body;
/// let body = error_body("the body is not JSON: send one JSON object", "endmark_invalid_request", None, Some("messages"));
/// assert_eq!(
///     String::from_utf8(body).unwrap(),
///     r#"{"error":{"message":"the body is not JSON: send one JSON object","type":"endmark_invalid_request","param":"messages","code":null}}"#
/// );
/// ```
pub fn error_body(message: &str, kind: &str, code: Option<&str>, param: Option<&str>) -> Vec<u8> {
    let or_null = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), quote);
    let (message, kind, param, code) = (quote(message), quote(kind), or_null(param), or_null(code));
    format!("{{\"error\":{{\"message\":{message},\"type\":{kind},\"param\":{param},\"code\":{code}}}}}")
        .into_bytes()
}

/// Reads an error body. Returns `None` if the bytes contain no error in this shape.
///
/// ```
/// use endmark_wire::openai_chat::read_error;
/// let error = read_error(br#"{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}"#);
/// assert_eq!(error.and_then(|error| error.code).as_deref(), Some("401"));
/// assert_eq!(read_error(b"<html>Bad Gateway</html>"), None);
/// assert_eq!(read_error(br#"{"error":{},"choices":[]}"#), None);
/// ```
pub fn read_error(body: &[u8]) -> Option<ProviderError> {
    read_error_field(Value::parse(body).ok()?)
}

/// Returns the error in an object. It is in the field `error`, as an object or as a plain message. Older vLLM sends
/// `"object":"error"` with the message next to it.
pub(crate) fn read_error_field(root: Value<'_>) -> Option<ProviderError> {
    read_error_among(root, &Fields::new(root))
}

/// Returns whether a field `error` contains an error. Some servers send an empty field in every chunk.
pub(super) fn states_error(error: &Value<'_>) -> bool {
    let is_empty = error.kind() == Kind::Object && error.fields().next().is_none();
    !error.is_blank() && !is_empty && error.as_bool() != Some(false)
}

/// Returns the error in an object whose fields were already read; see [`read_error_field`].
pub(super) fn read_error_among(root: Value<'_>, fields: &Fields<'_>) -> Option<ProviderError> {
    let is_error = || fields.get("object").and_then(Value::text).as_deref() == Some("error");
    let error = fields.get("error").filter(states_error).or_else(|| is_error().then_some(root))?;
    let message = error.text().map(std::borrow::Cow::into_owned).or_else(|| error.text_or_number("message"));
    Some(ProviderError {
        message: message.unwrap_or_else(|| error.raw().to_owned()),
        kind: error.text_or_number("type"),
        code: error.text_or_number("code"),
    })
}
