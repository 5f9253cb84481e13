//! Counts Claude's tokens offline: our own implementation of the rules that `ctok` 1.3.0 (MIT) measured and
//! published, over its vocabularies in `data/`. The result is a reconstruction, not the provider's count.
//!
//! A text is normalised, split into runs of characters of one class, and written as a stream in which word boundaries
//! and capitals are characters of their own. Its tokens are the fewest pieces of the vocabulary that make up that
//! stream.

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
    /// Claude 4.8 and later: the vocabulary of 4.7, with another beginning of messages.
    FourEight,
}

impl Generation {
    /// Whether curly quotes are read as straight ones.
    fn folds_quotes(self) -> bool {
        self == Self::Three
    }

    /// Returns the number of letters from which on a word of capitals is written in small letters after a mark.
    fn least_capitals(self) -> Option<usize> {
        (self == Self::Three).then_some(4)
    }

    /// Whether the frame before a message ends in a word boundary.
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

/// Drops the vocabularies that were not used since the last call.
pub(super) fn drop_unused() {
    vocabulary::THREE.drop_unused();
    vocabulary::FOUR_SEVEN.drop_unused();
}

/// Returns the tokens of a text as a single message, without the frame. Once it `is_stopped`, the rest is not
/// counted.
pub(super) fn tokens(text: &str, generation: Generation, is_stopped: fn() -> bool) -> u64 {
    let normal = normal::normalised(text, generation.folds_quotes());
    let body = normal.trim_end_matches('\n');
    // The frame after a message begins with two newlines, which can form one token with the newlines at its end.
    let newlines = normal.len() - body.len();
    let tail =
        if newlines == 0 { 0 } else { of_newlines(newlines + 2, generation, is_stopped).saturating_sub(1) };
    stream::tokens(body, generation, text.starts_with(' '), is_stopped) + tail
}

fn of_newlines(count: usize, generation: Generation, is_stopped: fn() -> bool) -> u64 {
    let mut tally = Tally::new(generation.vocabulary().get(), is_stopped);
    tally.add(&"\n".repeat(count));
    tally.tokens()
}

#[cfg(test)]
mod tests;
