//! Detects Markdown as truncated only if an element is certainly open.

mod blocks;
mod fence;
mod html;
mod inline;
mod row;

pub(super) use blocks::Blocks;
pub use fence::CodeFence;
pub(super) use fence::Language;

use serde::{Deserialize, Serialize};

use super::text::TextMachine;
use crate::{Hint, Verdict};

/// The machine for Markdown (PC-1). A text is whole unless something is certainly open: a code fence, an HTML block
/// with its own end, the destination of a link, a row of a table, or a UTF-8 character.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct MarkdownMachine {
    text: TextMachine,
    blocks: Blocks,
}

impl MarkdownMachine {
    /// Reads the text's next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.text.push(chunk);
        self.blocks.push(chunk);
    }

    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(&self) -> bool {
        self.text.is_consistent() && self.blocks.is_consistent(self.text.position())
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.text.position()
    }

    /// Whether the text is not valid UTF-8.
    pub(super) fn is_malformed(&self) -> bool {
        self.text.is_malformed()
    }

    /// Whether nothing is open for certain.
    pub(super) fn is_whole(&self) -> bool {
        self.text.is_whole() && self.blocks.open().is_none()
    }

    /// Whether prose seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        if self.blocks.ends_in_paragraph() { self.text.hint() } else { None }
    }

    /// The text as such.
    pub(super) fn text(&self) -> &TextMachine {
        &self.text
    }

    /// The block structure.
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
