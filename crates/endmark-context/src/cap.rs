//! Caps the output of tools, and reports the omitted parts (CX-5).
//!
//! [`cap`] caps a value in memory. [`Capper`] caps a value that arrives in chunks. Both give the same result.

mod capper;
mod document;
mod error_signs;
mod format;
mod json;
mod limits;
mod lines;
mod marker;
mod result_lines;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod utf16;

use endmark_envelope::{FieldPath, Warning};

pub(crate) use format::binary_format_name;
pub(crate) use json::decode_json_string as decoded_json_string;
pub(crate) use json::tape as json_tape;

pub use capper::{Capper, LARGEST_DOCUMENT_BYTES};
pub use format::{FORMATS, Format, RequestedFormat};
pub use limits::{
    DEFAULT_MAX_CHARS, DEFAULT_MAX_ITEMS, Keep, LimitError, Limits, MIN_LIMIT, READ_TOOL, ReadMethod,
    TokenCounter, Unit,
};

/// A capped value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CappedValue {
    /// The unchanged value, or the value with markers for omitted parts.
    pub text: String,
    /// The detected or declared format.
    pub format: Format,
    /// Whether anything is omitted, or is not shown because it is binary.
    pub is_cut: bool,
    /// A warning for each incomplete value (EN-2), followed by notices.
    pub warnings: Vec<Warning>,
    /// The lists and tables that lost items, and the objects that lost members.
    pub lists: Vec<ShortenedList>,
}

/// A list, a table or an object that lost items, rows or members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortenedList {
    /// Path of the list in the original value, relative to the path of that value.
    pub path: FieldPath,
    /// Number of items kept.
    pub kept: u64,
    /// Number of all items in the original.
    pub of: u64,
}

impl CappedValue {
    /// Removes the handle from the text and the warnings. Used if the full value could not be stored.
    #[must_use]
    pub fn without_handle(mut self, handle: &str) -> Self {
        for way in ReadMethod::ALL {
            self.text = self.text.replace(&marker::read_hint(handle, way), "");
        }
        self.text = self.text.replace(&format!("\"{handle}\""), "null");
        self.warnings.iter_mut().for_each(|warning| warning.handle = None);
        self
    }
}

/// Error of [`cap`] and [`Capper`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapError {
    /// The limits are too small for a marker.
    #[error(transparent)]
    Limits(#[from] LimitError),
    /// The value was requested as text, but is not UTF-8.
    #[error("the value is not UTF-8: byte {at} is invalid")]
    NotUtf8 {
        /// Position of the invalid byte, from 0.
        at: u64,
    },
}

/// Caps a value (CX-5).
///
/// The result never exceeds the limit or the input, and depends only on the input. Capping it again changes nothing.
///
/// ```
/// use endmark_context::cap::{RequestedFormat, Limits, cap};
///
/// let rows: Vec<String> = (0..11_000).map(|id| format!(r#"{{"id": {id}, "state": "{}"}}"#, if id == 7_000 { "lost" } else { "ok" })).collect();
/// let capped = cap(format!("[{}]", rows.join(", ")).as_bytes(), RequestedFormat::Auto, &Limits::default())?;
/// assert!(capped.text.contains(r#"{"id": 7000, "state": "lost"}"#));
/// assert!(capped.text.ends_with(r#", {"endmark_omitted": {"items": 10500, "of": 11000, "handle": null}}]"#));
/// assert_eq!(capped.warnings[0].message, "10,500 of 11,000 items are left out");
/// # Ok::<(), endmark_context::cap::CapError>(())
/// ```
pub fn cap(
    value: &[u8],
    requested_format: RequestedFormat,
    limits: &Limits,
) -> Result<CappedValue, CapError> {
    let mut capper = Capper::new(requested_format, limits.clone())?;
    capper.push(value)?;
    capper.finish()
}
