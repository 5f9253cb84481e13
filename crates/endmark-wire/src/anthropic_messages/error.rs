//! Errors in Anthropic's shape.

use crate::error::ProviderError;
use crate::json::{Value, quote};

/// Returns the error in a body or an event. Some servers omit `"type":"error"`.
pub(super) fn read(root: Value<'_>) -> Option<ProviderError> {
    let error = root.non_empty("error")?;
    Some(ProviderError {
        message: error
            .text()
            .map(std::borrow::Cow::into_owned)
            .or_else(|| error.non_empty_text("message"))
            .unwrap_or_else(|| error.raw().to_owned()),
        kind: error.non_empty_text("type"),
        code: error.text_or_number("code"),
    })
}

/// Returns the fields of an error object.
pub(super) fn fields(kind: &str, message: &str) -> String {
    format!("\"type\":\"error\",\"error\":{{\"type\":{},\"message\":{}}}", quote(kind), quote(message))
}
