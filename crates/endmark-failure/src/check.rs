//! Checks of the set-up, each with what to do where it fails.

use serde::Serialize;

use crate::error::CommandError;

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// Whether all is well.
    #[serde(rename = "ok")]
    pub is_ok: bool,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Check {
    /// All is well.
    pub fn passed(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), is_ok: true, message: message.into(), hint: None }
    }

    /// Something is wrong.
    pub fn failed(name: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name: name.into(), is_ok: false, message: message.into(), hint: Some(hint.into()) }
    }

    /// Something is wrong, as an error says it.
    pub fn of_error(name: impl Into<String>, error: &CommandError) -> Self {
        let body = error.body();
        Self { name: name.into(), is_ok: false, message: body.message, hint: body.hint }
    }
}
