//! What a reader should know although the command went on.

use serde::{Deserialize, Serialize};

use crate::FieldPath;

/// The code of a warning about a value that is not there in full (EN-2).
pub const FIELD_TRUNCATED: &str = "FIELD_TRUNCATED";

/// The code of the one warning about all the values that are not there in full and whose own warnings do not fit (EN-5).
pub const MORE_TRUNCATED: &str = "MORE_TRUNCATED";

/// Something a reader should know although the command went on.
///
/// Sizes are of what the value really is: the marker that Endmark sets behind it is not counted. A text that
/// was shortened is `original[..returned_bytes]` and the marker, and whoever fetches the rest goes on at
/// `returned_bytes`.
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
    /// What kind of thing happened.
    pub kind: WarningKind,
    /// One sentence for people, without the field's name.
    pub message: String,
    /// The value that is not there in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub field: Option<FieldPath>,
    /// How much of it is there, in UTF-8 bytes; of a list, the bytes of its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned_bytes: Option<u64>,
    /// The same in Unicode characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_length: Option<u64>,
    /// How much there was, in UTF-8 bytes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_bytes: Option<u64>,
    /// The same in Unicode characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_length: Option<u64>,
    /// Under what name the full value can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// What kind of thing a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WarningKind {
    /// Something in the data was shortened or is missing.
    Truncation,
    /// Anything else worth knowing.
    Notice,
}

/// How long a text is, in both units of EN-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Size {
    /// UTF-8 bytes.
    pub bytes: u64,
    /// Unicode characters.
    pub chars: u64,
}

impl Size {
    /// The size of a text.
    pub fn of(text: &str) -> Self {
        Self { bytes: text.len() as u64, chars: text.chars().count() as u64 }
    }
}

impl Warning {
    /// A warning that no data is missing behind.
    pub fn notice(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(code, WarningKind::Notice, message)
    }

    /// A warning that something is missing from the data; it sets `meta.truncated`.
    pub fn truncation(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(code, WarningKind::Truncation, message)
    }

    /// A warning that this field is not there in full, but so much of it (EN-2).
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

    /// The field that it says is not there in full itself.
    pub(crate) fn truncated_field(&self) -> Option<&FieldPath> {
        let is_own = self.kind == WarningKind::Truncation && self.code != MORE_TRUNCATED;
        self.field.as_ref().filter(|_| is_own)
    }

    /// The same warning, knowing how much there was.
    #[must_use]
    pub fn with_original(self, original: Size) -> Self {
        self.with_original_bytes(original.bytes).with_original_length(original.chars)
    }

    /// The same warning, knowing how many UTF-8 bytes there were.
    #[must_use]
    pub fn with_original_bytes(self, bytes: u64) -> Self {
        Self { original_bytes: Some(bytes), ..self }
    }

    /// The same warning, knowing how many Unicode characters there were.
    #[must_use]
    pub fn with_original_length(self, characters: u64) -> Self {
        Self { original_length: Some(characters), ..self }
    }

    /// The same warning, with the name under which the full value can be read.
    #[must_use]
    pub fn with_handle(self, handle: impl Into<String>) -> Self {
        Self { handle: Some(handle.into()), ..self }
    }
}
