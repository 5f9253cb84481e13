//! A text as lines, with the place of each.

use std::borrow::Cow;

use memchr::memchr;

use crate::Position;

/// A line without its line break.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    pub(super) text: Cow<'a, str>,
    /// How many bytes it was decoded from.
    length: usize,
    /// From 1.
    number: usize,
    /// Where it begins, in bytes.
    pub(super) byte: usize,
    /// Whether a line break ends it; the last line of a cut text has none.
    pub(super) is_settled: bool,
    /// Where in it bytes are no UTF-8, and had to be replaced.
    pub(super) broken_at: Option<usize>,
}

/// The mark some editors set before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// All lines of a text, one after the other; an empty one at its end is none.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut byte = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    (1..).map_while(move |number| {
        let rest = bytes.get(byte..).filter(|rest| !rest.is_empty())?;
        let end = memchr(b'\n', rest);
        let line = decoded(&rest[..end.unwrap_or(rest.len())], number, byte, end.is_some());
        byte += end.map_or(rest.len(), |end| end + 1);
        Some(line)
    })
}

fn decoded(bytes: &[u8], number: usize, byte: usize, is_settled: bool) -> Line<'_> {
    // A cut between carriage return and line feed leaves the former.
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let (text, broken_at) = match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), None),
        // A character that is cut at the end of the text is no mistake of the text.
        Err(error) if !is_settled && error.error_len().is_none() => {
            (String::from_utf8_lossy(&bytes[..error.valid_up_to()]), None)
        }
        Err(error) => (String::from_utf8_lossy(bytes), Some(error.valid_up_to())),
    };
    Line { text, length: bytes.len(), number, byte, is_settled, broken_at }
}

impl Line<'_> {
    /// A place in this line, so many bytes of its text behind its beginning. Behind bytes that were replaced it is counted in
    /// what they were replaced by, and still within the line.
    pub(super) fn position(&self, byte: usize) -> Position {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let column = before.chars().count() + 1;
        Position { line: self.number, column, byte: self.byte + before.len().min(self.length) }
    }

    /// Where its first sign is.
    pub(super) fn begins(&self) -> Position {
        self.position(self.text.len() - self.text.trim_start().len())
    }

    /// Where it stops.
    pub(super) fn ends(&self) -> Position {
        Position { byte: self.byte + self.length, ..self.position(self.text.len()) }
    }

    /// Where the text stops whose last line this is: behind its line break, if it has one.
    pub(super) fn end_of_text(&self, bytes: usize) -> Position {
        if self.is_settled { Position { line: self.number + 1, column: 1, byte: bytes } } else { self.ends() }
    }

    /// Whether there is nothing in it, and so it separates; spaces alone may be a line of evidence.
    pub(super) fn is_empty(&self) -> bool {
        self.is_settled && self.text.is_empty()
    }

    /// How far it is indented, in columns.
    pub(super) fn indent(&self) -> usize {
        let white = self.text.chars().take_while(|sign| sign.is_whitespace());
        white.map(columns).sum()
    }

    /// The line without so much indentation, or without all it has.
    pub(super) fn outdented(&self, indent: usize) -> &str {
        let (mut left, mut rest) = (indent, self.text.as_ref());
        while left > 0 {
            let Some(sign) = rest.chars().next().filter(|sign| sign.is_whitespace()) else { break };
            left = left.saturating_sub(columns(sign));
            rest = &rest[sign.len_utf8()..];
        }
        rest
    }
}

/// A tab counts as four.
fn columns(sign: char) -> usize {
    if sign == '\t' { 4 } else { 1 }
}
