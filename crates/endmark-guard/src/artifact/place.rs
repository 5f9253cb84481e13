//! From byte offsets to lines and columns, as people count them.

use std::ops::Range;

/// How many characters of a text are quoted at most.
const QUOTE_LIMIT_CHARACTERS: usize = 160;

/// Gives lines and columns; asked in the order of offsets, it reads a text once.
pub(crate) struct Places<'t> {
    text: &'t str,
    /// The start of the line that was last asked for, and its number from 1.
    line_start: usize,
    line: usize,
}

impl<'t> Places<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, line_start: 0, line: 1 }
    }

    /// The line and the column of an offset, both from 1; columns are characters.
    pub(crate) fn of(&mut self, offset: usize) -> (usize, usize) {
        if offset < self.line_start {
            *self = Self::new(self.text);
        }
        let passed = &self.text.as_bytes()[self.line_start..offset];
        self.line += memchr::memchr_iter(b'\n', passed).count();
        self.line_start += memchr::memrchr(b'\n', passed).map_or(0, |newline| newline + 1);
        let before = &self.text[self.line_start..offset];
        // A byte order mark is no character of the first line.
        let before =
            if self.line_start == 0 { before.strip_prefix('\u{feff}').unwrap_or(before) } else { before };
        (self.line, before.chars().count() + 1)
    }

    /// What stands there: its first line, as far as it is worth reading.
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
    fn columns_are_characters_and_lines_end_where_they_end() {
        let text = "\u{feff}äb\r\nxyz\n\nend";
        let mut places = Places::new(text);
        for (word, expected) in [("b", (1, 2)), ("z", (2, 3)), ("end", (4, 1)), ("x", (2, 1))] {
            assert_eq!(places.of(text.find(word).unwrap()), expected, "{word}");
        }
        assert_eq!(places.of(text.len()), (4, 4));
    }

    #[test]
    fn a_quote_is_one_line_and_not_long() {
        assert_eq!(Places::new("  a b \n c").quote(0..8), "a b");
        let long = "é".repeat(200);
        let quote = Places::new(&long).quote(0..long.len());
        assert_eq!(quote.chars().count(), QUOTE_LIMIT_CHARACTERS + 1);
        assert!(quote.ends_with('…'));
    }
}
