//! What of a text the tokenizer does not see.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

/// Thai SARA AM in two characters, which is read as the one.
const THAI_AM_IN_TWO: &str = "\u{e4d}\u{e32}";
const THAI_NIKHAHIT: char = '\u{e4d}';
const THAI_AM: &str = "\u{e33}";

/// The text in Unicode's composed form, without control and private characters, with one kind of space.
pub(super) fn normalised(text: &str, folds_quotes: bool) -> Cow<'_, str> {
    // Most texts are mostly this.
    if text.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
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
    let composed = text.nfc().filter(|c| !is_dropped_control(*c));
    // What is dropped may stand between the two.
    if !text.contains(THAI_NIKHAHIT) {
        return composed.filter_map(read).collect();
    }
    composed.collect::<String>().replace(THAI_AM_IN_TWO, THAI_AM).chars().filter_map(read).collect()
}

/// All controls but tab, newline and the null character, which is a space.
fn is_dropped_control(c: char) -> bool {
    matches!(c, '\u{1}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}
