//! A text as lines, with the place of each.

use std::borrow::Cow;

use memchr::memchr;

use crate::Position;

/// A line without its line break.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    pub(super) text: Cow<'a, str>,
    /// What it was decoded from.
    bytes: &'a [u8],
    /// From 1.
    pub(super) number: usize,
    /// Where it begins, in bytes.
    pub(super) byte: usize,
    /// Whether a line break ends it; the last line of a cut text has none.
    pub(super) is_settled: bool,
    /// Where in it bytes are no UTF-8, and had to be replaced.
    pub(super) broken_at: Option<usize>,
}

/// The mark some editors set before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// All lines of a text; an empty one at its end is none.
pub(super) fn lines(bytes: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut byte = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    while byte < bytes.len() {
        let rest = &bytes[byte..];
        let (line, taken, is_settled) = match memchr(b'\n', rest) {
            Some(end) => (&rest[..end], end + 1, true),
            None => (rest, rest.len(), false),
        };
        lines.push(decoded(line, lines.len() + 1, byte, is_settled));
        byte += taken;
    }
    lines
}

fn decoded(bytes: &[u8], number: usize, byte: usize, is_settled: bool) -> Line<'_> {
    // A cut between carriage return and line feed leaves the former.
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let (text, broken_at) = match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), None),
        // A character that is cut at the end of the text is no mistake of the text.
        Err(error) if !is_settled && error.error_len().is_none() => {
            let valid = &bytes[..error.valid_up_to()];
            (String::from_utf8_lossy(valid), None)
        }
        Err(error) => (String::from_utf8_lossy(bytes), Some(error.valid_up_to())),
    };
    Line { text, bytes, number, byte, is_settled, broken_at }
}

impl Line<'_> {
    /// A place in this line, so many bytes of its text behind its beginning.
    pub(super) fn position(&self, byte: usize) -> Position {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let column = before.chars().count() + 1;
        Position { line: self.number, column, byte: self.byte + self.undecoded(before.len()) }
    }

    /// How many bytes so many bytes of the text were decoded from.
    fn undecoded(&self, text: usize) -> usize {
        if self.broken_at.is_none_or(|broken| text <= broken) {
            return text;
        }
        let (mut read, mut decoded) = (0, 0);
        for chunk in self.bytes.utf8_chunks() {
            let valid = chunk.valid().len();
            if text <= decoded + valid {
                return read + text.saturating_sub(decoded);
            }
            read += valid + chunk.invalid().len();
            decoded += valid + char::REPLACEMENT_CHARACTER.len_utf8();
        }
        read
    }

    /// Where its first sign is.
    pub(super) fn begins(&self) -> Position {
        self.position(self.text.len() - self.text.trim_start().len())
    }

    /// Where it stops.
    pub(super) fn ends(&self) -> Position {
        self.position(self.text.len())
    }

    /// Where the text stops whose last line this is, and which has so many bytes: behind its line break, if it has one.
    pub(super) fn end_of_text(&self, bytes: usize) -> Position {
        if self.is_settled { Position { line: self.number + 1, column: 1, byte: bytes } } else { self.ends() }
    }

    /// Whether there is nothing in it, and so it separates; spaces alone may be a line of evidence.
    pub(super) fn is_empty(&self) -> bool {
        self.is_settled && self.text.is_empty()
    }
}

/// How far a line is indented, in characters; a tab counts as four.
pub(super) fn indent(text: &str) -> usize {
    let white = text.chars().take_while(|character| character.is_whitespace());
    white.map(|character| if character == '\t' { 4 } else { 1 }).sum()
}

/// The line without so much indentation, or without all it has.
pub(super) fn outdented(text: &str, columns: usize) -> &str {
    let mut left = columns;
    let mut rest = text;
    while left > 0 {
        let Some(character) = rest.chars().next().filter(|character| character.is_whitespace()) else {
            break;
        };
        left = left.saturating_sub(if character == '\t' { 4 } else { 1 });
        rest = &rest[character.len_utf8()..];
    }
    rest
}

/// The line without so many signs of a quotation before it.
pub(super) fn unquoted(text: &str, depth: usize) -> &str {
    let mut rest = text;
    for _ in 0..depth {
        let Some(inner) = rest.trim_start().strip_prefix('>') else { break };
        rest = inner.strip_prefix(' ').unwrap_or(inner);
    }
    rest
}

/// How many signs of a quotation a line begins with.
pub(super) fn quote_depth(text: &str) -> usize {
    let mut depth = 0;
    let mut rest = text.trim_start();
    while let Some(inner) = rest.strip_prefix('>') {
        depth += 1;
        rest = inner.trim_start();
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_bytes_and_columns_those_of_the_signs() {
        let text = b"\xef\xbb\xbfa\n\xff\xe9b\xffc\n";
        let lines = lines(text);
        let places: Vec<(usize, usize)> =
            lines.iter().map(|line| (line.ends().byte, line.ends().column)).collect();
        assert_eq!(places, [(4, 2), (10, 6)]);
        let b = lines[1].text.find('b').unwrap();
        assert_eq!(text[lines[1].position(b).byte], b'b');
        let c = lines[1].text.find('c').unwrap();
        assert_eq!(text[lines[1].position(c).byte], b'c');
        assert_eq!(lines[0].begins(), Position { line: 1, column: 1, byte: 3 });
    }
}
