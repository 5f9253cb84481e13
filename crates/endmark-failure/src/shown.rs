//! Makes untrusted text safe for a terminal.

use std::ops::RangeInclusive;

/// Characters that change the text direction or end a line: the marks, embeddings, overrides and isolates of
/// Unicode Standard Annex 9, and the line and paragraph separators.
const DIRECTION_AND_LINE_CONTROLS: [RangeInclusive<char>; 4] =
    ['\u{61c}'..='\u{61c}', '\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];

/// Returns the text on one line, with all terminal control characters escaped.
pub fn to_single_line(text: &str) -> String {
    text.chars().flat_map(escape_control).collect()
}

/// Returns the text with its line feeds, but with all other terminal control characters escaped.
pub fn to_safe_lines(text: &str) -> String {
    text.split('\n').map(to_single_line).collect::<Vec<_>>().join("\n")
}

/// Returns the character, escaped if it is a control character or changes the text direction.
pub fn escape_control(character: char) -> Vec<char> {
    if is_terminal_control(character) { character.escape_default().collect() } else { vec![character] }
}

/// Returns whether a terminal would act on this character instead of displaying it.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control() || DIRECTION_AND_LINE_CONTROLS.iter().any(|range| range.contains(&character))
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
