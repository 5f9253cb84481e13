//! Counts the tokens of a stream while it is written.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use memchr::memmem::Finder;

use super::class::{CAPITAL, CAPITALS, WORD_END, WORD_START};
use super::vocabulary::Vocabulary;

/// Maximum number of cached stretches. A text has few distinct words, and they occur often.
const MAX_CACHED_STRETCHES: usize = 1 << 15;
/// Stretches of more bytes are not cached.
const MAX_CACHED_BYTES: usize = 48;

/// Longer stretches are counted in parts of this size, so that the count can be stopped between them.
const MAX_STRETCH_BYTES: usize = 64 * 1024;

/// Finds the ends of words. For short words, this is faster than the standard library.
static WORD_END_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\u{fdd1}"));

/// The token count of a stream so far.
///
/// No vocabulary piece continues after the end of a word, and the mark for the beginning of a word is always
/// at the start of a piece. Therefore the counts of the stretches between these marks add up to the count of
/// the stream.
pub(super) struct StreamTally {
    vocabulary: Arc<Vocabulary>,
    /// Cached counts of stretches. The standard library's hasher would take half of the counting time.
    cache: HashMap<Box<str>, u64, RandomState>,
    /// Buffer for counting one stretch.
    fewest: Vec<u64>,
    tokens: u64,
    /// Returns true once the caller no longer needs the count.
    is_stopped: fn() -> bool,
}

impl StreamTally {
    pub(super) fn new(vocabulary: Arc<Vocabulary>, is_stopped: fn() -> bool) -> Self {
        Self { fewest: vocabulary.new_buffer(), vocabulary, cache: HashMap::default(), tokens: 0, is_stopped }
    }

    /// Adds the next part of the stream. It must end with a word, unless it is the last part.
    pub(super) fn add(&mut self, stream: &str) {
        let ends = WORD_END_FINDER.find_iter(stream.as_bytes()).map(|at| at + WORD_END.len_utf8());
        let mut begin = 0;
        for end in ends.chain([stream.len()]) {
            let part = &stream[begin..end];
            begin = end;
            let word = part.find([WORD_START, CAPITAL, CAPITALS]).unwrap_or(0);
            let (before, word) = part.split_at(word);
            self.tokens += self.count_stretch(before) + self.count_stretch(word);
        }
    }

    /// Returns the number of tokens in all parts.
    pub(super) fn tokens(self) -> u64 {
        self.tokens
    }

    fn count_stretch(&mut self, stretch: &str) -> u64 {
        if stretch.len() > MAX_CACHED_BYTES {
            return self.count_long(stretch);
        }
        if let Some(tokens) = self.cache.get(stretch) {
            return *tokens;
        }
        let tokens = self.vocabulary.fewest_tokens(stretch, &mut self.fewest);
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
            tokens += self.vocabulary.fewest_tokens(part, &mut self.fewest);
            stretch = rest;
        }
        tokens
    }
}
