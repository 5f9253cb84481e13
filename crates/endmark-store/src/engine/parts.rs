//! Parts of a kept output: pages that begin where a line or a record does, and lines with their numbers.

use std::ops::ControlFlow;

use endmark_context::read::Pages;

use super::KeptOutput;
use crate::error::StoreError;

/// A line that is longer is handed out in parts.
const LONGEST_LINE_BYTES: usize = 4 << 20;

/// A page of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// What is on it.
    pub bytes: Vec<u8>,
    /// Where it begins, in bytes.
    pub first_byte: u64,
}

impl KeptOutput<'_> {
    /// How many pages of at most so many bytes it has: one at least.
    pub fn pages(&self, most_bytes: usize) -> u64 {
        self.in_pages(most_bytes).count()
    }

    /// A page of at most so many bytes, from 1; none where there is no such page.
    pub fn page(&self, page: u64, most_bytes: usize) -> Result<Option<OutputPage>, StoreError> {
        let Some(span) = self.in_pages(most_bytes).span(page, |range| self.read(range))? else {
            return Ok(None);
        };
        Ok(Some(OutputPage { first_byte: span.start, bytes: self.read(span)? }))
    }

    fn in_pages(&self, most_bytes: usize) -> Pages {
        Pages { bytes: self.bytes, most_bytes }
    }

    /// Hands out lines with their numbers, from 1, and their line breaks, beginning at the latest with the one behind so
    /// many line breaks, until it is told to stop.
    pub fn lines_from(
        &self,
        behind: u64,
        mut take: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (mut waiting, mut number): (Vec<u8>, Option<u64>) = (Vec::new(), None);
        let mut outcome = ControlFlow::Continue(());
        self.pieces_from_line(behind, |piece| {
            let number = number.get_or_insert(piece.first_line + 1);
            waiting.extend_from_slice(&piece.bytes);
            let mut begin = 0;
            while let Some(end) = memchr::memchr(b'\n', &waiting[begin..]).map(|at| begin + at + 1) {
                outcome = take(*number, &waiting[begin..end]);
                (begin, *number) = (end, *number + 1);
                if outcome.is_break() {
                    return outcome;
                }
            }
            waiting.drain(..begin);
            if waiting.len() > LONGEST_LINE_BYTES {
                outcome = take(*number, &waiting);
                waiting.clear();
            }
            outcome
        })?;
        if outcome.is_continue()
            && let Some(number) = number
            && !waiting.is_empty()
        {
            // Nothing is behind it that could be stopped.
            let _ = take(number, &waiting);
        }
        Ok(())
    }
}
