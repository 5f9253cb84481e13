//! The error of a command.

use serde::{Deserialize, Serialize};

use crate::FieldPath;

/// The code of an error about a value over its declared limit (EN-4).
pub const FIELD_TOO_LARGE: &str = "FIELD_TOO_LARGE";

/// The code of an error about an answer that cannot be shortened to its limit (EN-5).
pub const RESPONSE_TOO_LARGE: &str = "RESPONSE_TOO_LARGE";

/// The exit code of invalid usage or input: nothing was done.
const INVALID_INPUT: u8 = 2;

/// The exit code of a bug.
pub(crate) const BUG: u8 = 70;

/// The `error` of an envelope: why a command failed.
///
/// All eight members are always present. Those that do not apply are null.
///
/// ```
/// use endmark_envelope::{ErrorBody, Phase};
///
/// let error = ErrorBody::new("not_found", 1, "there is no issue 7").with_hint("`list` shows them.");
/// assert_eq!(error.phase, Phase::Execution);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// A stable word for programs, such as `truncated` or `FIELD_TOO_LARGE`.
    pub code: String,
    /// The exit code of the process with this error.
    pub exit_code: u8,
    /// The phase in which the command failed.
    pub phase: Phase,
    /// The reason for people: a lower-case fragment without a final period.
    pub message: String,
    /// The input field that it is about.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub field: Option<FieldPath>,
    /// The limit of the field, in the unit of the code or message.
    pub limit: Option<u64>,
    /// The actual size of the field, in the same unit.
    pub actual: Option<u64>,
    /// What to do next, in full sentences.
    pub hint: Option<String>,
}

/// The phase in which a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The input was checked, and nothing was done yet.
    Validation,
    /// The work had begun, and may be partly done.
    Execution,
    /// The work was done, and the answer failed.
    Output,
}

impl ErrorBody {
    /// Makes an error without a field or a hint.
    ///
    /// Exit code 2 means that nothing was done: its phase is validation. With any other code it is execution. Exit
    /// code 0 is not an error: it is mistaken for a bug of the caller, 70.
    pub fn new(code: impl Into<String>, exit_code: u8, message: impl Into<String>) -> Self {
        let exit_code = Self::non_zero(exit_code);
        Self {
            code: code.into(),
            exit_code,
            phase: if exit_code == INVALID_INPUT { Phase::Validation } else { Phase::Execution },
            message: message.into(),
            field: None,
            limit: None,
            actual: None,
            hint: None,
        }
    }

    /// Returns the exit code. 0 is replaced by the exit code of a bug.
    pub(crate) fn non_zero(exit_code: u8) -> u8 {
        if exit_code == 0 { BUG } else { exit_code }
    }

    /// Makes the error of a value over its limit: exit code 2, before anything is written (EN-4).
    ///
    /// ```
    /// use endmark_envelope::{ErrorBody, FieldPath};
    ///
    /// let error = ErrorBody::field_too_large(FieldPath::root().key("title"), 255, 500, "bytes");
    /// assert_eq!((error.code.as_str(), error.exit_code), ("FIELD_TOO_LARGE", 2));
    /// assert_eq!(error.message, "`title` has 500 bytes, at most 255");
    /// ```
    pub fn field_too_large(field: FieldPath, limit: u64, actual: u64, unit: &str) -> Self {
        let message = format!("`{field}` has {actual} {unit}, at most {limit}");
        Self {
            field: Some(field),
            limit: Some(limit),
            actual: Some(actual),
            ..Self::new(FIELD_TOO_LARGE, INVALID_INPUT, message)
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Sets the phase.
    #[must_use]
    pub fn in_phase(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    /// Sets the field.
    #[must_use]
    pub fn about(self, field: FieldPath) -> Self {
        Self { field: Some(field), ..self }
    }
}
