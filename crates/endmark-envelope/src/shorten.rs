//! Shortens a text in a JSON document, and measures its size in JSON. (EN-5)

use unicode_segmentation::GraphemeCursor;

/// Returns the size of a character in a JSON string, in bytes.
pub fn json_width(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Returns the size of a text in a JSON string, in bytes, without its quotation marks.
pub(crate) fn json_bytes(text: &str) -> usize {
    text.chars().map(json_width).sum()
}

/// Returns the longest beginning of a text that has at most this many bytes in JSON and splits no grapheme.
pub(crate) fn longest_prefix(text: &str, at_most: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, character)| {
        taken += json_width(*character);
        taken > at_most
    });
    match end {
        None => text,
        Some((end, _)) => &text[..grapheme_boundary(text, end)],
    }
}

/// Returns the last grapheme boundary at or before this byte, or 0.
///
/// ```
/// assert_eq!(endmark_envelope::grapheme_boundary("e\u{301}a", 2), 0);
/// ```
pub fn grapheme_boundary(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    // The whole text is one chunk, so no context is missing. If the crate reports otherwise, keep nothing.
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        Ok(false) => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_equals_the_serialised_length() {
        for text in ["", "a\"b\\c", "\n\r\t\u{8}\u{c}\u{1f}\0", "é😀\u{7f}\u{2028}"] {
            let written = serde_json::to_string(text).unwrap();
            assert_eq!(json_bytes(text) + 2, written.len(), "{text:?}");
        }
    }

    #[test]
    fn a_boundary_is_between_graphemes() {
        for (text, at, expected) in [
            ("abc", 3, 3),
            ("abc", 9, 3),
            ("aé", 2, 1),
            ("ae\u{301}", 2, 1),
            ("a\r\nb", 2, 1),
            ("👩‍👩‍👧", 7, 0),
            ("🇩🇪🇫🇷", 12, 8),
        ] {
            assert_eq!(grapheme_boundary(text, at), expected, "{text:?}");
        }
    }

    #[test]
    fn no_character_and_no_grapheme_is_split() {
        let family = "👩‍👩‍👧";
        for (text, at_most, expected) in [
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("aé", 2, "a"),
            ("a\nb", 2, "a"),
            ("ae\u{301}", 2, "a"),
            (family, family.len() - 1, ""),
            ("a\r\nb", 3, "a"),
            ("🇩🇪🇫🇷", 12, "🇩🇪"),
        ] {
            assert_eq!(longest_prefix(text, at_most), expected, "{text:?}");
        }
    }
}
