//! Reads parts of a kept output: numbered lines, and pages that begin at a line or a record.

use std::ops::ControlFlow;

use endmark_context::read::Pages;

use super::KeptOutput;
use crate::error::StoreError;

/// Longest line that is passed on as a whole. A longer line is passed on in parts.
const LONGEST_LINE_BYTES: usize = 4 << 20;

/// A page of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// The content of the page.
    pub bytes: Vec<u8>,
    /// The offset of the page in bytes.
    pub first_byte: u64,
}

impl KeptOutput<'_> {
    /// Returns the number of pages of at most `most_bytes` bytes. There is at least one.
    pub fn pages(&self, most_bytes: usize) -> u64 {
        self.page_layout(most_bytes).count()
    }

    /// Returns page `page`, counted from 1, of at most `most_bytes` bytes. Returns `None` if the page does not exist.
    pub fn page(&self, page: u64, most_bytes: usize) -> Result<Option<OutputPage>, StoreError> {
        let Some(span) = self.page_layout(most_bytes).span(page, |range| self.read(range))? else {
            return Ok(None);
        };
        Ok(Some(OutputPage { first_byte: span.start, bytes: self.read(span)? }))
    }

    fn page_layout(&self, most_bytes: usize) -> Pages {
        Pages { bytes: self.bytes, most_bytes }
    }

    /// Passes lines to `take`, with line numbers from 1, until `take` breaks. Starts at or before the line
    /// that follows `behind` line breaks.
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
            // This is the last line, so it does not matter what `take` returns.
            let _ = take(number, &waiting);
        }
        Ok(())
    }
}
