//! Converts byte offsets to lines and columns.

use std::ops::Range;

/// The maximum number of characters in a quotation.
const QUOTE_LIMIT_CHARACTERS: usize = 160;

/// Converts offsets to lines and columns. Queries in ascending order scan the text only once, even if it is
/// one long line.
pub(crate) struct PositionFinder<'t> {
    text: &'t str,
    /// The offset of the last query. Its line and column count from 1.
    offset: usize,
    line: usize,
    column: usize,
}

impl<'t> PositionFinder<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        // A byte order mark does not count as a character of the first line.
        let offset = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
        Self { text, offset, line: 1, column: 1 }
    }

    /// Returns the line and the column of an offset, both from 1. The column counts characters.
    pub(crate) fn line_and_column(&mut self, offset: usize) -> (usize, usize) {
        if offset < self.offset {
            *self = Self::new(self.text);
        }
        let passed = self.text.get(self.offset..offset).unwrap_or_default();
        let line_starts = memchr::memrchr(b'\n', passed.as_bytes()).map(|newline| newline + 1);
        if let Some(start) = line_starts {
            self.line += memchr::memchr_iter(b'\n', passed.as_bytes()).count();
            self.column = 1 + passed[start..].chars().count();
        } else {
            self.column += passed.chars().count();
        }
        self.offset = offset.max(self.offset);
        (self.line, self.column)
    }

    /// Returns the first line of a range, shortened for a report.
    pub(crate) fn quote(&self, range: Range<usize>) -> String {
        let text = self.text[range].trim();
        let line = text.lines().next().unwrap_or_default().trim_end();
        match line.char_indices().nth(QUOTE_LIMIT_CHARACTERS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_correctly() {
        let text = "\u{feff}äb\r\nxyz\n\nend";
        let mut places = PositionFinder::new(text);
        for (word, expected) in [("b", (1, 2)), ("z", (2, 3)), ("end", (4, 1)), ("x", (2, 1))] {
            assert_eq!(places.line_and_column(text.find(word).unwrap()), expected, "{word}");
        }
        assert_eq!(places.line_and_column(text.len()), (4, 4));
    }

    #[test]
    fn a_quote_is_one_short_line() {
        assert_eq!(PositionFinder::new("  a b \n c").quote(0..8), "a b");
        let long = "é".repeat(200);
        let quote = PositionFinder::new(&long).quote(0..long.len());
        assert_eq!(quote.chars().count(), QUOTE_LIMIT_CHARACTERS + 1);
        assert!(quote.ends_with('…'));
    }
}
