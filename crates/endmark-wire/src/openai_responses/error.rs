//! Errors of Responses: in a body, in an event of their own, or in a failed response.

use crate::error::ProviderError;
use crate::json::{Value, quote};
use crate::openai_chat::read_error_field;

/// Returns the error in a body, or in an event of a stream.
pub(super) fn read(root: Value<'_>) -> Option<ProviderError> {
    if let Some(error) = read_error_field(root) {
        return Some(error);
    }
    if root.has_text("type", "error") {
        return Some(response_items(root));
    }
    let response = root.field("response").filter(|response| response.has_text("status", "failed"))?;
    Some(response.non_empty("error").map_or_else(|| response_items(response), response_items))
}

/// Reads an error from an object, however incomplete it is.
fn response_items(error: Value<'_>) -> ProviderError {
    ProviderError {
        message: error.word("message").unwrap_or_else(|| "the response failed".to_owned()),
        kind: error.word("type").filter(|kind| kind != "error"),
        code: error.word_or_number("code"),
    }
}

/// Returns the event that ends a stream. It contains the error in this format, and also in the field where client
/// libraries look for errors in any stream.
pub(super) fn event(kind: &str, message: &str, rest: &str) -> String {
    let (kind, message) = (quote(kind), quote(message));
    format!(
        "{{\"type\":\"error\",\"code\":{kind},\"message\":{message},\"param\":null,\
         \"error\":{{\"type\":{kind},\"code\":{kind},\"message\":{message},\"param\":null}}{rest}}}"
    )
}
