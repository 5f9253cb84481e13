//! Why a command did not answer with yes.

use serde::Serialize;

/// Why a command did not end well: the `error` of an envelope (EN-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorBody {
    /// A stable word for programs, such as `truncated` or `unknown_key`.
    pub code: String,
    /// The exit code of the process that answers with this.
    pub exit_code: u8,
    /// What happened, for people: a lowercase fragment without a final period.
    pub message: String,
    /// What to do next: full sentences, most useful first.
    pub hints: Vec<String>,
}

impl ErrorBody {
    /// An error without hints.
    pub fn new(code: impl Into<String>, exit_code: u8, message: impl Into<String>) -> Self {
        Self { code: code.into(), exit_code, message: message.into(), hints: Vec::new() }
    }

    /// The same error with one more hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}
