//! Detects restarts: the continuation begins the text, a string, a line or a sentence again.
//!
//! A restart that continues through the cut is a repeated end. This module finds two other kinds: restarts that
//! differ from the first part before the cut, which give no seam, and restarts of a text without grammar with
//! different white space, which do.

use memchr::memmem;

use super::overlap::find_last;
use super::seam::AskedFrom;
use super::units::{CHARACTER, Units, character, is_content};

/// A shorter common beginning may be a coincidence, in characters.
const MIN_SHARED_CHARS: usize = 14;

/// A shorter repetition may be a coincidence, in bytes.
const MIN_REPEATED_BYTES: usize = 40;

/// How much of a text is searched for other occurrences of a beginning, in units.
const SEARCHED_UNITS: usize = 64_000;

/// Whether the continuation begins the cut text, or its last line or sentence, again, and then differs before it
/// reaches the cut.
pub(super) fn diverges(initial: &Units<'_>, continuation: &Units<'_>) -> bool {
    let text_start = find_last(&initial.codes, |code| !is_content(code)).map_or(0, |quote| quote + 1);
    let text = &initial.codes[text_start..];
    let line = find_last(text, |code| code & CHARACTER == u32::from('\n')).map_or(0, |at| at + 1);
    let ends = |code: u32| [b'.', b'!', b'?'].map(u32::from).contains(&(code & CHARACTER));
    let mut before = text.len().saturating_sub(1);
    let sentence = std::iter::from_fn(|| {
        before = find_last(&text[..before], ends)?;
        Some(before + 1)
    })
    .find(|at| character(text[*at]).is_whitespace());
    [Some(0), Some(line), sentence.map(|at| at + 1)]
        .into_iter()
        .flatten()
        .any(|anchor| leaves(text.get(anchor..).unwrap_or_default(), &continuation.codes, text))
}

/// Whether the continuation begins the whole document again, and then differs before the cut.
pub(super) fn diverges_from_start(initial: &Units<'_>, continuation: &Units<'_>) -> bool {
    leaves(&initial.codes, &continuation.codes, &initial.codes)
}

/// Whether `head` begins like `path` for longer than by chance, and differs before the end of `path`.
fn leaves(path: &[u32], head: &[u32], text: &[u32]) -> bool {
    let shared = path.iter().zip(head).take_while(|(left, right)| left == right).count();
    if shared == path.len() || shared == head.len() || shared < MIN_SHARED_CHARS {
        return false;
    }
    let beginning: Vec<char> = path[..shared.min(80)].iter().map(|code| character(*code)).collect();
    let words = beginning.split(|sign| !is_word_character(*sign)).filter(|word| !word.is_empty()).count();
    // A beginning that the text itself repeats, such as that of list items, proves nothing.
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

/// Returns the last position, from `added` on, at which a continuation repeats a passage that the first part contains
/// once. The passage is its beginning, or its end if the continuation was not requested at the cut. A continuing
/// model does not do that after the seam, but a model does that restarts after a remark, quotes its input, or loops.
/// If a text contains a sentence twice, the sentences around it differ.
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
    // A loop also repeats the text after its beginning and before its end.
    let of_beginning = place(beginning).map(|at| {
        let following = [head(behind), head(&continuation[added..at])].concat();
        RepeatedPassage {
            position: at,
            share: shared(head(&following), head(&continuation[at + beginning.len()..])),
        }
    });
    let of_end = place(end).filter(|_| from != AskedFrom::Cut).map(|at| {
        let ahead = shared(tail(before), tail(&continuation[..at]));
        let behind = shared(head(&continuation[added..]), head(&continuation[at + end.len()..]));
        RepeatedPassage { position: at, share: ahead.max(behind) }
    });
    [of_beginning, of_end].into_iter().flatten().max_by(|left, right| left.share.total_cmp(&right.share))
}

/// Size of the compared text around a repeated passage, and of its pieces, in bytes.
const COMPARED_BYTES: usize = 240;
const PIECE: usize = 12;

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(COMPARED_BYTES)]
}

fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(COMPARED_BYTES))..]
}

/// Returns the share of a text that occurs in another one, from 0 to 1. Returns 1 for an empty text.
fn shared(text: &str, other: &str) -> f64 {
    let pieces = text.as_bytes().chunks_exact(PIECE);
    let all = pieces.len();
    let found = pieces.filter(|piece| memmem::find(other.as_bytes(), piece).is_some()).count();
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if all == 0 { 1.0 } else { number(found) / number(all) }
}

/// Returns the position in the continuation at which the first part ends, if the continuation repeats it with
/// different white space.
pub(super) fn position_after_reflowed(initial: &str, continuation: &str) -> Option<usize> {
    const LEAST: usize = 40;
    if continuation.starts_with(initial) {
        let is_long = initial.chars().filter(|sign| !sign.is_whitespace()).take(LEAST).count() == LEAST;
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
    if count < LEAST {
        return None;
    }
    let rest = &continuation[end..];
    let spaces = rest.len() - rest.trim_start().len();
    Some(if initial.ends_with(char::is_whitespace) { end + spaces } else { end })
}

/// Whether a character is part of a word.
pub(super) fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
