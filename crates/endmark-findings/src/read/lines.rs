//! Splits a text into lines with positions.

use std::borrow::Cow;

use memchr::memchr;

use crate::Position;

/// A line without its line break.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    pub(super) text: Cow<'a, str>,
    /// The length of the line in the source, in bytes.
    length: usize,
    /// The line number, from 1.
    number: usize,
    /// The byte offset at which the line begins.
    pub(super) byte: usize,
    /// Whether a line break ends the line. The last line of a cut text has none.
    pub(super) is_terminated: bool,
    /// The offset of the first invalid UTF-8 in the line, which was replaced.
    pub(super) invalid_utf8_at: Option<usize>,
}

/// The byte order mark that some editors add.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Returns the lines of a text in order, without an empty last line.
pub(super) fn split_lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
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
    Line { text, length: bytes.len(), number, byte, is_terminated: is_settled, invalid_utf8_at: broken_at }
}

impl Line<'_> {
    /// Returns the position of a byte offset in this line's text. If bytes were replaced before it, the position is
    /// only approximate, but stays within the line.
    pub(super) fn position(&self, byte: usize) -> Position {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let column = before.chars().count() + 1;
        Position { line: self.number, column, byte: self.byte + before.len().min(self.length) }
    }

    /// Returns the position of the first character that is not white space.
    pub(super) fn start_position(&self) -> Position {
        self.position(self.text.len() - self.text.trim_start().len())
    }

    /// Returns the position after the last character of the line.
    pub(super) fn end_position(&self) -> Position {
        Position { byte: self.byte + self.length, ..self.position(self.text.len()) }
    }

    /// Returns the position of the text's end if this is its last line: after the line break, if there is one.
    pub(super) fn text_end(&self, bytes: usize) -> Position {
        if self.is_terminated {
            Position { line: self.number + 1, column: 1, byte: bytes }
        } else {
            self.end_position()
        }
    }

    /// Whether the line is empty and complete. A line of spaces does not count, because it may belong to evidence.
    pub(super) fn is_empty(&self) -> bool {
        self.is_terminated && self.text.is_empty()
    }

    /// Returns the indentation in columns.
    pub(super) fn indent(&self) -> usize {
        let spaces = self.text.chars().take_while(|ch| ch.is_whitespace());
        spaces.map(column_width).sum()
    }

    /// Returns the text without this many columns of indentation, or without all of it if there is less.
    pub(super) fn outdent(&self, indent: usize) -> &str {
        let (mut left, mut rest) = (indent, self.text.as_ref());
        while left > 0 {
            let Some(ch) = rest.chars().next().filter(|ch| ch.is_whitespace()) else { break };
            left = left.saturating_sub(column_width(ch));
            rest = &rest[ch.len_utf8()..];
        }
        rest
    }
}

/// Returns the width of a character. A tab counts as four columns.
fn column_width(ch: char) -> usize {
    if ch == '\t' { 4 } else { 1 }
}
