//! Detects restarts: the continuation begins the text, a string, a line or a sentence again.
//!
//! A restart that continues through the cut is a repeated end, and not handled here. This module finds two
//! other kinds. Restarts that differ from the first part before the cut give no seam. Restarts of a text
//! without a grammar with different whitespace do.

use memchr::memmem;

use super::overlap::find_last;
use super::seam::AskedFrom;
use super::units::{CHARACTER_MASK, Units, character, is_content};

/// Minimum length, in characters, of a common beginning that is not a coincidence.
const MIN_SHARED_CHARS: usize = 14;

/// Minimum length, in bytes, of a repetition that is not a coincidence.
const MIN_REPEATED_BYTES: usize = 40;

/// Number of units of a text that are searched for other occurrences of a beginning.
const SEARCHED_UNITS: usize = 64_000;

/// Whether the continuation begins the cut text, or its last line or sentence, again, and differs from it
/// before the cut.
pub(super) fn diverges(initial: &Units<'_>, continuation: &Units<'_>) -> bool {
    let text_start = find_last(&initial.codes, |code| !is_content(code)).map_or(0, |quote| quote + 1);
    let text = &initial.codes[text_start..];
    let line = find_last(text, |code| code & CHARACTER_MASK == u32::from('\n')).map_or(0, |at| at + 1);
    let ends = |code: u32| [b'.', b'!', b'?'].map(u32::from).contains(&(code & CHARACTER_MASK));
    let mut before = text.len().saturating_sub(1);
    let sentence = std::iter::from_fn(|| {
        before = find_last(&text[..before], ends)?;
        Some(before + 1)
    })
    .find(|at| character(text[*at]).is_whitespace());
    [Some(0), Some(line), sentence.map(|at| at + 1)].into_iter().flatten().any(|anchor| {
        diverges_from_passage(text.get(anchor..).unwrap_or_default(), &continuation.codes, text)
    })
}

/// Whether the continuation begins the whole document again, and differs from it before the cut.
pub(super) fn diverges_from_start(initial: &Units<'_>, continuation: &Units<'_>) -> bool {
    diverges_from_passage(&initial.codes, &continuation.codes, &initial.codes)
}

/// Whether `head` begins like `path` for longer than by chance, and differs from it before the end of `path`.
fn diverges_from_passage(path: &[u32], head: &[u32], text: &[u32]) -> bool {
    let shared = path.iter().zip(head).take_while(|(left, right)| left == right).count();
    if shared == path.len() || shared == head.len() || shared < MIN_SHARED_CHARS {
        return false;
    }
    let beginning: Vec<char> = path[..shared.min(80)].iter().map(|code| character(*code)).collect();
    let words = beginning.split(|sign| !is_word_character(*sign)).filter(|word| !word.is_empty()).count();
    // A beginning that the text itself repeats, such as that of a list item, proves nothing.
    let sample = &path[..shared.min(64)];
    let searched = &text[text.len().saturating_sub(SEARCHED_UNITS)..];
    let places = searched.windows(sample.len()).filter(|window| *window == sample).take(3).count();
    words >= 3 && places < 3
}

/// A passage that occurs once in the first part and again in the continuation.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepeatedPassage {
    /// Its position in the continuation.
    pub(super) position: usize,
    /// The share of the surrounding text that is also repeated, from 0 to 1.
    pub(super) share: f64,
}

/// Returns the last passage after `added` that a continuation repeats and that occurs once in the first part.
/// The passage is the beginning of the first part or, if the continuation was not requested at the cut, its
/// end. A model that continues the text does not repeat it after the seam. A model that restarts after a
/// remark, quotes its input, or loops does. If a text itself contains a sentence twice, the text around it
/// differs.
pub(super) fn find_repeated_passage(
    initial: &str,
    continuation: &str,
    added: usize,
    from: AskedFrom,
) -> Option<RepeatedPassage> {
    let text = initial.trim();
    let (beginning, behind) = text.split_at(text.floor_char_boundary(MIN_REPEATED_BYTES));
    let (before, end) = text.split_at(text.ceil_char_boundary(text.len().saturating_sub(MIN_REPEATED_BYTES)));
    let is_telling = |part: &str| {
        part.len() >= MIN_REPEATED_BYTES - 4
            && part.split_whitespace().count() >= 3
            && memmem::find_iter(text.as_bytes(), part).take(2).count() == 1
    };
    let place = |part: &str| {
        let found = memmem::rfind(continuation.as_bytes(), part.as_bytes());
        found.filter(|at| *at >= added && is_telling(part))
    };
    // A loop also repeats the text after its beginning, and before its end.
    let of_beginning = place(beginning).map(|at| {
        let following = [head(behind), head(&continuation[added..at])].concat();
        RepeatedPassage {
            position: at,
            share: repeated_share(head(&following), head(&continuation[at + beginning.len()..])),
        }
    });
    let of_end = place(end).filter(|_| from != AskedFrom::Cut).map(|at| {
        let ahead = repeated_share(tail(before), tail(&continuation[..at]));
        let behind = repeated_share(head(&continuation[added..]), head(&continuation[at + end.len()..]));
        RepeatedPassage { position: at, share: ahead.max(behind) }
    });
    [of_beginning, of_end].into_iter().flatten().max_by(|left, right| left.share.total_cmp(&right.share))
}

/// Number of bytes that are compared around a repeated passage, and length of the compared pieces.
const COMPARED_BYTES: usize = 240;
const PIECE_BYTES: usize = 12;

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(COMPARED_BYTES)]
}

fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(COMPARED_BYTES))..]
}

/// Returns the share of a text that occurs in another one, from 0 to 1. Returns 1 for an empty text.
fn repeated_share(text: &str, other: &str) -> f64 {
    let pieces = text.as_bytes().chunks_exact(PIECE_BYTES);
    let all = pieces.len();
    let found = pieces.filter(|piece| memmem::find(other.as_bytes(), piece).is_some()).count();
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if all == 0 { 1.0 } else { number(found) / number(all) }
}

/// Returns the position in the continuation at which the first part ends, if the continuation repeats it with
/// different whitespace.
pub(super) fn position_after_reflowed(initial: &str, continuation: &str) -> Option<usize> {
    const MIN_REFLOWED_CHARS: usize = 40;
    if continuation.starts_with(initial) {
        let is_long = initial.chars().filter(|sign| !sign.is_whitespace()).take(MIN_REFLOWED_CHARS).count()
            == MIN_REFLOWED_CHARS;
        return is_long.then_some(initial.len());
    }
    let mut again = continuation.char_indices().filter(|(_, sign)| !sign.is_whitespace());
    let mut end = 0;
    let mut count = 0;
    for sign in initial.chars().filter(|sign| !sign.is_whitespace()) {
        let (at, same) = again.next()?;
        if same != sign {
            return None;
        }
        end = at + same.len_utf8();
        count += 1;
    }
    if count < MIN_REFLOWED_CHARS {
        return None;
    }
    let rest = &continuation[end..];
    let spaces = rest.len() - rest.trim_start().len();
    Some(if initial.ends_with(char::is_whitespace) { end + spaces } else { end })
}

/// Whether a character belongs to a word.
pub(super) fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
