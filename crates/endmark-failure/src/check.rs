//! Results of setup checks. A failed check has a hint.

use serde::Serialize;

use crate::error::CommandError;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// The name of the check.
    pub name: String,
    /// Whether the check passed.
    #[serde(rename = "ok")]
    pub is_ok: bool,
    /// The finding.
    pub message: String,
    /// How to fix the problem.
    pub hint: Option<String>,
}

impl Check {
    /// Returns a check that passed.
    pub fn passed(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), is_ok: true, message: message.into(), hint: None }
    }

    /// Returns a check that failed.
    pub fn failed(name: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name: name.into(), is_ok: false, message: message.into(), hint: Some(hint.into()) }
    }

    /// Returns a failed check with the message and hint of an error.
    pub fn from_error(name: impl Into<String>, error: &CommandError) -> Self {
        let body = error.body();
        Self { name: name.into(), is_ok: false, message: body.message, hint: body.hint }
    }
}
