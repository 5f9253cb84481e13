//! Detects quotation marks around the whole rest.

use std::ops::Range;

/// Pairs of marks that begin and end a quotation.
const MARKS: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('»', '«'), ('「', '」'), ('`', '`')];

/// Prefixes that code writes directly before a string.
const STRING_PREFIXES: [&str; 14] =
    ["f", "r", "b", "u", "c", "L", "R", "U", "u8", "rb", "br", "rf", "fr", "cr"];

/// Returns the content of the quotation of which a text consists. Returns `None` if it has several.
pub(super) fn inside(text: &str) -> Option<Range<usize>> {
    let begins = text.len() - text.trim_start().len();
    let (open, close) = mark(&text[begins..])?;
    let inner = text[begins + open.len_utf8()..].trim_end().strip_suffix(close)?;
    let is_one = !inner.contains([open, close]) && !inner.trim().is_empty() && !inner.ends_with('\\');
    let start = begins + open.len_utf8();
    is_one.then_some(start..start + inner.len())
}

/// Whether a text that is still arriving may become a single quotation.
pub(super) fn may_be_one(text: &str) -> bool {
    let text = text.trim_start();
    let Some((open, close)) = mark(text) else { return false };
    let rest = &text[open.len_utf8()..];
    rest.find([open, close]).is_none_or(|at| {
        let behind = &rest[at..];
        behind[behind.chars().next().map_or(0, char::len_utf8)..].trim().is_empty()
    })
}

/// Whether the last paragraph of a text ends inside a quotation.
pub(super) fn is_open(text: &str) -> bool {
    let paragraph = text.rsplit("\n\n").next().unwrap_or_default();
    MARKS.iter().any(|(open, close)| {
        let count = |mark: char| paragraph.matches(mark).count();
        if open == close { count(*open) % 2 == 1 } else { count(*open) > count(*close) }
    })
}

/// Whether a text begins with a quotation mark and letters that cannot continue the preceding word: `"ill` after `st`.
pub(super) fn breaks_word(before: &str, text: &str) -> bool {
    let Some((open, _)) = mark(text) else { return false };
    let word = before.rsplit(|sign: char| !sign.is_alphanumeric()).next().unwrap_or_default();
    before.ends_with(char::is_lowercase)
        && text[open.len_utf8()..].starts_with(char::is_lowercase)
        && !STRING_PREFIXES.contains(&word)
}

/// Returns the mark that begins a text, and the mark that ends the quotation. A code fence is not a quotation.
fn mark(text: &str) -> Option<(char, char)> {
    let first = text.chars().next()?;
    MARKS.into_iter().find(|(open, _)| *open == first).filter(|_| !text.starts_with("``"))
}

#[cfg(test)]
mod tests {
    use super::{breaks_word, inside, is_open, may_be_one};

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
            assert_eq!(inside(text).map(|range| &text[range]), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_may_be_a_quotation_until_text_follows_its_end() {
        for (text, expected) in
            [("\"ill that", true), ("\"ill.\" \n", true), ("\"ill,\" he said", false), ("ill", false)]
        {
            assert_eq!(may_be_one(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_quotation_is_open_in_its_paragraph() {
        for (text, expected) in
            [("He said: \"the", true), ("\"so\" he", false), ("\"a\n\nlater he", false), ("»so", true)]
        {
            assert_eq!(is_open(text), expected, "{text:?}");
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
