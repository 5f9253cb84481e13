//! Counts Claude's tokens offline, by the rules that `ctok` 1.3.0 (MIT) measured and published, with its vocabularies
//! in `data/`. The count is a reconstruction of the provider's count.
//!
//! A text is normalised, split into runs of characters of one class, and written as a stream in which word boundaries
//! and capitals are separate characters. Its tokens are the smallest number of vocabulary pieces that form the stream.

mod class;
mod normal;
mod runs;
mod stream;
mod tally;
mod vocabulary;

use tally::Tally;
use vocabulary::Vocabulary;

use super::shelf::Shelf;

/// A generation of Claude's tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Claude 3 to 4.6.
    Three,
    /// Claude 4.7.
    FourSeven,
    /// Claude 4.8 and later: the vocabulary of 4.7, but messages begin differently.
    FourEight,
}

impl Generation {
    /// Whether curly quotes are read as straight ones.
    fn folds_quotes(self) -> bool {
        self == Self::Three
    }

    /// Returns the number of letters from which a word of capitals is written in small letters after a mark.
    fn least_capitals(self) -> Option<usize> {
        (self == Self::Three).then_some(4)
    }

    /// Whether the frame before a message ends with a word boundary.
    fn frame_ends_in_boundary(self) -> bool {
        self != Self::FourEight
    }

    /// Whether its vocabulary is in memory.
    pub(super) fn is_ready(self) -> bool {
        self.vocabulary().is_filled()
    }

    fn vocabulary(self) -> &'static Shelf<Vocabulary> {
        match self {
            Self::Three => &vocabulary::THREE,
            Self::FourSeven | Self::FourEight => &vocabulary::FOUR_SEVEN,
        }
    }
}

/// Drops vocabularies that were not used since the last call.
pub(super) fn drop_unused() {
    vocabulary::THREE.drop_unused();
    vocabulary::FOUR_SEVEN.drop_unused();
}

/// Returns the tokens of a text as a single message, without the frame. Stops counting once `is_stopped` returns true.
/// counted.
pub(super) fn tokens(text: &str, generation: Generation, is_stopped: fn() -> bool) -> u64 {
    let normal = normal::normalise_text(text, generation.folds_quotes());
    let body = normal.trim_end_matches('\n');
    // The frame after a message begins with two newlines, which may form one token with the newlines before them.
    let newlines = normal.len() - body.len();
    let tail = if newlines == 0 {
        0
    } else {
        count_newlines(newlines + 2, generation, is_stopped).saturating_sub(1)
    };
    stream::tokens(body, generation, text.starts_with(' '), is_stopped) + tail
}

fn count_newlines(count: usize, generation: Generation, is_stopped: fn() -> bool) -> u64 {
    let mut tally = Tally::new(generation.vocabulary().get(), is_stopped);
    tally.add(&"\n".repeat(count));
    tally.tokens()
}

#[cfg(test)]
mod tests;
