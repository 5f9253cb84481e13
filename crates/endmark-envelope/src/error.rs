//! The error of a command.

use serde::{Deserialize, Serialize};

use crate::FieldPath;

/// The code of the error for a value that exceeds its declared limit (EN-4).
pub const FIELD_TOO_LARGE: &str = "FIELD_TOO_LARGE";

/// The code of the error for an answer that cannot be shortened to its limit (EN-5).
pub const RESPONSE_TOO_LARGE: &str = "RESPONSE_TOO_LARGE";

/// The exit code for invalid usage or input. Nothing was done.
const INVALID_INPUT_EXIT_CODE: u8 = 2;

/// The exit code of a bug.
pub(crate) const BUG_EXIT_CODE: u8 = 70;

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
    /// The input field that the error concerns.
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
    /// The work had begun and may be partly done.
    Execution,
    /// The work was done, but the answer could not be returned.
    Output,
}

impl ErrorBody {
    /// Creates an error without a field or a hint.
    ///
    /// Exit code 2 means that nothing was done, so the phase is validation. With any other code the phase is
    /// execution. Exit code 0 would not be an error; it is replaced by 70, the code for a bug.
    pub fn new(code: impl Into<String>, exit_code: u8, message: impl Into<String>) -> Self {
        let exit_code = Self::non_zero(exit_code);
        Self {
            code: code.into(),
            exit_code,
            phase: if exit_code == INVALID_INPUT_EXIT_CODE { Phase::Validation } else { Phase::Execution },
            message: message.into(),
            field: None,
            limit: None,
            actual: None,
            hint: None,
        }
    }

    /// Returns the exit code, or the exit code of a bug instead of 0.
    pub(crate) fn non_zero(exit_code: u8) -> u8 {
        if exit_code == 0 { BUG_EXIT_CODE } else { exit_code }
    }

    /// Creates the error for a value that exceeds its limit. Its exit code is 2, because nothing was written
    /// (EN-4).
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
            ..Self::new(FIELD_TOO_LARGE, INVALID_INPUT_EXIT_CODE, message)
        }
    }

    /// Sets the hint on what to do next.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Sets the phase.
    #[must_use]
    pub fn in_phase(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    /// Sets the input field that the error concerns.
    #[must_use]
    pub fn about(self, field: FieldPath) -> Self {
        Self { field: Some(field), ..self }
    }
}
