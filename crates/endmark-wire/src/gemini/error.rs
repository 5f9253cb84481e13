//! Errors in the shape of Google's APIs.

use crate::error::ProviderError;
use crate::json::{Value, quote};

/// Returns the error in a body or a chunk.
pub(super) fn read(root: Value<'_>) -> Option<ProviderError> {
    let error = root.non_empty("error")?;
    Some(ProviderError {
        message: error
            .text()
            .map(std::borrow::Cow::into_owned)
            .or_else(|| error.non_empty_text("message"))
            .unwrap_or_else(|| error.raw().to_owned()),
        kind: error.non_empty_text("status"),
        code: error.text_or_number("code"),
    })
}

/// Returns the JSON field `error`. Its `status` is Google's name for the HTTP status, and `kind` is the
/// reason in its details.
pub(super) fn field(status: u16, kind: &str, message: &str) -> String {
    format!(
        "\"error\":{{\"code\":{status},\"message\":{},\"status\":{},\"details\":[{{\
         \"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":{},\"domain\":\"endmark\"}}]}}",
        quote(message),
        quote(status_name(status)),
        quote(kind)
    )
}

fn status_name(status: u16) -> &'static str {
    match status {
        400 | 411 | 413 | 415 | 422 | 431 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        502 | 503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}
