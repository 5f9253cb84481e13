//! Closes cut JSON without adding false data, and marks every unfinished value in it (PC-1).

mod pointer;
mod walk;

use std::borrow::Cow;

use walk::{Ending, Walk};

use crate::detect::detect;
use crate::{Format, InToken, Verdict, escape_control_characters};

/// Closes cut JSON: keeps the part that no continuation can change, and adds only the missing closing
/// characters (PC-1).
///
/// If marked values are read as unfinished, the result never contradicts the complete text. A cut string
/// keeps its settled part, which no continuation can change. A number at the cut, an incomplete literal and a
/// key without its value are omitted, because their values are unknown. An open array or object keeps its
/// first elements or members. [`CompletedText::unfinished`] lists all of these.
///
/// Raw control characters in strings are escaped, so the result is strict JSON; [`CompletedText::escaped`]
/// counts them.
///
/// A whole text is otherwise returned unchanged. In JSON Lines, only the last value can be cut. With
/// [`Format::Auto`], the text must be JSON from its first character. The cost is linear in the length of the
/// text, at any depth.
///
/// ```
/// use endmark_text::{Format, UnfinishedKind, complete};
///
/// let cut = br#"{"path": "a.rs", "tags": ["x", "y"], "line": 12"#;
/// let completed = complete(cut, &Format::Json).unwrap();
/// assert_eq!(completed.text, r#"{"path": "a.rs", "tags": ["x", "y"]}"#);
/// // The line may be 12 or 120, so it is omitted, and the object is marked as unfinished.
/// let unfinished: Vec<_> = completed.unfinished().map(|place| (place.pointer, place.kind)).collect();
/// assert_eq!(unfinished, [("", UnfinishedKind::Object), ("/line", UnfinishedKind::Number)]);
///
/// let whole = complete(b"[1, 2]", &Format::Json).unwrap();
/// assert_eq!((whole.text.as_str(), whole.is_finished()), ("[1, 2]", true));
/// ```
pub fn complete(raw: &[u8], format: &Format) -> Result<CompletedText, CompleteError> {
    let completed = close(raw, format)?;
    match escape_control_characters(&completed.text) {
        (Cow::Borrowed(_), _) => Ok(completed),
        (Cow::Owned(text), escaped) => Ok(CompletedText { text, escaped, ..completed }),
    }
}

/// Closes a text, but keeps its raw control characters.
fn close(raw: &[u8], format: &Format) -> Result<CompletedText, CompleteError> {
    let values = match format {
        Format::Json | Format::Jsonl => format,
        Format::Auto => guess_format(raw)?,
        other => return Err(CompleteError::NoGrammar(other.name())),
    };
    match detect(raw, values).verdict {
        Verdict::Malformed { index, reason } => Err(CompleteError::Malformed { index, reason }),
        // A whole text ends in a digit only if its last value is a top-level number, which may continue.
        Verdict::Whole if raw.last().is_some_and(u8::is_ascii_digit) => {
            let value = Walk::new(raw).values().saturating_sub(1);
            let number =
                UnfinishedPlace { pointer_length: 0, kind: UnfinishedKind::Number, is_omitted: false };
            Ok(CompletedText { text: to_text(raw)?, value, places: vec![number], ..CompletedText::default() })
        }
        Verdict::Whole => Ok(CompletedText { text: to_text(raw)?, ..CompletedText::default() }),
        Verdict::Truncated(found) => {
            let settled = &raw[..found.truncation_index];
            let walk = Walk::new(settled);
            let ending = match found.in_token {
                Some(InToken::Number) => Ending::Number,
                Some(InToken::Literal) => Ending::Literal,
                _ => Ending::Settled,
            };
            let kept = walk.kept_length(ending).ok_or(CompleteError::NoValue)?;
            let mut text = to_text(&settled[..kept])?;
            walk.close(&mut text);
            let (pointer, places) = walk.unfinished(ending);
            Ok(CompletedText { text, value: walk.values(), pointer, places, escaped: 0 })
        }
    }
}

/// Returns the format of a text that is JSON from its first character.
fn guess_format(raw: &[u8]) -> Result<&'static Format, CompleteError> {
    if raw.trim_ascii().is_empty() {
        return Err(CompleteError::NoValue);
    }
    let guessed = detect(raw, &Format::Auto);
    let values = match (&guessed.verdict, guessed.detected) {
        (Verdict::Malformed { index, reason }, _) => {
            return Err(CompleteError::Malformed { index: *index, reason: reason.clone() });
        }
        (_, Some(Format::Json | Format::Jsonl)) => detect(raw, &Format::Jsonl).verdict,
        _ => return Err(CompleteError::NotJson),
    };
    // Prose after the JSON may look like another value. Then the detected format does not describe the whole
    // text.
    let end = |verdict: &Verdict| verdict.truncation().map(|found| found.truncation_index);
    let is_same = guessed.verdict.is_whole() == values.is_whole() && end(&guessed.verdict) == end(&values);
    if is_same { Ok(&Format::Jsonl) } else { Err(CompleteError::NotJson) }
}

/// Converts settled bytes to text. They contain no incomplete or invalid character, because detection stops
/// before one.
fn to_text(settled: &[u8]) -> Result<String, CompleteError> {
    match str::from_utf8(settled) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            Err(CompleteError::Malformed { index: error.valid_up_to(), reason: "invalid UTF-8".to_owned() })
        }
    }
}

/// A closed text and its unfinished values (PC-1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompletedText {
    /// The closed text. It is whole in its format. Apart from the closing characters, it is a prefix of the
    /// given text, with raw control characters escaped.
    pub text: String,
    /// Index of the value that is unfinished, from 0. In JSON it is always 0. If the whole value was omitted,
    /// this equals the number of values in the text.
    pub value: usize,
    /// Number of raw control characters that were escaped in strings.
    pub escaped: usize,
    /// The pointer of the innermost unfinished part. The pointers of all others are prefixes of it: separate
    /// copies would need space quadratic in the depth.
    pointer: String,
    places: Vec<UnfinishedPlace>,
}

/// An unfinished part of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UnfinishedPlace {
    /// Length of its own pointer, which is a prefix of the innermost one.
    pointer_length: usize,
    kind: UnfinishedKind,
    is_omitted: bool,
}

impl CompletedText {
    /// Whether no value is unfinished.
    pub fn is_finished(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the unfinished values, outermost first: each open object and array, then the cut or missing
    /// part in the innermost one.
    pub fn unfinished(
        &self,
    ) -> impl DoubleEndedIterator<Item = UnfinishedPart<'_>> + ExactSizeIterator + Clone + '_ {
        self.places.iter().map(|place| UnfinishedPart {
            pointer: &self.pointer[..place.pointer_length],
            kind: place.kind,
            is_omitted: place.is_omitted,
        })
    }
}

/// A part of a closed text that differs from the complete text (PC-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedPart<'a> {
    /// The JSON Pointer (RFC 6901) of the unfinished part within the value. If a key is repeated in an
    /// object, it refers to the last one. A lone surrogate in a key becomes U+FFFD.
    pub pointer: &'a str,
    /// The kind of the unfinished part.
    pub kind: UnfinishedKind,
    /// Whether the closed text omits it.
    pub is_omitted: bool,
}

/// The kind of an unfinished part (PC-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnfinishedKind {
    /// A cut string. Its beginning is kept.
    String,
    /// An open array. Its first elements are kept.
    Array,
    /// An open object. Its first members are kept.
    Object,
    /// A number at the cut, which may continue. It is omitted unless it is the whole value. In that case it
    /// is kept and marked.
    Number,
    /// An incomplete `true`, `false` or `null`. It is omitted.
    Literal,
    /// A key without its value. Both are omitted. The pointer ends in the key.
    Key,
    /// A member that must follow, but whose key is incomplete. It is omitted. The pointer is that of the
    /// object.
    Member,
    /// An element that must follow a comma, but is missing or unsettled. It is omitted. The pointer is its
    /// own.
    Element,
}

impl UnfinishedKind {
    /// Returns the name that JSON output uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
            Self::Number => "number",
            Self::Literal => "literal",
            Self::Key => "key",
            Self::Member => "member",
            Self::Element => "element",
        }
    }
}

/// Reason why a text cannot be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompleteError {
    /// No continuation can make the text valid.
    #[error("malformed at byte {index}: {reason}")]
    Malformed {
        /// Byte offset of the first invalid byte.
        index: usize,
        /// The reason, as a lowercase fragment.
        reason: String,
    },
    /// No part of a value is settled, so there is nothing to keep.
    #[error("no part of a value is settled yet")]
    NoValue,
    /// With [`Format::Auto`], the text is not JSON from its first character. JSON after prose or in a fence
    /// is only a part of the text. Closing that part would not give a prefix of the text.
    #[error("the text does not begin with JSON: remove the prose or fence around the JSON")]
    NotJson,
    /// The format, such as Markdown, has no values that can be closed.
    #[error("a text of the format `{0}` cannot be closed: only json, jsonl and auto can")]
    NoGrammar(&'static str),
}

impl CompleteError {
    /// Returns the error code that JSON output uses.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "malformed",
            Self::NoValue => "no_value",
            Self::NotJson => "not_json",
            Self::NoGrammar(_) => "no_grammar",
        }
    }
}

#[cfg(test)]
mod tests;
