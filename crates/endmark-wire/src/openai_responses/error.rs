//! Errors of Responses: in a body, in an event of their own, or in a failed response.

use crate::error::ProviderError;
use crate::json::{Value, quoted};
use crate::openai_chat::read_error_field;

/// Returns the error in a body, or in an event of a stream.
pub(super) fn read(root: Value<'_>) -> Option<ProviderError> {
    if let Some(error) = read_error_field(root) {
        return Some(error);
    }
    if root.says("type", "error") {
        return Some(said(root));
    }
    let response = root.field("response").filter(|response| response.says("status", "failed"))?;
    Some(response.filled("error").map_or_else(|| said(response), said))
}

/// Reads an error from an object, however incomplete it is.
fn said(error: Value<'_>) -> ProviderError {
    ProviderError {
        message: error.word("message").unwrap_or_else(|| "the response failed".to_owned()),
        kind: error.word("type").filter(|kind| kind != "error"),
        code: error.word_or_number("code"),
    }
}

/// Returns the event that ends a stream. It has the error in this format, and again in the field where client
/// libraries look for errors in any stream.
pub(super) fn event(kind: &str, message: &str, rest: &str) -> String {
    let (kind, message) = (quoted(kind), quoted(message));
    format!(
        "{{\"type\":\"error\",\"code\":{kind},\"message\":{message},\"param\":null,\
         \"error\":{{\"type\":{kind},\"code\":{kind},\"message\":{message},\"param\":null}}{rest}}}"
    )
}
