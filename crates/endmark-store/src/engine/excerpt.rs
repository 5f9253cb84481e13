//! Reads a part of a kept output (CX-5).

use std::ops::ControlFlow;

use endmark_context::cap::{CapError, Limits};
use endmark_context::read::{
    Excerpt, ExcerptError, LineSelector, MAX_POINTER_TARGET_BYTES, Part, PartContent, PartError, PartLocation,
};

use super::KeptOutput;
use crate::error::StoreError;

/// Error of reading a part of a kept output.
#[derive(Debug, thiserror::Error)]
pub enum ExcerptReadError {
    /// The part does not exist or cannot be capped.
    #[error(transparent)]
    Excerpt(#[from] ExcerptError),
    /// The store cannot read it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PartError> for ExcerptReadError {
    fn from(error: PartError) -> Self {
        Self::Excerpt(error.into())
    }
}

impl From<CapError> for ExcerptReadError {
    fn from(error: CapError) -> Self {
        Self::Excerpt(error.into())
    }
}

impl KeptOutput<'_> {
    /// Returns a part of the output within the limits. Pages and byte ranges are returned unchanged, but
    /// lines and values are capped like a new output. This function blocks.
    ///
    /// # Errors
    /// [`ExcerptReadError`] if the part does not exist, the limits leave no room, or the store fails.
    pub fn part(&self, part: &Part, limits: &Limits) -> Result<Excerpt, ExcerptReadError> {
        match part {
            Part::Page(page) => {
                let (page, pages) = (*page, self.pages(limits.most));
                let read = self.page(page, limits.most)?.ok_or(PartError::NoPage { page, pages })?;
                let bytes = read.first_byte..read.first_byte + read.bytes.len() as u64;
                Ok(Excerpt {
                    content: PartContent::Bytes(read.bytes),
                    location: PartLocation::Page { page, pages, bytes },
                })
            }
            Part::Bytes(span) => {
                let range = span.resolve_bytes(self.bytes, limits.most)?;
                let bytes = self.read(range.clone())?;
                Ok(Excerpt { content: PartContent::Bytes(bytes), location: PartLocation::Bytes(range) })
            }
            Part::Lines(span) => {
                let lines = span.resolve_lines(self.lines)?;
                self.pick_lines(lines[0] - 1, LineSelector::line_range(lines, limits)?)
            }
            Part::Grep(pattern) => self.pick_lines(0, LineSelector::matching(pattern, limits)?),
            Part::Pointer(_) if self.bytes > MAX_POINTER_TARGET_BYTES => {
                Err(PartError::TooLarge(self.bytes).into())
            }
            Part::Pointer(pointer) => Ok(Excerpt::from_pointer(&self.read(0..u64::MAX)?, pointer, limits)?),
        }
    }

    /// Returns the selected lines after the first `behind` line breaks.
    fn pick_lines(&self, behind: u64, mut picking: LineSelector) -> Result<Excerpt, ExcerptReadError> {
        let mut failure = None;
        self.lines_from(behind, |number, line| {
            picking.push_line(number, line).unwrap_or_else(|error| {
                failure = Some(error);
                ControlFlow::Break(())
            })
        })?;
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(picking.finish()?),
        }
    }
}
