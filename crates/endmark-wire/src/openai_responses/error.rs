//! Errors of Responses: in a body, in an event of their own, or in a response that failed.

use crate::error::ProviderError;
use crate::json::{Value, quoted};
use crate::openai_chat::read_error_field;

/// The error in a body, or in an event of a stream.
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

/// What an object says of an error, whatever of it is there.
fn said(error: Value<'_>) -> ProviderError {
    ProviderError {
        message: error.word("message").unwrap_or_else(|| "the response failed".to_owned()),
        kind: error.word("type").filter(|kind| kind != "error"),
        code: error.word_or_number("code"),
    }
}

/// The event that ends a stream: the error as the format has it, and once more where client libraries look
/// for one in a stream of any kind.
pub(super) fn event(kind: &str, message: &str, rest: &str) -> String {
    let (kind, message) = (quoted(kind), quoted(message));
    format!(
        "{{\"type\":\"error\",\"code\":{kind},\"message\":{message},\"param\":null,\
         \"error\":{{\"type\":{kind},\"code\":{kind},\"message\":{message},\"param\":null}}{rest}}}"
    )
}
