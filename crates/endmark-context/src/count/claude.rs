//! Counts Claude's tokens offline, with the measured rules of `ctok` 1.3.0 (MIT) and its vocabularies in
//! `data/`.
//!
//! A text is normalised and split into runs of characters of the same class. The runs are then written as a
//! stream, in which separate characters mark word boundaries and capitals. The tokens are the smallest number
//! of vocabulary pieces that form the stream.

mod class;
mod normal;
mod runs;
mod stream;
mod tally;
mod vocabulary;

use tally::StreamTally;
use vocabulary::Vocabulary;

use super::shelf::VocabularyCache;

/// A version of Claude's tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenizerVersion {
    /// Claude 3 to 4.6.
    Three,
    /// Claude 4.7.
    FourSeven,
    /// Claude 4.8 and later: the vocabulary of 4.7, but another frame around messages.
    FourEight,
}

impl TokenizerVersion {
    /// Whether curly quotation marks are replaced by straight ones.
    fn folds_quotes(self) -> bool {
        self == Self::Three
    }

    /// Returns how many letters a word in capitals must have so that the stream marks it as capitals. `None`
    /// if words in capitals are not marked.
    fn least_capitals(self) -> Option<usize> {
        (self == Self::Three).then_some(4)
    }

    /// Whether the frame before a message ends with a word boundary.
    fn frame_ends_in_boundary(self) -> bool {
        self != Self::FourEight
    }

    /// Whether the vocabulary of this version is in memory.
    pub(super) fn is_ready(self) -> bool {
        self.vocabulary().is_loaded()
    }

    fn vocabulary(self) -> &'static VocabularyCache<Vocabulary> {
        match self {
            Self::Three => &vocabulary::CLAUDE_3,
            Self::FourSeven | Self::FourEight => &vocabulary::CLAUDE_4_7,
        }
    }
}

/// Removes vocabularies from memory that were not used since the last call.
pub(super) fn drop_unused() {
    vocabulary::CLAUDE_3.drop_unused();
    vocabulary::CLAUDE_4_7.drop_unused();
}

/// Returns the number of tokens in a text that is the only message, without its frame. Stops once
/// `is_stopped` returns true; the result then contains only the tokens so far.
pub(super) fn count_tokens(text: &str, generation: TokenizerVersion, is_stopped: fn() -> bool) -> u64 {
    let normal = normal::normalise_text(text, generation.folds_quotes());
    let body = normal.trim_end_matches('\n');
    // The frame after a message begins with two newlines, which may form one token with the newlines before
    // them.
    let newlines = normal.len() - body.len();
    let tail = if newlines == 0 {
        0
    } else {
        count_newlines(newlines + 2, generation, is_stopped).saturating_sub(1)
    };
    stream::count_tokens(body, generation, text.starts_with(' '), is_stopped) + tail
}

fn count_newlines(count: usize, generation: TokenizerVersion, is_stopped: fn() -> bool) -> u64 {
    let mut tally = StreamTally::new(generation.vocabulary().get(), is_stopped);
    tally.add(&"\n".repeat(count));
    tally.tokens()
}

#[cfg(test)]
mod tests;
