//! Paths of values in an answer: `data.items[3].title`, `data["odd key"]`. (EN-2)

use std::fmt::{self, Display, Formatter, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A member of an object.
    Key(String),
    /// An item of a list, from 0.
    Index(usize),
}

/// The path of a value in an envelope, as written in a warning or an error (EN-2).
///
/// A key that is not a plain word is in brackets and quotation marks and escaped as in JSON, so that every
/// path can be parsed.
///
/// ```
/// use endmark_envelope::FieldPath;
///
/// let path = FieldPath::data().key("items").index(3).key("odd key");
/// assert_eq!(path.to_string(), r#"data.items[3]["odd key"]"#);
/// assert_eq!(r#"data.items[3]["odd key"]"#.parse(), Ok(path));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Segment>);

/// Error of a text that is not a path, with the byte offset of the first invalid part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at} of the path `{path}`: {reason}")]
pub struct PathError {
    path: String,
    at: usize,
    reason: &'static str,
}

impl FieldPath {
    /// Returns the path of the root. It is displayed as an empty text.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the path of an envelope's `data`.
    pub fn data() -> Self {
        Self::root().key("data")
    }

    /// Adds a member.
    #[must_use]
    pub fn key(mut self, name: impl Into<String>) -> Self {
        self.0.push(Segment::Key(name.into()));
        self
    }

    /// Adds an item of a list.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Segment::Index(index));
        self
    }

    /// Returns the steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns the value at this path of a document, if it exists.
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |value, segment| match segment {
            Segment::Key(name) => value.as_object()?.get(name),
            Segment::Index(index) => value.as_array()?.get(*index),
        })
    }

    /// Returns a mutable reference to the value at this path of a document.
    pub fn find_mut<'a>(&self, document: &'a mut Value) -> Option<&'a mut Value> {
        self.0.iter().try_fold(document, |value, segment| match segment {
            Segment::Key(name) => value.as_object_mut()?.get_mut(name),
            Segment::Index(index) => value.as_array_mut()?.get_mut(*index),
        })
    }

    /// Returns the path without its first step. This converts an envelope's path to a path within its `data`.
    #[must_use]
    pub fn without_first(&self) -> Self {
        Self(self.0.iter().skip(1).cloned().collect())
    }

    /// Returns the JSON Pointer (RFC 6901) of this path.
    ///
    /// ```
    /// use endmark_envelope::FieldPath;
    ///
    /// assert_eq!(FieldPath::root().key("a/b~").index(3).pointer(), "/a~1b~0/3");
    /// ```
    pub fn pointer(&self) -> String {
        let step = |segment: &Segment| match segment {
            Segment::Key(name) => format!("/{}", pointer_step(name)),
            Segment::Index(index) => format!("/{index}"),
        };
        self.0.iter().map(step).collect()
    }

    /// Returns this path followed by `inner`.
    #[must_use]
    pub fn join(&self, inner: &Self) -> Self {
        Self(self.0.iter().chain(&inner.0).cloned().collect())
    }

    /// Returns the common beginning of both paths.
    pub(crate) fn common_prefix(mut self, other: &Self) -> Self {
        let common = self.0.iter().zip(&other.0).take_while(|(own, other)| own == other).count();
        self.0.truncate(common);
        self
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }
}

/// Returns a name as a step of a JSON Pointer.
pub(crate) fn pointer_step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl Display for FieldPath {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(name) => write_key(formatter, name, position == 0)?,
                Segment::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn write_key(formatter: &mut Formatter<'_>, name: &str, is_first: bool) -> fmt::Result {
    if is_plain(name) {
        if !is_first {
            formatter.write_char('.')?;
        }
        formatter.write_str(name)
    } else {
        // A key may contain any characters, so write it as a JSON string.
        write!(formatter, "[{}]", Value::from(name))
    }
}

/// Returns whether a key needs no quotation marks.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

impl FromStr for FieldPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let pattern: FieldPattern = text.parse()?;
        let segments = pattern.0.into_iter().map(|step| match step {
            PatternStep::Segment(segment) => Ok(segment),
            PatternStep::Any => {
                let at = text.find("[*]").unwrap_or_default();
                Err(PathError { path: text.to_owned(), at, reason: "`[*]` names no single item" })
            }
        });
        segments.collect::<Result<_, _>>().map(Self)
    }
}

impl Serialize for FieldPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FieldPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A set of paths, in which `[*]` matches every item of a list and every member of a map.
///
/// ```
/// use endmark_envelope::{FieldPath, FieldPattern};
///
/// let titles: FieldPattern = "data.items[*].title".parse()?;
/// assert!(titles.matches(&FieldPath::data().key("items").index(7).key("title")));
/// assert!(!titles.matches(&FieldPath::data().key("items")));
/// # Ok::<(), endmark_envelope::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldPattern(Vec<PatternStep>);

/// Maximum number of steps of a declared pattern. It allows six nested lists.
const MAX_PATTERN_STEPS: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PatternStep {
    Segment(Segment),
    Any,
}

impl FieldPattern {
    /// Returns the pattern of the root.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the pattern of an envelope's `data`.
    pub fn data() -> Self {
        Self::root().key("data")
    }

    /// Adds a member.
    #[must_use]
    pub fn key(mut self, name: impl Into<String>) -> Self {
        self.0.push(PatternStep::Segment(Segment::Key(name.into())));
        self
    }

    /// Adds a step that matches every item of a list or member of a map.
    #[must_use]
    pub fn any(mut self) -> Self {
        self.0.push(PatternStep::Any);
        self
    }

    /// Returns this pattern with `other` before it.
    #[must_use]
    pub fn below(&self, mut other: Self) -> Self {
        other.0.extend(self.0.iter().cloned());
        other
    }

    /// Returns whether the pattern is so deep that the rules of a recursive type stop here.
    #[doc(hidden)]
    pub fn is_deep(&self) -> bool {
        self.0.len() > MAX_PATTERN_STEPS
    }

    /// Returns whether the pattern matches a path.
    pub fn matches(&self, path: &FieldPath) -> bool {
        self.0.len() == path.0.len() && self.matches_beginning(path)
    }

    /// Returns whether a path is inside a path that the pattern matches.
    pub fn is_above(&self, path: &FieldPath) -> bool {
        self.0.len() < path.0.len() && self.matches_beginning(path)
    }

    fn matches_beginning(&self, path: &FieldPath) -> bool {
        self.0.iter().zip(&path.0).all(|(step, segment)| match step {
            PatternStep::Segment(exactly) => exactly == segment,
            PatternStep::Any => true,
        })
    }

    /// Returns the steps. A step of `None` matches any key or index.
    pub fn steps(&self) -> impl Iterator<Item = Option<&Segment>> {
        self.0.iter().map(|step| match step {
            PatternStep::Segment(segment) => Some(segment),
            PatternStep::Any => None,
        })
    }
}

impl From<FieldPath> for FieldPattern {
    fn from(path: FieldPath) -> Self {
        Self(path.0.into_iter().map(PatternStep::Segment).collect())
    }
}

impl Display for FieldPattern {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                PatternStep::Segment(Segment::Key(name)) => write_key(formatter, name, position == 0)?,
                PatternStep::Segment(Segment::Index(index)) => write!(formatter, "[{index}]")?,
                PatternStep::Any => formatter.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl FromStr for FieldPattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let failed = |at: usize, reason| PathError { path: text.to_owned(), at, reason };
        let mut steps = Vec::new();
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            if first == '[' {
                let (step, length) =
                    parse_brackets(&text[at..]).map_err(|(inside, reason)| failed(at + inside, reason))?;
                steps.push(step);
                at += length;
                continue;
            }
            // A dot precedes every key except the first.
            let begin = match (first, steps.is_empty()) {
                ('.', false) => at + 1,
                (_, true) => at,
                (_, false) => return Err(failed(at, "`.` or `[` has to follow")),
            };
            let end = text[begin..].find(['.', '[']).map_or(text.len(), |length| begin + length);
            if begin == end {
                return Err(failed(begin, "a name is missing"));
            }
            steps.push(PatternStep::Segment(Segment::Key(text[begin..end].to_owned())));
            at = end;
        }
        Ok(Self(steps))
    }
}

/// Parses the step in brackets at the beginning of a text. Returns the step and its length in bytes.
fn parse_brackets(text: &str) -> Result<(PatternStep, usize), (usize, &'static str)> {
    let inside = &text[1..];
    if inside.starts_with('"') {
        let mut strings = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        let name = strings.next().and_then(Result::ok).ok_or((1, "the quoted name does not end"))?;
        let end = 1 + strings.byte_offset();
        if !text[end..].starts_with(']') {
            return Err((end, "`]` is missing"));
        }
        return Ok((PatternStep::Segment(Segment::Key(name)), end + 1));
    }
    let length = inside.find(']').ok_or((text.len(), "`]` is missing"))?;
    let step = match &inside[..length] {
        "*" => PatternStep::Any,
        number => PatternStep::Segment(Segment::Index(
            number.parse().map_err(|_| (1, "brackets need a number, `*` or a quoted name"))?,
        )),
    };
    Ok((step, length + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_round_trips_through_a_path() {
        for key in ["a", "odd key", "", "0", "a.b", "[x]", "qu\"ote", "\n", "é", "data", "*"] {
            for path in [FieldPath::root().key(key), FieldPath::data().index(0).key(key).index(12)] {
                assert_eq!(path.to_string().parse().as_ref(), Ok(&path), "{path}");
            }
        }
        assert_eq!(FieldPath::root().key("a.b").to_string(), r#"["a.b"]"#);
    }

    #[test]
    fn an_invalid_path_reports_the_position() {
        for (text, at) in
            [("a..b", 2), ("a[", 2), ("a[x]", 2), ("a[\"b]", 2), ("a[\"b\"", 5), ("a[0]b", 4), (".", 1)]
        {
            let error = text.parse::<FieldPattern>().map_err(|error| error.at);
            // The first name must begin where this text has a dot.
            let expected = if text == "." { 0 } else { at };
            assert_eq!(error, Err(expected), "{text}");
        }
        assert!("a[*]".parse::<FieldPath>().is_err());
    }
}
