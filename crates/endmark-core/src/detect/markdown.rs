//! Markdown: truncated only by what is certain to be open.

use super::auto::markdown::Markdown;
use super::text::TextMachine;
use crate::{Hint, InToken, Open, Verdict};

/// The machine for Markdown.
#[derive(Debug, Clone, Default)]
pub(super) struct MarkdownMachine {
    text: TextMachine,
    fences: Markdown,
}

impl MarkdownMachine {
    /// Takes the text's next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.text.push(chunk);
        let mut at = 0;
        while at < chunk.len() {
            let (taken, place) = self.fences.push(&chunk[at..]);
            at += taken;
            if place.is_some() {
                self.fences.resume(false);
                at += 1;
            }
        }
    }

    /// Bytes seen.
    pub(super) fn position(&self) -> usize {
        self.text.position()
    }

    /// Whether it is no UTF-8.
    pub(super) fn is_malformed(&self) -> bool {
        self.text.is_malformed()
    }

    /// Whether nothing is certain to be open.
    pub(super) fn is_whole(&self) -> bool {
        self.text.is_whole() && self.fences.open_fence().is_none()
    }

    /// Whether prose seems to stop in the middle of a sentence.
    pub(super) fn hint(&self) -> Option<Hint> {
        if self.fences.open_fence().is_none() { self.text.hint() } else { None }
    }

    /// What the text is, should it end here.
    pub(super) fn verdict(&self) -> Verdict {
        let Some((sign, length)) = self.fences.open_fence() else { return self.text.verdict() };
        if self.text.is_malformed() {
            return self.text.verdict();
        }
        let mut truncation = self.text.truncation();
        truncation.open = vec![Open::Fence { sign, length }];
        truncation.in_token = truncation.in_token.or(Some(InToken::Code));
        Verdict::Truncated(truncation)
    }
}
