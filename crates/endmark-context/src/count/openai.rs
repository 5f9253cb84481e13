//! Counts OpenAI's tokens offline, with the vocabularies that OpenAI published for `tiktoken` (MIT). `data/`
//! contains them in compressed form.
//!
//! The pattern of a vocabulary splits a text into pieces. A piece that is a token counts as one. In any other
//! piece, the two neighbouring parts whose merged token has the lowest rank are merged, until no two
//! neighbours form a token.
//!
//! A prepared table, as in tokenizer packages, would add 15 to 32 MB to the program. Here, the table is built
//! from 0.8 to 1.7 MB when it is needed.

mod ascii;
mod ranks;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use regex::Regex;

use super::TokenCount;
use super::shelf::VocabularyCache;
use ranks::TokenRanks;

const O200K_FILE: &[u8] = include_bytes!("../../data/o200k_base.tiktoken.gz");
const CL100K_FILE: &[u8] = include_bytes!("../../data/cl100k_base.tiktoken.gz");

/// The published patterns without their look-ahead, which [`Vocabulary::pieces`] replaces. They are matched
/// only at the beginning of a text.
const O200K_PATTERN: &str = concat!(
    r"^(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+)",
);
const CL100K_PATTERN: &str = concat!(
    r"^(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+)",
);

/// A longer piece is counted in parts of this size, so that the memory does not grow with the length of the
/// longest word. The count is then an estimate: each border between parts may add a few tokens.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// The vocabulary `o200k_base`.
pub(super) static O200K: VocabularyCache<Vocabulary> =
    VocabularyCache::new(|| Vocabulary::read(O200K_FILE, O200K_PATTERN, ascii::o200k_piece));

/// The vocabulary `cl100k_base`.
pub(super) static CL100K: VocabularyCache<Vocabulary> =
    VocabularyCache::new(|| Vocabulary::read(CL100K_FILE, CL100K_PATTERN, ascii::cl100k_piece));

/// Maximum number of pieces with cached counts. Words that are not tokens are often repeated, and merging
/// their parts costs far more than a lookup.
const MAX_CACHED_PIECES: usize = 1 << 12;

/// In pieces of at most this size, all pairs are scanned before each merge, which is faster than a heap.
const MAX_SCANNED_BYTES: usize = 64;

/// Cached token counts of short pieces.
type PieceCounts<'a> = HashMap<&'a [u8], u64, RandomState>;

/// A published vocabulary with its pattern.
pub(super) struct Vocabulary {
    /// The tokens with their ranks.
    ranks: TokenRanks,
    /// Returns the end of the first piece without the pattern, or `None` if this needs the pattern.
    find_ascii_piece_end: fn(&[u8]) -> Option<usize>,
    pattern: &'static str,
    /// The compiled pattern. It is compiled for the first text that needs it. If that fails (`None`), each
    /// text is one piece.
    compiled: OnceLock<Option<Regex>>,
}

impl Vocabulary {
    fn read(file: &[u8], pattern: &'static str, shortcut: fn(&[u8]) -> Option<usize>) -> Self {
        Self {
            ranks: TokenRanks::read(file),
            find_ascii_piece_end: shortcut,
            pattern,
            compiled: OnceLock::new(),
        }
    }

    /// Returns the number of tokens in a text. It is exact if no piece is too long. Stops once `is_stopped`
    /// returns true.
    pub(super) fn count(&self, text: &str, is_stopped: fn() -> bool) -> TokenCount {
        let mut count = TokenCount { tokens: 0, exact: true };
        let mut known = PieceCounts::default();
        for piece in self.pieces(text) {
            if piece.len() <= MAX_PIECE_BYTES {
                if is_stopped() {
                    return TokenCount { exact: false, ..count };
                }
                count.tokens += self.count_piece(piece.as_bytes(), &mut known);
                continue;
            }
            count.exact = false;
            // A very long piece is usually one repeated character, so a part that equals the one before is
            // not counted again.
            let mut last: (&[u8], u64) = (&[], 0);
            for part in piece.as_bytes().chunks(MAX_PIECE_BYTES) {
                if is_stopped() {
                    return count;
                }
                if part != last.0 {
                    last = (part, self.count_piece(part, &mut known));
                }
                count.tokens += last.1;
            }
        }
        count
    }

    /// Returns the pieces of a text.
    ///
    /// Of several spaces before a word, the last one belongs to the word. The published patterns express this
    /// with a look-ahead. Only a piece of spaces can end in a space; other pieces end in a letter, a sign or
    /// a line end.
    fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            if let Some(end) = (self.find_ascii_piece_end)(rest.as_bytes()) {
                let (piece, behind) = rest.split_at(end);
                rest = behind;
                return Some(piece);
            }
            let compiled = self.compiled.get_or_init(|| Regex::new(self.pattern).ok());
            let found = compiled.as_ref().and_then(|pattern| pattern.find(rest));
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

    /// Returns the number of tokens in a piece.
    fn count_piece<'a>(&self, piece: &'a [u8], known: &mut PieceCounts<'a>) -> u64 {
        if piece.len() < 2 || self.ranks.get(piece).is_some() {
            return u64::from(!piece.is_empty());
        }
        if piece.len() > MAX_SCANNED_BYTES {
            return MergeParts::new(piece).merged_count(&self.ranks);
        }
        if known.len() >= MAX_CACHED_PIECES {
            known.clear();
        }
        *known.entry(piece).or_insert_with(|| scanned_count(piece, &self.ranks))
    }
}

/// Returns the number of tokens in a short piece, like [`MergeParts::merged_count`]. It scans all pairs before
/// each merge.
fn scanned_count(piece: &[u8], ranks: &TokenRanks) -> u64 {
    const NO_PAIR: u32 = u32::MAX;
    // The start of each part, and the rank of the token that the part forms with the next one.
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

/// The parts of a piece as a linked list. For each position where a part begins, `ends` contains its end, and
/// `before` contains the start of the previous part.
struct MergeParts<'a> {
    piece: &'a [u8],
    ends: Vec<usize>,
    before: Vec<usize>,
}

impl<'a> MergeParts<'a> {
    /// Returns the parts before any merge: each byte is one part.
    fn new(piece: &'a [u8]) -> Self {
        let before = (0..piece.len()).map(|at| at.saturating_sub(1)).collect();
        Self { piece, ends: (1..=piece.len()).collect(), before }
    }

    /// Merges parts until no two neighbours form a token, and returns the number of parts. Queued pairs that
    /// have changed in the meantime are skipped, so a piece of n bytes needs n log n steps.
    fn merged_count(mut self, ranks: &TokenRanks) -> u64 {
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
            // This part is now merged into the part before it.
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

    /// Returns the token that this part forms with the next one: its rank, its start and its end.
    fn pair(&self, at: usize, ranks: &TokenRanks) -> Option<Reverse<(u32, usize, usize)>> {
        let end = *self.ends.get(*self.ends.get(at)?)?;
        let rank = ranks.get(self.piece.get(at..end)?)?;
        Some(Reverse((rank, at, end)))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;

    fn exact(tokens: usize) -> TokenCount {
        TokenCount { tokens: tokens as u64, exact: true }
    }

    fn assert_same_as_reference(text: &str) {
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
    fn the_vocabularies_contain_all_tokens() {
        assert_eq!(O200K.get().ranks.len(), 199_998);
        assert_eq!(CL100K.get().ranks.len(), 100_256);
    }

    /// All checks are in one test, because the reference needs seconds to start.
    #[test]
    fn counts_match_the_reference_implementation() {
        for length in [2, 3, 7, 64, 65, 129, 1_000, 20_000] {
            for letter in ["a", " ", "=", "\n", "ä", "\u{301}", "日"] {
                assert_same_as_reference(&letter.repeat(length));
            }
        }
        // Each character of the first Unicode plane, after and before a word, and before a space and a sign.
        for first in (0..0x1_0000).step_by(256) {
            let mut text = String::new();
            for sign in (first..first + 256).filter_map(char::from_u32) {
                let _ = writeln!(text, "a{sign}b {sign}{sign}/ {sign}\u{301}1{sign} ");
            }
            assert_same_as_reference(&text);
        }
        for text in [include_str!("openai.rs"), include_str!("../../data/models.json")] {
            assert_same_as_reference(text);
        }
        let of_what_the_patterns_distinguish = prop::sample::select(vec![
            "a", "B", "ǅ", "ʰ", "日", "\u{301}", "1", "٣", "½", " ", "  ", "\t", "\u{a0}", "\u{3000}",
            "\u{85}", "\r", "\n", "\r\n", "'s", "'LL", "'ſ", "'", "/", "=", "-", "_", "🙂", "the", "The",
            "HTTP", "x509", "\u{200d}", "\u{0}", "×", "…", "’s", "“", "\u{2028}", "‿", "→", "ↈ", "∑", "⑨",
            "─", "✓", "❶",
        ]);
        let mixture =
            prop::collection::vec(of_what_the_patterns_distinguish, 0..40).prop_map(|parts| parts.concat());
        let texts = prop_oneof!["\\PC{0,60}", mixture];
        let mut runner =
            TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() });
        runner
            .run(&texts, |text| {
                assert_same_as_reference(&text);
                Ok(())
            })
            .unwrap();
    }
}
