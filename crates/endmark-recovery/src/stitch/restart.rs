//! Restarts: the continuation begins the text, a string, a line or a sentence anew.
//!
//! One that runs through the cut is a repeated tail like any other. What is found here are those that
//! leave the first part's path before the cut, which are no seam, and restarts of a text without grammar
//! with other whitespace, which are.

use memchr::memmem;

use super::overlap::last_of;
use super::seam::AskedFrom;
use super::units::{CHARACTER, Units, character, is_content};

/// A beginning shared by chance is shorter than this, in characters.
const SHARED_BY_CHANCE: usize = 14;

/// What is said again by chance is shorter than this, in bytes.
const SAID_AGAIN: usize = 40;

/// How much of a text is searched for other places of a beginning, in units.
const REACH: usize = 64_000;

/// Whether the continuation begins the text that is cut, or its last line or sentence, anew, and goes another
/// way before it has reached the cut.
pub(super) fn diverges(initial: &Units<'_>, continuation: &Units<'_>) -> bool {
    let text_start = last_of(&initial.codes, |code| !is_content(code)).map_or(0, |quote| quote + 1);
    let text = &initial.codes[text_start..];
    let line = last_of(text, |code| code & CHARACTER == u32::from('\n')).map_or(0, |at| at + 1);
    let ends = |code: u32| [b'.', b'!', b'?'].map(u32::from).contains(&(code & CHARACTER));
    let mut before = text.len().saturating_sub(1);
    let sentence = std::iter::from_fn(|| {
        before = last_of(&text[..before], ends)?;
        Some(before + 1)
    })
    .find(|at| character(text[*at]).is_whitespace());
    [Some(0), Some(line), sentence.map(|at| at + 1)]
        .into_iter()
        .flatten()
        .any(|anchor| leaves(text.get(anchor..).unwrap_or_default(), &continuation.codes, text))
}

/// Whether the continuation begins the whole document anew and goes another way before the cut.
pub(super) fn diverges_from_start(initial: &Units<'_>, continuation: &Units<'_>) -> bool {
    leaves(&initial.codes, &continuation.codes, &initial.codes)
}

/// Whether `head` begins like `path` for longer than by chance, and leaves it before its end.
fn leaves(path: &[u32], head: &[u32], text: &[u32]) -> bool {
    let shared = path.iter().zip(head).take_while(|(left, right)| left == right).count();
    if shared == path.len() || shared == head.len() || shared < SHARED_BY_CHANCE {
        return false;
    }
    let beginning: Vec<char> = path[..shared.min(80)].iter().map(|code| character(*code)).collect();
    let words = beginning.split(|sign| !in_word(*sign)).filter(|word| !word.is_empty()).count();
    // A beginning that the text repeats itself, such as that of a list's items, says nothing.
    let sample = &path[..shared.min(64)];
    let searched = &text[text.len().saturating_sub(REACH)..];
    let places = searched.windows(sample.len()).filter(|window| *window == sample).take(3).count();
    words >= 3 && places < 3
}

/// Something that the first part said once and that the continuation says again.
#[derive(Debug, Clone, Copy)]
pub(super) struct SaidAgain {
    /// Where in the continuation.
    pub(super) at: usize,
    /// How much of what stands around it is said again as well, 0 to 1.
    pub(super) share: f64,
}

/// Where a continuation for the last time says something again, at `added` or behind it, that the first part said
/// once: its beginning, or, where it was not asked for at the cut, its end. Behind the seam a model that goes on does
/// not; one that begins anew after a remark, quotes what it was shown, or runs in circles, does. A sentence that a text
/// has twice stands between other ones there.
pub(super) fn said_again(
    initial: &str,
    continuation: &str,
    added: usize,
    from: AskedFrom,
) -> Option<SaidAgain> {
    let text = initial.trim();
    let (beginning, behind) = text.split_at(text.floor_char_boundary(SAID_AGAIN));
    let (before, end) = text.split_at(text.ceil_char_boundary(text.len().saturating_sub(SAID_AGAIN)));
    let is_telling = |part: &str| {
        part.len() >= SAID_AGAIN - 4
            && part.split_whitespace().count() >= 3
            && memmem::find_iter(text.as_bytes(), part).take(2).count() == 1
    };
    let place = |part: &str| {
        let found = memmem::rfind(continuation.as_bytes(), part.as_bytes());
        found.filter(|at| *at >= added && is_telling(part))
    };
    // What runs in circles goes on behind its beginning as it did, and in front of its end as well.
    let of_beginning = place(beginning).map(|at| {
        let goes_on = [head(behind), head(&continuation[added..at])].concat();
        SaidAgain { at, share: shared(head(&goes_on), head(&continuation[at + beginning.len()..])) }
    });
    let of_end = place(end).filter(|_| from != AskedFrom::Cut).map(|at| {
        let ahead = shared(tail(before), tail(&continuation[..at]));
        let behind = shared(head(&continuation[added..]), head(&continuation[at + end.len()..]));
        SaidAgain { at, share: ahead.max(behind) }
    });
    [of_beginning, of_end].into_iter().flatten().max_by(|left, right| left.share.total_cmp(&right.share))
}

/// So much around what is said again is compared, in bytes, in pieces of so many.
const AROUND: usize = 240;
const PIECE: usize = 12;

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(AROUND)]
}

fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(AROUND))..]
}

/// How much of a text stands in another one, 0 to 1; all of it, where there is nothing of it.
fn shared(text: &str, other: &str) -> f64 {
    let pieces = text.as_bytes().chunks_exact(PIECE);
    let all = pieces.len();
    let found = pieces.filter(|piece| memmem::find(other.as_bytes(), piece).is_some()).count();
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if all == 0 { 1.0 } else { number(found) / number(all) }
}

/// Where in the continuation the first part ends, if the continuation says it all again with other whitespace.
pub(super) fn behind_reflowed_restart(initial: &str, continuation: &str) -> Option<usize> {
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
pub(super) fn in_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
