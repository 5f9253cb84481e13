//! Why a command did not answer with yes.

use serde::{Deserialize, Serialize};

use crate::FieldPath;

/// The code of an error about a value that is over its declared limit (EN-4).
pub const FIELD_TOO_LARGE: &str = "FIELD_TOO_LARGE";

/// The code of an error about an answer that no shortening of texts brings under the limit (EN-5).
pub const RESPONSE_TOO_LARGE: &str = "RESPONSE_TOO_LARGE";

/// The exit code of bad usage and invalid input: nothing was done.
const INVALID_INPUT: u8 = 2;

/// The exit code of a bug.
pub(crate) const BUG: u8 = 70;

/// Why a command did not end well: the `error` of an envelope.
///
/// All eight members are always there; what does not apply is null.
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
    /// The exit code of the process that answers with this.
    pub exit_code: u8,
    /// How far the command had come.
    pub phase: Phase,
    /// What happened, for people: a lowercase fragment without a final period.
    pub message: String,
    /// The field that it is about, of what was given.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub field: Option<FieldPath>,
    /// What the field may have at most; the code or the message says in what unit.
    pub limit: Option<u64>,
    /// What the field has, in the same unit.
    pub actual: Option<u64>,
    /// What to do next: full sentences.
    pub hint: Option<String>,
}

/// How far a command had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// What was given was looked at; nothing was done yet.
    Validation,
    /// It was being done; some of it may have been.
    Execution,
    /// It was done; what failed is the answer.
    Output,
}

impl ErrorBody {
    /// An error about no field, without a hint.
    ///
    /// With exit code 2, which says that nothing was done, its phase is validation, else execution. An error cannot have
    /// exit code 0: that is taken for a bug of who says so, 70.
    pub fn new(code: impl Into<String>, exit_code: u8, message: impl Into<String>) -> Self {
        let exit_code = Self::failing(exit_code);
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

    /// The exit code itself, unless it says that all is well.
    pub(crate) fn failing(exit_code: u8) -> u8 {
        if exit_code == 0 { BUG } else { exit_code }
    }

    /// A value over its limit: exit code 2, before anything is written (EN-4).
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

    /// The same error with this hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same error in this phase.
    #[must_use]
    pub fn in_phase(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    /// The same error about this field.
    #[must_use]
    pub fn about(self, field: FieldPath) -> Self {
        Self { field: Some(field), ..self }
    }
}
