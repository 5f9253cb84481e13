//! Detects Markdown as truncated only if a construct is certainly open.

mod blocks;
mod fence;
mod html;
mod inline;
mod row;

pub(super) use blocks::Blocks;
pub use fence::CodeFence;
pub(super) use fence::FenceLanguage;

use serde::{Deserialize, Serialize};

use super::text::TextMachine;
use crate::{Hint, Verdict};

/// The state of the Markdown detection (PC-1). A text is whole unless something is certainly open: a code
/// fence, an HTML block with its own end sequence, a link destination, a table row, or a UTF-8 character.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct MarkdownMachine {
    text: TextMachine,
    blocks: Blocks,
}

impl MarkdownMachine {
    /// Reads the next bytes of the text.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.text.push(chunk);
        self.blocks.push(chunk);
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        self.text.is_consistent() && self.blocks.is_consistent(self.text.position())
    }

    /// Returns the number of bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.text.position()
    }

    /// Whether the text is not valid UTF-8.
    pub(super) fn is_malformed(&self) -> bool {
        self.text.is_malformed()
    }

    /// Whether nothing is certainly open.
    pub(super) fn is_whole(&self) -> bool {
        self.text.is_whole() && self.blocks.open().is_none()
    }

    /// Returns a hint if prose seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        if self.blocks.ends_in_paragraph() { self.text.hint() } else { None }
    }

    /// Returns the state that ignores Markdown, for UTF-8 and for the last token.
    pub(super) fn text(&self) -> &TextMachine {
        &self.text
    }

    /// Returns the block structure.
    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Returns the verdict as if the text ended here.
    pub(super) fn verdict(&self) -> Verdict {
        match self.text.verdict() {
            malformed @ Verdict::Malformed { .. } => malformed,
            verdict => match self.blocks.open() {
                None => verdict,
                Some((open, in_token, start)) => {
                    let mut truncation = self.text.truncation();
                    truncation.balanced_index = start;
                    truncation.open.push(open);
                    truncation.in_token = truncation.in_token.or(Some(in_token));
                    Verdict::Truncated(truncation)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
