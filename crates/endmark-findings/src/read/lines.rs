//! Splits a text into lines with positions.

use std::borrow::Cow;

use memchr::memchr;

use crate::Position;

/// A line without its line break.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    pub(super) text: Cow<'a, str>,
    /// The number of source bytes.
    length: usize,
    /// The line number, from 1.
    number: usize,
    /// The byte offset of its beginning.
    pub(super) byte: usize,
    /// Whether a line break ends it. The last line of a cut text has none.
    pub(super) is_settled: bool,
    /// The offset of the first invalid UTF-8 in it, which was replaced.
    pub(super) broken_at: Option<usize>,
}

/// The byte order mark that some editors add.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Returns the lines of a text in order. An empty last line is left out.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut byte = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    (1..).map_while(move |number| {
        let rest = bytes.get(byte..).filter(|rest| !rest.is_empty())?;
        let end = memchr(b'\n', rest);
        let line = decode(&rest[..end.unwrap_or(rest.len())], number, byte, end.is_some());
        byte += end.map_or(rest.len(), |end| end + 1);
        Some(line)
    })
}

fn decode(bytes: &[u8], number: usize, byte: usize, is_settled: bool) -> Line<'_> {
    // A cut between carriage return and line feed leaves the carriage return.
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let (text, broken_at) = match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), None),
        // A character that is cut at the end of the text is not invalid input.
        Err(error) if !is_settled && error.error_len().is_none() => {
            (String::from_utf8_lossy(&bytes[..error.valid_up_to()]), None)
        }
        Err(error) => (String::from_utf8_lossy(bytes), Some(error.valid_up_to())),
    };
    Line { text, length: bytes.len(), number, byte, is_settled, broken_at }
}

impl Line<'_> {
    /// Returns the position at a byte offset of this line's text. After replaced bytes the offset counts the
    /// replacements, but the position stays within the line.
    pub(super) fn position(&self, byte: usize) -> Position {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let column = before.chars().count() + 1;
        Position { line: self.number, column, byte: self.byte + before.len().min(self.length) }
    }

    /// Returns the position of its first character that is not white space.
    pub(super) fn begins(&self) -> Position {
        self.position(self.text.len() - self.text.trim_start().len())
    }

    /// Returns the position of its end.
    pub(super) fn ends(&self) -> Position {
        Position { byte: self.byte + self.length, ..self.position(self.text.len()) }
    }

    /// Returns the end of the text if this is its last line: after its line break, if it has one.
    pub(super) fn text_end(&self, bytes: usize) -> Position {
        if self.is_settled { Position { line: self.number + 1, column: 1, byte: bytes } } else { self.ends() }
    }

    /// Whether it is a blank separator. A line of spaces is not, because it may belong to evidence.
    pub(super) fn is_empty(&self) -> bool {
        self.is_settled && self.text.is_empty()
    }

    /// Returns its indentation in columns.
    pub(super) fn indent(&self) -> usize {
        let white = self.text.chars().take_while(|sign| sign.is_whitespace());
        white.map(columns).sum()
    }

    /// Removes this much indentation, or all of it if there is less.
    pub(super) fn outdent(&self, indent: usize) -> &str {
        let (mut left, mut rest) = (indent, self.text.as_ref());
        while left > 0 {
            let Some(sign) = rest.chars().next().filter(|sign| sign.is_whitespace()) else { break };
            left = left.saturating_sub(columns(sign));
            rest = &rest[sign.len_utf8()..];
        }
        rest
    }
}

/// Returns the width of a character. A tab counts as four columns.
fn columns(sign: char) -> usize {
    if sign == '\t' { 4 } else { 1 }
}
