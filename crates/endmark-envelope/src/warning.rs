//! Warnings: information for the reader of a successful answer.

use serde::{Deserialize, Serialize};

use crate::FieldPath;

/// The code of a warning about a value that is incomplete (EN-2).
pub const FIELD_TRUNCATED: &str = "FIELD_TRUNCATED";

/// The code of the single warning about all incomplete values whose own warnings do not fit (EN-5).
pub const MORE_TRUNCATED: &str = "MORE_TRUNCATED";

/// Information for the reader of a successful answer.
///
/// Sizes are those of the value itself, without the marker that Endmark adds. A shortened text is
/// `original[..returned_bytes]` plus the marker, so its rest begins at `returned_bytes`.
///
/// ```
/// use endmark_envelope::{FieldPath, Size, Warning};
///
/// let warning = Warning::field_truncated(FieldPath::data().key("body"), Size::of("Hé"), "the backend cut it")
///     .with_original_bytes(500);
/// assert_eq!(
///     serde_json::to_string(&warning)?,
///     r#"{"code":"FIELD_TRUNCATED","kind":"TRUNCATION","message":"the backend cut it","field":"data.body","returned_bytes":3,"truncated_length":2,"original_bytes":500}"#
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// A stable word for programs, in capitals.
    pub code: String,
    /// The kind of the warning.
    pub kind: WarningKind,
    /// One sentence for people, without the field's name.
    pub message: String,
    /// The value that is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub field: Option<FieldPath>,
    /// The returned UTF-8 bytes; for a list, the bytes of its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned_bytes: Option<u64>,
    /// The returned Unicode characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_length: Option<u64>,
    /// The original UTF-8 bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_bytes: Option<u64>,
    /// The original Unicode characters, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_length: Option<u64>,
    /// The handle under which the full value can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WarningKind {
    /// Data is shortened or missing.
    Truncation,
    /// Any other notice.
    Notice,
}

/// The length of a text, in both units of EN-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Size {
    /// UTF-8 bytes.
    pub bytes: u64,
    /// Unicode characters.
    pub chars: u64,
}

impl Size {
    /// Returns the size of a text.
    pub fn of(text: &str) -> Self {
        Self { bytes: text.len() as u64, chars: text.chars().count() as u64 }
    }
}

impl Warning {
    /// Creates a warning that does not mean missing data.
    pub fn notice(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(code, WarningKind::Notice, message)
    }

    /// Creates a warning about missing data, which sets `meta.truncated`.
    pub fn truncation(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(code, WarningKind::Truncation, message)
    }

    /// Creates a warning that this field is incomplete, with its returned size (EN-2).
    pub fn field_truncated(field: FieldPath, returned: Size, message: impl Into<String>) -> Self {
        Self {
            field: Some(field),
            returned_bytes: Some(returned.bytes),
            truncated_length: Some(returned.chars),
            ..Self::truncation(FIELD_TRUNCATED, message)
        }
    }

    fn new(code: impl Into<String>, kind: WarningKind, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            kind,
            message: message.into(),
            field: None,
            returned_bytes: None,
            truncated_length: None,
            original_bytes: None,
            original_length: None,
            handle: None,
        }
    }

    /// Returns the field that this warning reports as incomplete, or `None` for any other warning.
    pub(crate) fn truncated_field(&self) -> Option<&FieldPath> {
        let is_own = self.kind == WarningKind::Truncation && self.code != MORE_TRUNCATED;
        self.field.as_ref().filter(|_| is_own)
    }

    /// Sets the original size.
    #[must_use]
    pub fn with_original(self, original: Size) -> Self {
        self.with_original_bytes(original.bytes).with_original_length(original.chars)
    }

    /// Sets the original UTF-8 bytes.
    #[must_use]
    pub fn with_original_bytes(self, bytes: u64) -> Self {
        Self { original_bytes: Some(bytes), ..self }
    }

    /// Sets the original Unicode characters.
    #[must_use]
    pub fn with_original_length(self, characters: u64) -> Self {
        Self { original_length: Some(characters), ..self }
    }

    /// Sets the handle under which the full value can be read.
    #[must_use]
    pub fn with_handle(self, handle: impl Into<String>) -> Self {
        Self { handle: Some(handle.into()), ..self }
    }
}
