//! What a backend already cut, told by what it left behind. (EN-3)

use serde_json::Value;

use crate::marker::{before_ellipsis, ends_in_marker};

/// What is known about one value: how large it can be, how large it should be, what marks a cut.
///
/// All sizes are optional; a rule that says nothing still finds markers and incomplete UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldRule {
    /// The backend keeps at most so many UTF-8 bytes: a value of this size was probably cut.
    pub max_bytes: Option<u64>,
    /// The backend keeps at most so many Unicode characters.
    pub max_chars: Option<u64>,
    /// The backend gives at most so many items of a list.
    pub max_items: Option<u64>,
    /// The value is said to have so many UTF-8 bytes: shorter, it was cut; exactly so long, it is whole.
    pub declared_bytes: Option<u64>,
    /// The value is said to have so many Unicode characters; the same holds.
    pub declared_chars: Option<u64>,
    /// The list is said to have so many items; the same holds.
    pub declared_items: Option<u64>,
    /// The member beside the value that says how many UTF-8 bytes it has.
    pub bytes_in: Option<String>,
    /// The member beside the value that says how many Unicode characters it has.
    pub chars_in: Option<String>,
    /// The member beside the list that says how many items it has.
    pub items_in: Option<String>,
    /// There is a token for another page of the list, and nobody can turn that page.
    pub has_page_token: bool,
    /// The member beside the list that holds such a token.
    pub page_token_in: Option<String>,
    /// Endings that mark a cut, besides the usual markers.
    pub markers: Vec<String>,
    /// The value is what it is: nothing is detected in it.
    pub is_exact: bool,
    /// Under what name the full value can be read.
    pub handle: Option<String>,
}

impl FieldRule {
    /// The value is what it is, however it ends.
    pub fn exact() -> Self {
        Self { is_exact: true, ..Self::default() }
    }
}

/// A value as it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received<'a> {
    /// Bytes that should be UTF-8.
    Bytes(&'a [u8]),
    /// A text.
    Text(&'a str),
    /// A list of so many items.
    List(u64),
    /// Anything that cannot be cut.
    Other,
}

impl<'a> From<&'a str> for Received<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Received<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Value> for Received<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.len() as u64),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Self::Other,
        }
    }
}

/// A value that the backend cut, and how large it was where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// What gave it away.
    pub evidence: Evidence,
    /// UTF-8 bytes of the full value.
    pub original_bytes: Option<u64>,
    /// Unicode characters of the full value.
    pub original_chars: Option<u64>,
    /// Items of the full list.
    pub original_items: Option<u64>,
}

/// What gave a cut away (EN-3), the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// It is shorter than it is said to be.
    LengthDiffers,
    /// It ends inside a character.
    IncompleteUtf8,
    /// There is a token for another page, and no way to that page.
    PageTokenWithoutPage,
    /// It ends in a marker, or in an ellipsis close to a known limit or next to a longer original.
    Marker,
    /// It is exactly as large as the backend can keep, or larger, and nobody declares that this is all.
    SizeReached,
}

impl Evidence {
    /// The same in words that go on after a field's name.
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

/// Tells whether a backend cut a value: by a declared length that it does not have, incomplete UTF-8, a page token
/// with no page, a marker at its end, or a declared size that it reaches (EN-3). An ellipsis is a marker only close to such a
/// size: `Loading...` is whole.
///
/// What is exactly as long as it is declared is whole, however it ends and whatever size it reaches; only half a
/// character at its end, or a token for another page, outweighs that.
///
/// Text that was decoded with replacement characters ends in one where the bytes ended inside a character.
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
pub fn detect_cut<'a>(value: impl Into<Received<'a>>, rule: &FieldRule) -> Option<Cut> {
    if rule.is_exact {
        return None;
    }
    let value = value.into();
    let is_over = |actual: u64, limit: Option<u64>| limit.is_some_and(|limit| actual >= limit);
    let is_short = |actual: u64, declared: Option<u64>| declared.is_some_and(|declared| actual < declared);
    // Only what is as long as it is said to be, to the byte, is proved whole.
    let is_met = |actual: u64, declared: Option<u64>| declared == Some(actual);
    let (mut bytes, mut chars, mut items) = (0, 0, 0);
    let evidence = match value {
        Received::Other => None,
        Received::List(count) => {
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
        Received::Text(_) | Received::Bytes(_) => {
            let (text, received, is_incomplete) = valid_part(value);
            bytes = received;
            let has_lengths = rule.max_chars.is_some() || rule.declared_chars.is_some();
            chars = if has_lengths { text.chars().count() as u64 } else { 0 };
            let is_near = || {
                is_over(bytes + LONGEST_WORD, rule.max_bytes.or(rule.declared_bytes))
                    || is_over(chars + LONGEST_WORD, rule.max_chars.or(rule.declared_chars))
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
    // What is longer than it is said to be has another original than that.
    let original = |declared: Option<u64>, actual: u64| declared.filter(|declared| *declared >= actual);
    evidence.map(|evidence| Cut {
        evidence,
        original_bytes: original(rule.declared_bytes, bytes),
        original_chars: original(rule.declared_chars, chars),
        original_items: original(rule.declared_items, items),
    })
}

/// A backend that cuts between words, and sets an ellipsis, stays below its limit by less than this.
const LONGEST_WORD: u64 = 24;

/// The text that a value begins with, its length in bytes, and whether it ends inside a character.
fn valid_part(value: Received<'_>) -> (&str, u64, bool) {
    match value {
        Received::Text(text) => (text, text.len() as u64, false),
        Received::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) => (text, bytes.len() as u64, false),
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                // What is wrong in the middle is not cut, and hides nothing of the end.
                let is_incomplete = bytes.utf8_chunks().last().is_some_and(|chunk| is_cut(chunk.invalid()));
                (str::from_utf8(valid).unwrap_or_default(), bytes.len() as u64, is_incomplete)
            }
        },
        Received::List(_) | Received::Other => ("", 0, false),
    }
}

/// Whether these last bytes are a character that goes on.
fn is_cut(invalid: &[u8]) -> bool {
    str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests;
