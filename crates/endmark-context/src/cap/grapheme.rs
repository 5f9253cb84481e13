//! Where a text may be cut: between two graphemes.

use unicode_segmentation::GraphemeCursor;

/// The last boundary between graphemes at or before this byte; 0 where there is none but the beginning.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    // The whole text is one chunk, so that nothing can be missing; where the crate says otherwise, nothing is kept.
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
    fn no_character_and_no_grapheme_is_split() {
        for (text, at, expected) in [
            ("abc", 3, 3),
            ("abc", 9, 3),
            ("aé", 2, 1),
            ("ae\u{301}", 2, 1),
            ("a\r\nb", 2, 1),
            ("👩‍👩‍👧", 7, 0),
            ("🇩🇪🇫🇷", 12, 8),
        ] {
            assert_eq!(boundary(text, at), expected, "{text:?}");
        }
    }
}
