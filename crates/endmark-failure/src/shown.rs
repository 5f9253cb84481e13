//! Makes untrusted text safe for a terminal.

use std::ops::RangeInclusive;

/// Characters that change the text direction or end a line: the marks, embeddings, overrides and isolates of Unicode
/// Standard Annex 9, and the line and paragraph separators.
const DIRECTIONS: [RangeInclusive<char>; 4] =
    ['\u{61c}'..='\u{61c}', '\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];

/// Returns the text on one line, with all terminal control characters escaped.
pub fn to_single_line(text: &str) -> String {
    text.chars().flat_map(visible).collect()
}

/// Returns the text with its line feeds, and all other terminal control characters escaped.
pub fn to_safe_lines(text: &str) -> String {
    text.split('\n').map(to_single_line).collect::<Vec<_>>().join("\n")
}

/// Returns the character, escaped if it is a control character or changes the text direction.
pub fn visible(character: char) -> Vec<char> {
    if acts(character) { character.escape_default().collect() } else { vec![character] }
}

/// Whether a terminal acts on this character instead of showing it.
pub fn acts(character: char) -> bool {
    character.is_control() || DIRECTIONS.iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_in_model_text_are_escaped() {
        assert_eq!(to_single_line("a\x1b[2Jb\nc\u{9b}é"), "a\\u{1b}[2Jb\\nc\\u{9b}é");
        assert_eq!(to_safe_lines("a\r\nb\tc"), "a\\r\nb\\tc");
        assert_eq!(to_single_line("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
    }
}
