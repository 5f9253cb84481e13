//! Splits text in any script into words.

use std::ops::Range;

/// Scripts without spaces between words. Each of their characters is a separate word.
const UNSPACED: &[std::ops::RangeInclusive<char>] = &[
    '\u{0e00}'..='\u{0eff}',
    '\u{3005}'..='\u{3007}',
    '\u{3040}'..='\u{30ff}',
    '\u{3400}'..='\u{9fff}',
    '\u{ac00}'..='\u{d7af}',
    '\u{f900}'..='\u{faff}',
    '\u{20000}'..='\u{3ffff}',
];

/// Returns whether a character is a word of its own.
pub(crate) fn is_unspaced(character: char) -> bool {
    character >= '\u{0e00}' && UNSPACED.iter().any(|range| range.contains(&character))
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '’')
}

/// Returns the words of a text as byte ranges.
pub(crate) fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut open: Option<usize> = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let continues = is_word_character(character) && !is_unspaced(character)
            || (open.is_some() && is_apostrophe(character) && next.is_some_and(char::is_alphanumeric));
        if continues {
            open.get_or_insert(at);
            continue;
        }
        if let Some(start) = open.take() {
            words.push(start..at);
        }
        if is_unspaced(character) && is_word_character(character) {
            words.push(at..at + character.len_utf8());
        }
    }
    words.extend(open.map(|start| start..text.len()));
    words
}

/// Returns whether a word equals a lower-case word, ignoring case.
pub(crate) fn is_same(word: &str, lower: &str) -> bool {
    if first_letters_differ(word, lower) {
        return false;
    }
    word.eq_ignore_ascii_case(lower)
        || ((!word.is_ascii() || word.contains('_')) && lowercase_chars(word).eq(lower.chars()))
}

/// Returns whether a word begins with a lower-case prefix, ignoring case.
pub(crate) fn begins_with(word: &str, lower: &str) -> bool {
    if first_letters_differ(word, lower) {
        return false;
    }
    let mut characters = lowercase_chars(word);
    lower.chars().all(|expected| characters.next() == Some(expected))
}

/// Returns whether the first characters are different ASCII letters. This decides nearly every comparison.
fn first_letters_differ(word: &str, lower: &str) -> bool {
    match (word.as_bytes().first(), lower.as_bytes().first()) {
        (Some(first), Some(expected)) => {
            first.is_ascii_alphabetic()
                && expected.is_ascii_alphabetic()
                && !first.eq_ignore_ascii_case(expected)
        }
        _ => false,
    }
}

fn lowercase_chars(word: &str) -> impl Iterator<Item = char> {
    let straight = |character| if is_apostrophe(character) { '\'' } else { character };
    word.trim_matches('_').chars().map(straight).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(text: &str) -> Vec<&str> {
        words(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn words_end_by_the_rules_of_their_script() {
        assert_eq!(split_words("I’ll go-on, x_y 3.5"), ["I’ll", "go", "on", "x_y", "3", "5"]);
        assert_eq!(split_words("未完, to be"), ["未", "完", "to", "be"]);
        assert_eq!(split_words("**'quoted'**"), ["quoted"]);
        assert_eq!(split_words(""), Vec::<&str>::new());
    }

    #[test]
    fn case_and_apostrophe_style_are_ignored() {
        assert!(is_same("I’LL", "i'll") && is_same("Être", "être") && is_same("_To", "to"));
        assert!(!is_same("être", "etre"));
        assert!(begins_with("Unveränderter", "unverändert") && !begins_with("un", "unver"));
    }
}
