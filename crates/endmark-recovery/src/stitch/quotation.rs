//! Detects quotation marks around the whole rest.

use std::ops::Range;

/// Pairs of opening and closing quotation marks.
const QUOTATION_MARKS: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('»', '«'), ('「', '」'), ('`', '`')];

/// Prefixes that code writes directly before a string.
const STRING_PREFIXES: [&str; 14] =
    ["f", "r", "b", "u", "c", "L", "R", "U", "u8", "rb", "br", "rf", "fr", "cr"];

/// Returns the content of a text that is a single quotation, or `None` for other texts.
pub(super) fn single_quotation_content(text: &str) -> Option<Range<usize>> {
    let begins = text.len() - text.trim_start().len();
    let (open, close) = enclosing_marks(&text[begins..])?;
    let inner = text[begins + open.len_utf8()..].trim_end().strip_suffix(close)?;
    let is_one = !inner.contains([open, close]) && !inner.trim().is_empty() && !inner.ends_with('\\');
    let start = begins + open.len_utf8();
    is_one.then_some(start..start + inner.len())
}

/// Whether a growing text may become a single quotation.
pub(super) fn may_become_single_quotation(text: &str) -> bool {
    let text = text.trim_start();
    let Some((open, close)) = enclosing_marks(text) else { return false };
    let rest = &text[open.len_utf8()..];
    rest.find([open, close]).is_none_or(|at| {
        let behind = &rest[at..];
        behind[behind.chars().next().map_or(0, char::len_utf8)..].trim().is_empty()
    })
}

/// Whether the last paragraph of a text ends inside a quotation.
pub(super) fn ends_in_quotation(text: &str) -> bool {
    let paragraph = text.rsplit("\n\n").next().unwrap_or_default();
    QUOTATION_MARKS.iter().any(|(open, close)| {
        let count = |mark: char| paragraph.matches(mark).count();
        if open == close { count(*open) % 2 == 1 } else { count(*open) > count(*close) }
    })
}

/// Whether a text begins with a quotation mark in the middle of a word, such as `"ill` after `st`.
pub(super) fn breaks_word(before: &str, text: &str) -> bool {
    let Some((open, _)) = enclosing_marks(text) else { return false };
    let word = before.rsplit(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    before.ends_with(char::is_lowercase)
        && text[open.len_utf8()..].starts_with(char::is_lowercase)
        && !STRING_PREFIXES.contains(&word)
}

/// Returns the opening quotation mark of a text, and its closing counterpart. A code fence does not count.
fn enclosing_marks(text: &str) -> Option<(char, char)> {
    let first = text.chars().next()?;
    QUOTATION_MARKS.into_iter().find(|(open, _)| *open == first).filter(|_| !text.starts_with("``"))
}

#[cfg(test)]
mod tests {
    use super::{breaks_word, ends_in_quotation, may_become_single_quotation, single_quotation_content};

    #[test]
    fn one_quotation_is_distinguished_from_several() {
        for (text, expected) in [
            (" \"ill that morning.\"\n", Some("ill that morning.")),
            ("„noch still.“", Some("noch still.")),
            ("`ill`", Some("ill")),
            ("\"hello\" and left, \"at once\"", None),
            ("\"hello\" and left.", None),
            ("\"\"", None),
            ("\"a\\\"", None),
            ("```\nill\n```", None),
            ("ill \"that\"", None),
        ] {
            assert_eq!(single_quotation_content(text).map(|range| &text[range]), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_may_be_a_quotation_until_text_follows_its_end() {
        for (text, expected) in
            [("\"ill that", true), ("\"ill.\" \n", true), ("\"ill,\" he said", false), ("ill", false)]
        {
            assert_eq!(may_become_single_quotation(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_quotation_is_open_in_its_paragraph() {
        for (text, expected) in
            [("He said: \"the", true), ("\"so\" he", false), ("\"a\n\nlater he", false), ("»so", true)]
        {
            assert_eq!(ends_in_quotation(text), expected, "{text:?}");
        }
    }

    #[test]
    fn an_apostrophe_is_distinguished_from_a_code_string() {
        assert!(breaks_word("the boats lay st", "\"ill"));
        for (before, text) in [("print(f", "\"a\""), ("lay ", "\"ill"), ("st", "ill"), ("צה", "\"ל")] {
            assert!(!breaks_word(before, text), "{before}{text}");
        }
    }
}
