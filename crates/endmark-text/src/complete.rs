//! Closes a cut JSON text truthfully, and marks every value in it that is not finished (PC-1).

mod pointer;
mod walk;

use std::borrow::Cow;

use walk::{Ending, Walk};

use crate::detect::detect;
use crate::{Format, InToken, Verdict, escape_control_characters};

/// Closes a cut JSON text: its settled beginning, byte for byte, and then only what closes it (PC-1).
///
/// The closed text says nothing that the complete one could deny, as long as what is marked is read as
/// marked. A cut string keeps its settled part; a number that touches the cut, an incomplete literal and a
/// key without its value are left out, for nothing true could stand in their places; a list or an object
/// that was open is a beginning of the complete one. Each of them is one of [`Completed::unfinished`].
///
/// Raw control characters in strings are escaped, so that the closed text is strict JSON; [`Completed::escaped`] counts them.
///
/// A whole text comes back as it is, with nothing unfinished. In JSON Lines what is cut is the last value;
/// those before it stay. In [`Format::Auto`] the text must be JSON from its beginning on. The cost is
/// linear in the text, at any depth.
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
pub fn complete(raw: &[u8], format: &Format) -> Result<Completed, CompleteError> {
    let completed = closed(raw, format)?;
    match escape_control_characters(&completed.text) {
        (Cow::Borrowed(_), _) => Ok(completed),
        (Cow::Owned(text), escaped) => Ok(Completed { text, escaped, ..completed }),
    }
}

/// Closes a text, with its raw control characters as they are.
fn closed(raw: &[u8], format: &Format) -> Result<Completed, CompleteError> {
    let values = match format {
        Format::Json | Format::Jsonl => format,
        Format::Auto => guess(raw)?,
        other => return Err(CompleteError::NoGrammar(other.name())),
    };
    match detect(raw, values).verdict {
        Verdict::Malformed { index, reason } => Err(CompleteError::Malformed { index, reason }),
        // At the end of a whole text a digit can only be that of a number which stands by itself.
        Verdict::Whole if raw.last().is_some_and(u8::is_ascii_digit) => {
            let value = Walk::over(raw).values().saturating_sub(1);
            let number = Place { end: 0, kind: UnfinishedKind::Number, left_out: false };
            Ok(Completed { text: text_of(raw)?, value, places: vec![number], ..Completed::default() })
        }
        Verdict::Whole => Ok(Completed { text: text_of(raw)?, ..Completed::default() }),
        Verdict::Truncated(found) => {
            let settled = &raw[..found.truncation_index];
            let walk = Walk::over(settled);
            let ending = match found.in_token {
                Some(InToken::Number) => Ending::Number,
                Some(InToken::Literal) => Ending::Literal,
                _ => Ending::Settled,
            };
            let kept = walk.kept(ending).ok_or(CompleteError::NoValue)?;
            let mut text = text_of(&settled[..kept])?;
            walk.close(&mut text);
            let (pointer, places) = walk.unfinished(ending);
            Ok(Completed { text, value: walk.values(), pointer, places, escaped: 0 })
        }
    }
}

/// What a text is, if it is JSON from its beginning on.
fn guess(raw: &[u8]) -> Result<&'static Format, CompleteError> {
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
    // Prose may look like more values, or have some in it: then the guess is another text.
    let end = |verdict: &Verdict| verdict.truncation().map(|found| found.truncation_index);
    let is_same = guessed.verdict.is_whole() == values.is_whole() && end(&guessed.verdict) == end(&values);
    if is_same { Ok(&Format::Jsonl) } else { Err(CompleteError::NotJson) }
}

/// Settled bytes as text; what is settled has no incomplete character, and detection refuses an invalid one.
fn text_of(settled: &[u8]) -> Result<String, CompleteError> {
    match str::from_utf8(settled) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            Err(CompleteError::Malformed { index: error.valid_up_to(), reason: "invalid UTF-8".to_owned() })
        }
    }
}

/// A text that was closed, and what in it is unfinished (PC-1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completed {
    /// The closed text: whole in its format, and a beginning of the given one but for what closes it.
    pub text: String,
    /// Which value of the text the unfinished places are in, counted from 0; in JSON always 0. It may
    /// itself be left out, and then there are as many values in the text.
    pub value: usize,
    /// How many raw control characters in its strings were escaped.
    pub escaped: usize,
    /// The pointer of the innermost place. All others are beginnings of it: copied out for each level,
    /// they would take space quadratic in the depth.
    pointer: String,
    places: Vec<Place>,
}

/// A place that is unfinished.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// How much of the innermost place's pointer is its own.
    end: usize,
    kind: UnfinishedKind,
    left_out: bool,
}

impl Completed {
    /// Whether nothing is unfinished.
    pub fn is_finished(&self) -> bool {
        self.places.is_empty()
    }

    /// What is unfinished, outermost first: each object and array that was open, then what was cut in the
    /// innermost of them or must still come there.
    pub fn unfinished(
        &self,
    ) -> impl DoubleEndedIterator<Item = Unfinished<'_>> + ExactSizeIterator + Clone + '_ {
        self.places.iter().map(|place| Unfinished {
            pointer: &self.pointer[..place.end],
            kind: place.kind,
            left_out: place.left_out,
        })
    }
}

/// A place in a closed text that is not as it is in the complete one (PC-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished<'a> {
    /// Where it is: a JSON Pointer (RFC 6901) into the value. Where an object has a name twice, the last
    /// one is meant. A lone surrogate in a name is U+FFFD here.
    pub pointer: &'a str,
    /// What it is.
    pub kind: UnfinishedKind,
    /// Whether it is left out of the closed text.
    pub left_out: bool,
}

/// What is unfinished (PC-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnfinishedKind {
    /// A string that was cut: its beginning is there.
    String,
    /// An array that was open: its first elements are there.
    Array,
    /// An object that was open: its first members are there.
    Object,
    /// A number that touches the cut, and may go on. It is left out, unless it is the whole value: then
    /// the text is whole as it stands, and it is only marked.
    Number,
    /// An incomplete `true`, `false` or `null`, left out.
    Literal,
    /// A name whose value had not begun; both are left out. The pointer ends in the name.
    Key,
    /// A member that must come, of which not even the name is complete, left out. The pointer is that of
    /// its object.
    Member,
    /// An element that must come after a comma and had not begun, left out. The pointer is its own.
    Element,
}

impl UnfinishedKind {
    /// The literal name, as in the answers of `detect`.
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

/// Why a text cannot be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompleteError {
    /// No continuation could make it valid, so that it has no true beginning either.
    #[error("malformed at byte {index}: {reason}")]
    Malformed {
        /// Byte offset of the first byte that cannot stand where it stands.
        index: usize,
        /// What is wrong with it: a lowercase fragment.
        reason: String,
    },
    /// Nothing of a value is settled, so that there is nothing true to say.
    #[error("nothing of a value is settled yet")]
    NoValue,
    /// The text, whose format was to be guessed, is no JSON from its beginning on: what is behind prose or in a
    /// fence is only a part of it, and closed by itself it would not be a beginning of the text.
    #[error("the text is not JSON from its beginning on; of one in prose or in a fence, give the JSON alone")]
    NotJson,
    /// A format in which nothing is closed.
    #[error("a text of the format `{0}` cannot be closed: only json, jsonl and auto can")]
    NoGrammar(&'static str),
}

impl CompleteError {
    /// The literal name, as in the answers of `detect`.
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
