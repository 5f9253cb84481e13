//! Normalises text as Claude's tokenizer does.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

/// Thai SARA AM written as two characters. It counts as the single character.
const THAI_AM_IN_TWO: &str = "\u{e4d}\u{e32}";
const THAI_NIKHAHIT: char = '\u{e4d}';
const THAI_AM: &str = "\u{e33}";

/// Returns the text in Unicode's composed form, without control and private-use characters, and with only one
/// kind of space. Composition never crosses a newline, so each line is normalised separately; most lines need
/// no change.
pub(super) fn normalise_text(text: &str, folds_quotes: bool) -> Cow<'_, str> {
    if is_normal(text) {
        return Cow::Borrowed(text);
    }
    let mut normal = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if is_normal(line) {
            normal.push_str(line);
        } else {
            normalise_line(line, folds_quotes, &mut normal);
        }
    }
    Cow::Owned(normal)
}

fn is_normal(text: &str) -> bool {
    let is_plain = |all: bool, byte: &u8| all & matches!(byte, b'\t' | b'\n' | b' '..=b'~');
    // Checking whole chunks without an early exit lets the compiler compare many bytes at once.
    text.as_bytes().chunks(64).all(|chunk| chunk.iter().fold(true, is_plain))
}

fn normalise_line(line: &str, folds_quotes: bool, into: &mut String) {
    let read = |c: char| match c {
        '\u{e000}'..='\u{f8ff}' => None,
        '\0'
        | '\u{a0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200a}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202f}'
        | '\u{205f}' => Some(' '),
        '\u{2018}' | '\u{2019}' if folds_quotes => Some('\''),
        '\u{201c}' | '\u{201d}' if folds_quotes => Some('"'),
        other => Some(other),
    };
    let composed = line.nfc().filter(|c| !is_dropped_control(*c));
    // The two characters may have become neighbours because a character between them was dropped.
    if line.contains(THAI_NIKHAHIT) {
        let composed = composed.collect::<String>().replace(THAI_AM_IN_TWO, THAI_AM);
        into.extend(composed.chars().filter_map(read));
    } else {
        into.extend(composed.filter_map(read));
    }
}

/// Whether the character is a control character that is dropped: not tab, newline, or NUL, which becomes a
/// space.
fn is_dropped_control(c: char) -> bool {
    matches!(c, '\u{1}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}
