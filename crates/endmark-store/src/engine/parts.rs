//! Parts of a kept output: pages that begin where a line or a record does, and lines with their numbers.

use std::ops::ControlFlow;

use endmark_context::read::{PAGE_LOOK_BEHIND_BYTES, page_begin};

use super::KeptOutput;
use crate::error::StoreError;

/// As much as is needed to see the end of a character.
const LOOK_AHEAD_BYTES: u64 = 64;
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
        self.bytes.div_ceil(step(most_bytes)).max(1)
    }

    /// A page of at most so many bytes, from 1; none where there is no such page.
    pub fn page(&self, page: u64, most_bytes: usize) -> Result<Option<OutputPage>, StoreError> {
        if page == 0 || page > self.pages(most_bytes) {
            return Ok(None);
        }
        let begin = |page: u64| {
            let place = page.saturating_mul(step(most_bytes)).min(self.bytes);
            if place == 0 || place == self.bytes {
                return Ok::<u64, StoreError>(place);
            }
            let first = place - place.min(look_behind(most_bytes) as u64);
            let near = self.read(first..place + LOOK_AHEAD_BYTES)?;
            let before = usize::try_from(place - first).unwrap_or_default().min(near.len());
            let (before, behind) = near.split_at(before);
            Ok(place - page_begin(before, behind) as u64)
        };
        let (from, to) = (begin(page - 1)?, begin(page)?);
        Ok(Some(OutputPage { bytes: self.read(from..to)?, first_byte: from }))
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

/// Bytes from one page's place to the next: a page may begin a little before its place, and must not be longer for it.
fn step(most_bytes: usize) -> u64 {
    (most_bytes - look_behind(most_bytes)).max(1) as u64
}

fn look_behind(most_bytes: usize) -> usize {
    PAGE_LOOK_BEHIND_BYTES.min(most_bytes / 4)
}
