//! Reads a part of a kept output, for a command, a model or a page. (CX-5)

use std::ops::ControlFlow;

use endmark_context::cap::{CapError, Limits};
use endmark_context::read::{
    Content, Excerpt, ExcerptError, MAX_POINTER_TARGET_BYTES, Part, PartError, Picking, Place,
};

use super::KeptOutput;
use crate::error::StoreError;

/// Error when a part of a kept output is read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The part does not exist or cannot be capped.
    #[error(transparent)]
    Excerpt(#[from] ExcerptError),
    /// The store cannot read it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PartError> for ReadError {
    fn from(error: PartError) -> Self {
        Self::Excerpt(error.into())
    }
}

impl From<CapError> for ReadError {
    fn from(error: CapError) -> Self {
        Self::Excerpt(error.into())
    }
}

impl KeptOutput<'_> {
    /// Returns a part of the output within the limits. Pages and bytes are returned unchanged; lines and
    /// values are capped like an output. This function blocks.
    ///
    /// # Errors
    /// [`ReadError`] if the part does not exist, the limits leave no room, or the store fails.
    pub fn part(&self, part: &Part, limits: &Limits) -> Result<Excerpt, ReadError> {
        match part {
            Part::Page(page) => {
                let (page, pages) = (*page, self.pages(limits.most));
                let read = self.page(page, limits.most)?.ok_or(PartError::NoPage { page, pages })?;
                let bytes = read.first_byte..read.first_byte + read.bytes.len() as u64;
                Ok(Excerpt { content: Content::Bytes(read.bytes), place: Place::Page { page, pages, bytes } })
            }
            Part::Bytes(span) => {
                let range = span.resolve_bytes(self.bytes, limits.most)?;
                let bytes = self.read(range.clone())?;
                Ok(Excerpt { content: Content::Bytes(bytes), place: Place::Bytes(range) })
            }
            Part::Lines(span) => {
                let lines = span.resolve_lines(self.lines)?;
                self.pick_lines(lines[0] - 1, Picking::line_range(lines, limits)?)
            }
            Part::Grep(pattern) => self.pick_lines(0, Picking::matching(pattern, limits)?),
            Part::Pointer(_) if self.bytes > MAX_POINTER_TARGET_BYTES => {
                Err(PartError::TooLarge(self.bytes).into())
            }
            Part::Pointer(pointer) => Ok(Excerpt::from_pointer(&self.read(0..u64::MAX)?, pointer, limits)?),
        }
    }

    /// Returns the selected lines after the first `behind` line breaks.
    fn pick_lines(&self, behind: u64, mut picking: Picking) -> Result<Excerpt, ReadError> {
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
