//! Closes a cut JSON text truthfully, and marks every unfinished value in it (PC-1).

mod pointer;
mod walk;

use std::borrow::Cow;

use walk::{Ending, Walk};

use crate::detect::detect;
use crate::{Format, InToken, Verdict, escape_control_characters};

/// Closes a cut JSON text: keeps its settled beginning unchanged, and adds only what closes it (PC-1).
///
/// The complete text never contradicts the closed one, if marked values are read as unfinished. A cut string keeps
/// its settled part. A number at the cut, an incomplete literal and a key without its value are left out, because
/// nothing true can replace them. An open list or object is a beginning of the complete one. Each of them is one of
/// [`CompletedText::unfinished`].
///
/// Raw control characters in strings are escaped, so that the closed text is strict JSON; [`CompletedText::escaped`]
/// counts them.
///
/// A whole text is returned unchanged. In JSON Lines only the last value is cut. With [`Format::Auto`] the text must
/// be JSON from its beginning. The cost is linear in the text, at any depth.
///
/// ```
/// use endmark_text::{Format, UnfinishedKind, complete};
///
/// let cut = br#"{"path": "a.rs", "tags": ["x", "y"], "line": 12"#;
/// let completed = complete(cut, &Format::Json).unwrap();
/// assert_eq!(completed.text, r#"{"path": "a.rs", "tags": ["x", "y"]}"#);
/// // The line may be 12 or 120: it is left out, and the object is known to lack something.
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

/// Closes a text, with its raw control characters unchanged.
fn close(raw: &[u8], format: &Format) -> Result<CompletedText, CompleteError> {
    let values = match format {
        Format::Json | Format::Jsonl => format,
        Format::Auto => guess_format(raw)?,
        other => return Err(CompleteError::NoGrammar(other.name())),
    };
    match detect(raw, values).verdict {
        Verdict::Malformed { index, reason } => Err(CompleteError::Malformed { index, reason }),
        // At the end of a whole text, a digit can only belong to a number outside all brackets.
        Verdict::Whole if raw.last().is_some_and(u8::is_ascii_digit) => {
            let value = Walk::new(raw).values().saturating_sub(1);
            let number = UnfinishedPlace { end: 0, kind: UnfinishedKind::Number, is_omitted: false };
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

/// Returns the format of a text, if it is JSON from its beginning on.
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
    // Prose may look like more values, or contain some. Then the detected format describes another text.
    let end = |verdict: &Verdict| verdict.truncation().map(|found| found.truncation_index);
    let is_same = guessed.verdict.is_whole() == values.is_whole() && end(&guessed.verdict) == end(&values);
    if is_same { Ok(&Format::Jsonl) } else { Err(CompleteError::NotJson) }
}

/// Converts settled bytes to text. They have no incomplete character, and detection rejects invalid ones.
fn to_text(settled: &[u8]) -> Result<String, CompleteError> {
    match str::from_utf8(settled) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            Err(CompleteError::Malformed { index: error.valid_up_to(), reason: "invalid UTF-8".to_owned() })
        }
    }
}

/// A closed text, with its unfinished values (PC-1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompletedText {
    /// The closed text. It is whole in its format, and a beginning of the given text apart from the added closing
    /// characters.
    pub text: String,
    /// The index of the value with the unfinished places, from 0; in JSON always 0. If that value itself is left out,
    /// the text has this many values.
    pub value: usize,
    /// The number of raw control characters that were escaped in its strings.
    pub escaped: usize,
    /// The pointer of the innermost place. All others are prefixes of it: separate copies would take space quadratic
    /// in the depth.
    pointer: String,
    places: Vec<UnfinishedPlace>,
}

/// An unfinished place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UnfinishedPlace {
    /// The length of its prefix of the innermost pointer.
    end: usize,
    kind: UnfinishedKind,
    is_omitted: bool,
}

impl CompletedText {
    /// Whether nothing is unfinished.
    pub fn is_finished(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the unfinished values, outermost first: each open object and array, and then what is cut or missing in
    /// the innermost one.
    pub fn unfinished(
        &self,
    ) -> impl DoubleEndedIterator<Item = UnfinishedPart<'_>> + ExactSizeIterator + Clone + '_ {
        self.places.iter().map(|place| UnfinishedPart {
            pointer: &self.pointer[..place.end],
            kind: place.kind,
            is_omitted: place.is_omitted,
        })
    }
}

/// A place in a closed text that differs from the complete one (PC-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedPart<'a> {
    /// The JSON Pointer (RFC 6901) of the unfinished part within the value. If an object has a name twice, the last
    /// one is meant. A lone surrogate in a name becomes U+FFFD.
    pub pointer: &'a str,
    /// The kind of the unfinished part.
    pub kind: UnfinishedKind,
    /// Whether it is left out of the closed text.
    pub is_omitted: bool,
}

/// What is unfinished (PC-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnfinishedKind {
    /// A cut string, with its beginning.
    String,
    /// An open array, with its first elements.
    Array,
    /// An open object, with its first members.
    Object,
    /// A number at the cut, which may continue. It is omitted unless it is the whole value. In that case the text is
    /// whole, and the number is only marked.
    Number,
    /// An incomplete `true`, `false` or `null`, left out.
    Literal,
    /// A name whose value had not begun; both are left out. The pointer ends in the name.
    Key,
    /// A member that must follow and whose name is incomplete. It is omitted, and the pointer is that of its object.
    Member,
    /// An element that must follow a comma and had not begun, left out. The pointer is its own.
    Element,
}

impl UnfinishedKind {
    /// Returns the literal name, as in the answers of `detect`.
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

/// The reason why a text cannot be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompleteError {
    /// No continuation can make the text valid, so it has no verified beginning.
    #[error("malformed at byte {index}: {reason}")]
    Malformed {
        /// Byte offset of the first byte that is not permitted there.
        index: usize,
        /// The reason as a lower-case fragment.
        reason: String,
    },
    /// No part of a value is settled, so nothing true can be kept.
    #[error("nothing of a value is settled yet")]
    NoValue,
    /// The format should be detected, but the text is not JSON from its beginning. JSON after prose or in a fence is
    /// only a part of the text, and closing that part would not give a beginning of the text.
    #[error("the text is not JSON from its beginning on; of one in prose or in a fence, give the JSON alone")]
    NotJson,
    /// A format in which nothing can be closed.
    #[error("a text of the format `{0}` cannot be closed: only json, jsonl and auto can")]
    NoGrammar(&'static str),
}

impl CompleteError {
    /// Returns the literal name, as in the answers of `detect`.
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
