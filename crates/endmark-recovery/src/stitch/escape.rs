//! Handles JSON escapes that the cut went through.
//!
//! A model that continues its own message writes the remaining digits of the escape. Any other model may
//! write the character itself. The received part of the escape limits which characters are possible.

use super::joint::Joint;

/// ASCII characters that documents escape as `\u` so that they can be embedded in HTML.
const HTML_ESCAPED_CHARACTERS: [char; 4] = ['<', '>', '&', '\''];

/// Words of one or two hexadecimal digits, in several languages.
const SHORT_HEXADECIMAL_WORDS: [&str; 5] = ["a", "ad", "be", "da", "de"];

/// Whether the cut went through an escape, and the continuation has a matching character at `start`.
pub(super) fn completes_escape(joint: &Joint<'_>, start: usize) -> bool {
    let (Some(cut_part), Some(sign)) = (cut_escape(joint), joint.continuation[start..].chars().next()) else {
        return false;
    };
    let is_escaped = !sign.is_ascii() || HTML_ESCAPED_CHARACTERS.contains(&sign);
    let units =
        sign.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>();
    is_escaped && units.concat().starts_with(&cut_part.to_ascii_lowercase())
}

/// Whether the cut went through an escape.
pub(super) fn is_cut_in_escape(joint: &Joint<'_>) -> bool {
    cut_escape(joint).is_some()
}

/// Whether a lone surrogate would remain, because no escape follows the cut at `start`.
pub(super) fn leaves_lone_surrogate(joint: &Joint<'_>, start: usize) -> bool {
    let is_half = |cut_part: &str| cut_part.len() == "\\ud83d".len();
    cut_escape(joint).is_some_and(is_half) && !joint.continuation[start..].starts_with('\\')
}

/// Whether the text at `start` may be a word as well as the missing digits of an escape, such as `Cafe` after
/// `\u00`.
pub(super) fn may_be_a_word(joint: &Joint<'_>, start: usize) -> bool {
    let tail =
        cut_escape(joint).and_then(|cut_part| cut_part.get(cut_part.rfind('\\')?..)).unwrap_or_default();
    let lacking = "\\u00e9".len().saturating_sub(tail.len());
    let rest = &joint.continuation[start..];
    let word = rest.split(|character: char| !character.is_alphabetic()).next().unwrap_or_default();
    let Some(digits) = word.get(..lacking).filter(|_| tail.starts_with("\\u") && lacking > 0) else {
        return false;
    };
    if !digits.chars().all(|sign| sign.is_ascii_hexdigit()) {
        return false;
    }
    if word.len() == lacking {
        return lacking > 2 || SHORT_HEXADECIMAL_WORDS.contains(&word.to_ascii_lowercase().as_str());
    }
    // All digits of an escape have the same letter case, and no word begins with two of these consonants.
    let is_mixed = digits.contains(|character: char| character.is_ascii_uppercase())
        && digits.contains(|character: char| character.is_ascii_lowercase());
    let mut signs = word.chars().map(|sign| sign.to_ascii_lowercase());
    let opens = matches!((signs.next(), signs.next()), (Some('b' | 'c' | 'd' | 'f'), Some(sign)) if !"aeiouylrh".contains(sign));
    is_mixed || !opens
}

/// Returns the received part of the escape, or `None` if the cut is not in an escape.
fn cut_escape<'a>(joint: &Joint<'a>) -> Option<&'a str> {
    let cut_part =
        joint.initial.get(joint.settled_bytes..).filter(|_| joint.in_text && joint.has_grammar())?;
    cut_part.starts_with('\\').then_some(cut_part)
}

#[cfg(test)]
mod tests {
    use crate::stitch::{AskedFrom, MergeError, Merged, merge_chunks};
    use endmark_text::Format;

    const BEFORE: &str = r#"{"title": "A day at the sea", "text": "We had a coffee at the caf"#;
    const AFTER: &str = r#" and went home."}"#;
    const NOT_FROM_TOKEN: [AskedFrom; 2] = [AskedFrom::Cut, AskedFrom::Unknown];

    fn merge_escape(first: &str, rest: &str, from: AskedFrom) -> Result<Merged, MergeError> {
        merge_chunks(first, rest, &Format::Json, from)
    }

    #[test]
    fn an_escape_is_completed_by_digits_or_by_its_character() {
        for (escape, letter) in
            [(r"\u00e9", "é"), (r"\u20AC", "€"), (r"\ud83d\ude00", "😀"), (r"\u003c", "<")]
        {
            for at in 1..escape.len() {
                let (cut_part, digits) = escape.split_at(at);
                let first = [BEFORE, cut_part].concat();
                for from in NOT_FROM_TOKEN {
                    let joined = merge_escape(&first, &[digits, AFTER].concat(), from).unwrap().text;
                    assert_eq!(joined, [BEFORE, escape, AFTER].concat(), "{cut_part} {from:?}");
                    if letter == "<" && at < 3 {
                        // ASCII control characters have shorter escapes.
                        continue;
                    }
                    let joined = merge_escape(&first, &[letter, AFTER].concat(), from).unwrap().text;
                    assert_eq!(joined, [BEFORE, letter, AFTER].concat(), "{cut_part} {from:?}");
                }
            }
        }
    }

    #[test]
    fn a_word_that_may_be_digits_decides_nothing() {
        for (cut_part, word) in [
            (r"\u00", "Cafe"),
            (r"\u00", "eat"),
            (r"\u00", "be"),
            (r"\u00e", "and"),
            (r"\u0", "added"),
            (r"\u", "face"),
            (r"\u", "Decades"),
            (r"\ud83d\u", "faced"),
        ] {
            let (first, rest) = ([BEFORE, cut_part].concat(), [word, AFTER].concat());
            for from in NOT_FROM_TOKEN {
                let joined = merge_escape(&first, &rest, from);
                assert!(joined.is_err(), "{cut_part} {word} {from:?}: {joined:?}");
            }
        }
        // These digits cannot begin a word.
        for (cut_part, rest) in
            [(r"\u00", "fcber"), (r"\u00", "e9 and"), (r"\u00e", "4gypten"), (r"\u00", "ea"), (r"\u", "00df")]
        {
            for from in NOT_FROM_TOKEN {
                let joined =
                    merge_escape(&[BEFORE, cut_part].concat(), &[rest, AFTER].concat(), from).unwrap().text;
                assert_eq!(joined, [BEFORE, cut_part, rest, AFTER].concat(), "{from:?}");
            }
        }
    }

    #[test]
    fn a_character_with_a_cut_escape_is_not_lost() {
        for cut_part in [r"\", r"\u", r"\u00", r"\ud83d", r"\ud83d\ude"] {
            for from in NOT_FROM_TOKEN {
                let joined = merge_escape(&[BEFORE, cut_part].concat(), AFTER, from);
                assert!(joined.is_err(), "{cut_part} {from:?}: {joined:?}");
            }
        }
        // The received part of the escape cannot begin an escape of this character.
        for (cut_part, letter) in [(r"\u20", "é"), (r"\u00e8", "é"), (r"\ud83d", "𝄞")] {
            let joined =
                merge_escape(&[BEFORE, cut_part].concat(), &[letter, AFTER].concat(), AskedFrom::Cut);
            // `\u00e8` is already complete.
            assert_eq!(joined.is_ok(), cut_part == r"\u00e8", "{cut_part}: {joined:?}");
        }
    }
}
