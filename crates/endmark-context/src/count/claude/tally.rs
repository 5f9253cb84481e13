//! Counts the tokens of a stream while it is written.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use memchr::memmem::Finder;

use super::class::{CAPITAL, CAPITALS, END, WORD_START};
use super::vocabulary::Vocabulary;

/// Most cached stretches. A text has few distinct words, which occur often.
const MAX_CACHED_STRETCHES: usize = 1 << 15;
/// Longest stretch in the cache, in bytes.
const MAX_KNOWN_BYTES: usize = 48;

/// Longer stretches are counted in parts of this size, so that the count can be stopped between them.
const MAX_STRETCH_BYTES: usize = 64 * 1024;

/// Finds the ends of words. For short words it is faster than the standard library.
static ENDS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\u{fdd1}"));

/// A count that grows with its stream.
///
/// No vocabulary piece crosses the end of a word, and a piece with the beginning of a word begins with it. So the counts
/// of the stretches add up to the count of the stream.
pub(super) struct Tally {
    vocabulary: Arc<Vocabulary>,
    /// Cached counts. The hash of the standard library would need half of the counting time.
    cache: HashMap<Box<str>, u64, RandomState>,
    /// Buffer for the counts of one stretch.
    fewest: Vec<u64>,
    tokens: u64,
    /// Whether the caller no longer needs the count.
    is_stopped: fn() -> bool,
}

impl Tally {
    pub(super) fn new(vocabulary: Arc<Vocabulary>, is_stopped: fn() -> bool) -> Self {
        Self { fewest: vocabulary.ring(), vocabulary, cache: HashMap::default(), tokens: 0, is_stopped }
    }

    /// Adds a part of the stream. It ends with a word, or is the last part.
    pub(super) fn add(&mut self, stream: &str) {
        let ends = ENDS.find_iter(stream.as_bytes()).map(|at| at + END.len_utf8());
        let mut begin = 0;
        for end in ends.chain([stream.len()]) {
            let part = &stream[begin..end];
            begin = end;
            let word = part.find([WORD_START, CAPITAL, CAPITALS]).unwrap_or(0);
            let (before, word) = part.split_at(word);
            self.tokens += self.count_stretch(before) + self.count_stretch(word);
        }
    }

    /// Returns the tokens of everything that was added.
    pub(super) fn tokens(self) -> u64 {
        self.tokens
    }

    fn count_stretch(&mut self, stretch: &str) -> u64 {
        if stretch.len() > MAX_KNOWN_BYTES {
            return self.count_long(stretch);
        }
        if let Some(tokens) = self.cache.get(stretch) {
            return *tokens;
        }
        let tokens = self.vocabulary.tokens(stretch, &mut self.fewest);
        if self.cache.len() >= MAX_CACHED_STRETCHES {
            self.cache.clear();
        }
        self.cache.insert(stretch.into(), tokens);
        tokens
    }

    fn count_long(&mut self, mut stretch: &str) -> u64 {
        let mut tokens = 0;
        while !stretch.is_empty() && !(self.is_stopped)() {
            let (part, rest) = stretch.split_at(stretch.floor_char_boundary(MAX_STRETCH_BYTES));
            tokens += self.vocabulary.tokens(part, &mut self.fewest);
            stretch = rest;
        }
        tokens
    }
}
