//! Errors of Responses: in a body, in an error event, or in a failed response.

use crate::error::ProviderError;
use crate::json::{Value, quote};
use crate::openai_chat::read_error_field;

/// Returns the error in a body, or in an event of a stream.
pub(super) fn read(root: Value<'_>) -> Option<ProviderError> {
    if let Some(error) = read_error_field(root) {
        return Some(error);
    }
    if root.has_text("type", "error") {
        return Some(parse_error(root));
    }
    let response = root.field("response").filter(|response| response.has_text("status", "failed"))?;
    Some(response.non_empty("error").map_or_else(|| parse_error(response), parse_error))
}

/// Reads an error from an object with any subset of its fields.
fn parse_error(error: Value<'_>) -> ProviderError {
    ProviderError {
        message: error.non_empty_text("message").unwrap_or_else(|| "the response failed".to_owned()),
        kind: error.non_empty_text("type").filter(|kind| kind != "error"),
        code: error.text_or_number("code"),
    }
}

/// Returns the event that ends a stream. It contains the error in this format, and again in the field
/// `error`, in which client libraries look for errors in any stream.
pub(super) fn error_event_json(kind: &str, message: &str, rest: &str) -> String {
    let (kind, message) = (quote(kind), quote(message));
    format!(
        "{{\"type\":\"error\",\"code\":{kind},\"message\":{message},\"param\":null,\
         \"error\":{{\"type\":{kind},\"code\":{kind},\"message\":{message},\"param\":null}}{rest}}}"
    )
}
