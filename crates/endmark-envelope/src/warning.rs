//! What a reader should know although the command went on.

use serde::Serialize;

/// Something a reader should know although the command went on (EN-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable word for programs, in capitals.
    pub code: String,
    /// What kind of thing happened.
    pub kind: WarningKind,
    /// One sentence for people.
    pub message: String,
}

impl Warning {
    /// A warning that no data is missing behind.
    pub fn notice(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), kind: WarningKind::Notice, message: message.into() }
    }

    /// A warning that something is missing from the data; it sets `meta.truncated`.
    pub fn truncation(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), kind: WarningKind::Truncation, message: message.into() }
    }
}

/// What kind of thing a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WarningKind {
    /// Something in the data was shortened or is missing.
    Truncation,
    /// Anything else worth knowing.
    Notice,
}
