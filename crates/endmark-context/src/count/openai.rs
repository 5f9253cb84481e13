//! OpenAI's tokens, counted offline over the vocabularies that OpenAI published for `tiktoken` (MIT); they stand in `data/`
//! as published, compressed.
//!
//! A text is split into pieces by the vocabulary's own pattern. A piece that is a token counts one; in any other, the two
//! neighbours whose merged token ranks first are merged until none can be.
//!
//! A table that is ready to use, as tokenizer packages ship it, is 15 to 32 MB in the program; this one is read from 0.8 to
//! 1.7 MB when it is needed.

mod ascii;
mod ranks;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use regex::Regex;

use super::Count;
use super::shelf::Shelf;
use ranks::Ranks;

const O200K_FILE: &[u8] = include_bytes!("../../data/o200k_base.tiktoken.gz");
const CL100K_FILE: &[u8] = include_bytes!("../../data/cl100k_base.tiktoken.gz");

/// The published patterns, without their look-ahead: what it does is done in [`Vocabulary::pieces`]. They are only asked for
/// what stands at the beginning.
const O200K_PATTERN: &str = concat!(
    r"^(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+)",
);
const CL100K_PATTERN: &str = concat!(
    r"^(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+)",
);

/// A longer piece is counted in parts of this size, so that no text needs memory in proportion to its longest word. The sum
/// is an estimate: at each border it may be a few tokens too high.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// `o200k_base`.
pub(super) static O200K: Shelf<Vocabulary> =
    Shelf::new(|| Vocabulary::read(O200K_FILE, O200K_PATTERN, ascii::first_piece));

/// `cl100k_base`.
pub(super) static CL100K: Shelf<Vocabulary> =
    Shelf::new(|| Vocabulary::read(CL100K_FILE, CL100K_PATTERN, |_| None));

/// In a piece of this size all pairs are looked at before each merge, which takes less time than a heap of them.
const MAX_SCANNED_BYTES: usize = 64;

/// A published vocabulary, ready to count.
pub(super) struct Vocabulary {
    /// Tokens in the order in which they are merged.
    ranks: Ranks,
    /// What finds the end of most pieces without the pattern.
    shortcut: fn(&[u8]) -> Option<usize>,
    /// None only if the pattern could not be compiled: then the whole text is one piece.
    pattern: Option<Regex>,
}

impl Vocabulary {
    fn read(file: &[u8], pattern: &str, shortcut: fn(&[u8]) -> Option<usize>) -> Self {
        Self { ranks: Ranks::read(file), shortcut, pattern: Regex::new(pattern).ok() }
    }

    /// Tokens of a text, exact where no piece is too long. Once it `is_stopped` the rest is not counted.
    pub(super) fn count(&self, text: &str, is_stopped: fn() -> bool) -> Count {
        let mut count = Count { tokens: 0, exact: true };
        for piece in self.pieces(text) {
            count.exact &= piece.len() <= MAX_PIECE_BYTES;
            // A piece this long is mostly one character, repeated: equal parts are counted once.
            let mut last: (&[u8], u64) = (&[], 0);
            for part in piece.as_bytes().chunks(MAX_PIECE_BYTES) {
                if is_stopped() {
                    return Count { exact: false, ..count };
                }
                if part != last.0 {
                    last = (part, self.merged(part));
                }
                count.tokens += last.1;
            }
        }
        count
    }

    /// The pieces of a text. Of spaces before a word the last one is the word's: the published patterns say so by a
    /// look-ahead. Nothing but spaces ends in one: each other piece ends in a letter, a mark or a line end.
    fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            if let Some(end) = (self.shortcut)(rest.as_bytes()) {
                let (piece, behind) = rest.split_at(end);
                rest = behind;
                return Some(piece);
            }
            let found = self.pattern.as_ref().and_then(|pattern| pattern.find(rest));
            let mut end = found.map_or(rest.len(), |found| found.end());
            if let Some((last, c)) = rest[..end].char_indices().next_back()
                && c.is_whitespace()
                && !matches!(c, '\r' | '\n')
                && last > 0
                && end < rest.len()
            {
                end = last;
            }
            let (piece, behind) = rest.split_at(end);
            rest = behind;
            Some(piece)
        })
    }

    /// Tokens of a piece.
    fn merged(&self, piece: &[u8]) -> u64 {
        if piece.len() < 2 || self.ranks.get(piece).is_some() {
            return u64::from(!piece.is_empty());
        }
        if piece.len() <= MAX_SCANNED_BYTES {
            return scanned(piece, &self.ranks);
        }
        Parts::of(piece).merged(&self.ranks)
    }
}

/// Tokens of a short piece, as [`Parts::merged`] counts them: the pairs are searched for the first one before each merge.
fn scanned(piece: &[u8], ranks: &Ranks) -> u64 {
    const NO_PAIR: u32 = u32::MAX;
    // Where each part begins, and the rank of the pair that it makes up with the next.
    let mut parts = [(0, NO_PAIR); MAX_SCANNED_BYTES + 1];
    let mut count = piece.len();
    let rank = |from: usize, to: usize| ranks.get(&piece[from..to]).unwrap_or(NO_PAIR);
    for (at, part) in parts.iter_mut().enumerate().take(count + 1) {
        *part = (at, if at + 2 <= count { rank(at, at + 2) } else { NO_PAIR });
    }
    loop {
        let pairs = parts[..count].iter().enumerate();
        let Some((at, (_, first))) = pairs.min_by_key(|(_, (_, rank))| *rank) else { break };
        if *first == NO_PAIR {
            break;
        }
        parts.copy_within(at + 2..=count, at + 1);
        count -= 1;
        for begin in [at, at.wrapping_sub(1)] {
            if begin < count {
                let end = parts[..=count].get(begin + 2).map(|(end, _)| *end);
                parts[begin].1 = end.map_or(NO_PAIR, |end| rank(parts[begin].0, end));
            }
        }
    }
    count as u64
}

/// The parts of a piece that are tokens so far, as a chain: at the beginning of each, where it ends and where the one before
/// it begins.
struct Parts<'a> {
    piece: &'a [u8],
    ends: Vec<usize>,
    before: Vec<usize>,
}

impl<'a> Parts<'a> {
    /// Each byte is one.
    fn of(piece: &'a [u8]) -> Self {
        let before = (0..piece.len()).map(|at| at.saturating_sub(1)).collect();
        Self { piece, ends: (1..=piece.len()).collect(), before }
    }

    /// How many are left when no two neighbours make up a token. A pair that has changed since it was noted is passed over
    /// when its turn comes, so that a piece of n bytes takes n log n steps, whatever it holds.
    fn merged(mut self, ranks: &Ranks) -> u64 {
        let mut pairs: BinaryHeap<Reverse<(u32, usize, usize)>> =
            (0..self.piece.len()).filter_map(|at| self.pair(at, ranks)).collect();
        let mut count = self.piece.len() as u64;
        while let Some(Reverse((_, at, end))) = pairs.pop() {
            let middle = self.ends[at];
            let is_current = middle > at && middle < self.piece.len() && self.ends[middle] == end;
            if !is_current {
                continue;
            }
            self.ends[at] = end;
            // What begins here no more ends nowhere.
            self.ends[middle] = 0;
            if let Some(before) = self.before.get_mut(end) {
                *before = at;
            }
            count -= 1;
            if at > 0 {
                pairs.extend(self.pair(self.before[at], ranks));
            }
            pairs.extend(self.pair(at, ranks));
        }
        count
    }

    /// The token that the part at this place and the next make up: its rank, and where it begins and ends.
    fn pair(&self, at: usize, ranks: &Ranks) -> Option<Reverse<(u32, usize, usize)>> {
        let end = *self.ends.get(*self.ends.get(at)?)?;
        let rank = ranks.get(self.piece.get(at..end)?)?;
        Some(Reverse((rank, at, end)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;

    fn exact(tokens: usize) -> Count {
        Count { tokens: tokens as u64, exact: true }
    }

    fn same_as_reference(text: &str) {
        assert_eq!(
            O200K.get().count(text, || false),
            exact(bpe_openai::o200k_base().count(text)),
            "{text:?}"
        );
        assert_eq!(
            CL100K.get().count(text, || false),
            exact(bpe_openai::cl100k_base().count(text)),
            "{text:?}"
        );
    }

    #[test]
    fn all_tokens_are_there() {
        assert_eq!(O200K.get().ranks.len(), 199_998);
        assert_eq!(CL100K.get().ranks.len(), 100_256);
    }

    /// In one test, since the reference takes seconds to get ready.
    #[test]
    fn counts_are_those_of_the_reference() {
        for length in [2, 3, 7, 64, 65, 129, 1_000, 20_000] {
            for letter in ["a", " ", "=", "\n", "ä", "\u{301}", "日"] {
                same_as_reference(&letter.repeat(length));
            }
        }
        for text in [include_str!("openai.rs"), include_str!("../../data/models.json")] {
            same_as_reference(text);
        }
        let of_what_the_patterns_distinguish = prop::sample::select(vec![
            "a", "B", "ǅ", "ʰ", "日", "\u{301}", "1", "٣", "½", " ", "  ", "\t", "\u{a0}", "\u{3000}",
            "\u{85}", "\r", "\n", "\r\n", "'s", "'LL", "'ſ", "'", "/", "=", "-", "_", "🙂", "the", "The",
            "HTTP", "x509", "\u{200d}", "\u{0}",
        ]);
        let mixture =
            prop::collection::vec(of_what_the_patterns_distinguish, 0..40).prop_map(|parts| parts.concat());
        let texts = prop_oneof!["\\PC{0,60}", mixture];
        let mut runner =
            TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() });
        runner
            .run(&texts, |text| {
                same_as_reference(&text);
                Ok(())
            })
            .unwrap();
    }
}
