//! Detects values that a backend already cut, from traces of the cut. (EN-3)

use serde_json::Value;

use crate::marker::{before_ellipsis, ends_in_marker};

/// What is known about one value: its maximum size, its true size, and its markers of a cut.
///
/// All sizes are optional. Even a rule without sizes detects markers and incomplete UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldRule {
    /// The backend keeps at most this many UTF-8 bytes. A value of this size was probably cut.
    pub max_bytes: Option<u64>,
    /// The backend keeps at most this many Unicode characters.
    pub max_chars: Option<u64>,
    /// The backend returns at most this many items of a list.
    pub max_items: Option<u64>,
    /// The declared size of the value in UTF-8 bytes. A shorter value was cut, and a value of exactly this size is
    /// whole.
    pub declared_bytes: Option<u64>,
    /// The declared number of Unicode characters of the value. The same rules apply as to `declared_bytes`.
    pub declared_chars: Option<u64>,
    /// The declared number of items of the list. The same rules apply as to `declared_bytes`.
    pub declared_items: Option<u64>,
    /// The name of the sibling member that contains the number of UTF-8 bytes of the value.
    pub bytes_in: Option<String>,
    /// The name of the sibling member that contains the number of Unicode characters of the value.
    pub chars_in: Option<String>,
    /// The name of the sibling member that contains the number of items of the list.
    pub items_in: Option<String>,
    /// Whether the list has a token for another page that the reader cannot request.
    pub has_page_token: bool,
    /// The name of the sibling member that contains such a token.
    pub page_token_in: Option<String>,
    /// Endings that mark a cut, in addition to the usual markers.
    pub markers: Vec<String>,
    /// Whether the value is certainly whole, so that nothing is detected in it.
    pub is_exact: bool,
    /// The handle under which the full value can be read.
    pub handle: Option<String>,
}

impl FieldRule {
    /// Creates a rule for a value that is certainly whole, whatever its ending.
    pub fn exact() -> Self {
        Self { is_exact: true, ..Self::default() }
    }
}

/// A value as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedValue<'a> {
    /// Bytes that should be UTF-8.
    Bytes(&'a [u8]),
    /// A text.
    Text(&'a str),
    /// A list with this many items.
    List(u64),
    /// Any other value, which cannot be cut.
    Other,
}

impl<'a> From<&'a str> for ReceivedValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for ReceivedValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Value> for ReceivedValue<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.len() as u64),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Self::Other,
        }
    }
}

/// A value that the backend cut, with its original size if known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The evidence of the cut.
    pub evidence: Evidence,
    /// UTF-8 bytes of the full value.
    pub original_bytes: Option<u64>,
    /// Unicode characters of the full value.
    pub original_chars: Option<u64>,
    /// Items of the full list.
    pub original_items: Option<u64>,
}

/// Evidence of a cut (EN-3), from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// The value is shorter than declared.
    LengthDiffers,
    /// The value ends inside a character.
    IncompleteUtf8,
    /// The value has a token for another page, which the reader cannot request.
    PageTokenWithoutPage,
    /// The value ends in a marker. Or it ends in an ellipsis, and is close to a known limit or has a longer
    /// sibling with the same beginning.
    Marker,
    /// The value has the maximum size that the backend keeps, and no declared size confirms that it is whole.
    SizeReached,
}

impl Evidence {
    /// Returns a description of the evidence that can follow a field's name.
    pub fn message(self) -> &'static str {
        match self {
            Self::LengthDiffers => "the backend returned less than it declares",
            Self::IncompleteUtf8 => "the backend cut it inside a character",
            Self::PageTokenWithoutPage => "the backend has another page, and this answer has no cursor to it",
            Self::Marker => "it ends in a marker of truncation",
            Self::SizeReached => "it is as large as the backend can keep",
        }
    }
}

/// Detects whether a backend cut a value (EN-3). Evidence is a declared length that the value does not have,
/// incomplete UTF-8, a page token without a page, a marker at the end, or a reached size limit. An ellipsis
/// is a marker only near such a limit: `Loading...` is whole.
///
/// A value of exactly its declared length is whole, whatever its ending and size. Only half a character at
/// its end, or a token for another page, is evidence against that.
///
/// Text that was decoded with replacement characters ends in one if the bytes ended inside a character.
///
/// ```
/// use endmark_envelope::{Evidence, FieldRule, detect_cut};
///
/// let rule = FieldRule { max_bytes: Some(8), ..FieldRule::default() };
/// let evidence = |text: &str| detect_cut(text, &rule).map(|cut| cut.evidence);
/// assert_eq!(evidence("Harbour"), None);
/// assert_eq!(evidence("Harbour "), Some(Evidence::SizeReached));
/// assert_eq!(evidence("Harb..."), Some(Evidence::Marker));
///
/// let whole = FieldRule { declared_bytes: Some(8), ..rule.clone() };
/// assert_eq!(detect_cut("Harbour ", &whole), None);
///
/// let half: &[u8] = b"caf\xc3";
/// assert_eq!(detect_cut(half, &rule).unwrap().evidence, Evidence::IncompleteUtf8);
/// ```
pub fn detect_cut<'a>(value: impl Into<ReceivedValue<'a>>, rule: &FieldRule) -> Option<Cut> {
    if rule.is_exact {
        return None;
    }
    let value = value.into();
    let is_over = |actual: u64, limit: Option<u64>| limit.is_some_and(|limit| actual >= limit);
    let is_short = |actual: u64, declared: Option<u64>| declared.is_some_and(|declared| actual < declared);
    // Only the exact declared size proves that a value is whole.
    let is_met = |actual: u64, declared: Option<u64>| declared == Some(actual);
    let (mut bytes, mut chars, mut items) = (0, 0, 0);
    let evidence = match value {
        ReceivedValue::Other => None,
        ReceivedValue::List(count) => {
            items = count;
            if is_short(items, rule.declared_items) {
                Some(Evidence::LengthDiffers)
            } else if rule.has_page_token {
                Some(Evidence::PageTokenWithoutPage)
            } else {
                let is_reached = is_over(items, rule.max_items) && !is_met(items, rule.declared_items);
                is_reached.then_some(Evidence::SizeReached)
            }
        }
        ReceivedValue::Text(_) | ReceivedValue::Bytes(_) => {
            let (text, received, is_incomplete) = valid_part(value);
            bytes = received;
            let has_lengths = rule.max_chars.is_some() || rule.declared_chars.is_some();
            chars = if has_lengths { text.chars().count() as u64 } else { 0 };
            let is_near = || {
                is_over(bytes + MAX_WORD_BYTES, rule.max_bytes.or(rule.declared_bytes))
                    || is_over(chars + MAX_WORD_BYTES, rule.max_chars.or(rule.declared_chars))
            };
            if is_short(bytes, rule.declared_bytes) || is_short(chars, rule.declared_chars) {
                Some(Evidence::LengthDiffers)
            } else if is_incomplete || text.ends_with(char::REPLACEMENT_CHARACTER) {
                Some(Evidence::IncompleteUtf8)
            } else if is_met(bytes, rule.declared_bytes) || is_met(chars, rule.declared_chars) {
                None
            } else if ends_in_marker(text, &rule.markers) || (before_ellipsis(text).is_some() && is_near()) {
                Some(Evidence::Marker)
            } else {
                let is_reached = is_over(bytes, rule.max_bytes) || is_over(chars, rule.max_chars);
                is_reached.then_some(Evidence::SizeReached)
            }
        }
    };
    // If a value is longer than declared, the declared size is not that of its original.
    let original = |declared: Option<u64>, actual: u64| declared.filter(|declared| *declared >= actual);
    evidence.map(|evidence| Cut {
        evidence,
        original_bytes: original(rule.declared_bytes, bytes),
        original_chars: original(rule.declared_chars, chars),
        original_items: original(rule.declared_items, items),
    })
}

/// The maximum distance from its limit in bytes of a value that a backend cut between words. The backend adds
/// an ellipsis to such a value.
const MAX_WORD_BYTES: u64 = 24;

/// Returns the valid text at the beginning of a value, the value's length in bytes, and whether it ends
/// inside a character.
fn valid_part(value: ReceivedValue<'_>) -> (&str, u64, bool) {
    match value {
        ReceivedValue::Text(text) => (text, text.len() as u64, false),
        ReceivedValue::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) => (text, bytes.len() as u64, false),
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                // An invalid sequence in the middle is not a cut, so only the end counts.
                let is_incomplete =
                    bytes.utf8_chunks().last().is_some_and(|chunk| is_incomplete_character(chunk.invalid()));
                (str::from_utf8(valid).unwrap_or_default(), bytes.len() as u64, is_incomplete)
            }
        },
        ReceivedValue::List(_) | ReceivedValue::Other => ("", 0, false),
    }
}

/// Returns whether these last bytes are an incomplete character.
fn is_incomplete_character(invalid: &[u8]) -> bool {
    str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests;
