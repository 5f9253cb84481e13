//! Reading a kept output from a program without a runtime: why it cannot be read, and a note that it was.

use endmark_context::read::{ExcerptError, PartError};
use endmark_failure::CommandError;

use super::{Handle, capping};
use crate::engine::ReadError;
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::runtime;
use crate::store::Store;

/// What patterns are.
const PATTERN_HINT: &str =
    "It is a regular expression of the Rust crate `regex`: no look-around, no back-references.";

impl Handle {
    /// Reads a handle; the error names it, as where none is kept under it.
    pub fn parse_known(handle: &str) -> Result<Self, CommandError> {
        let unknown = || unreadable(&StoreError::NoOutput { handle: handle.to_owned() });
        Self::parse(handle).ok_or_else(unknown)
    }
}

/// Notes that an output was read, so that its days begin again. The error is why that cannot be noted.
pub fn note_read(location: &StoreLocation, handle: &Handle) -> Result<(), String> {
    let store = Store::open(location).map_err(|error| error.to_string())?;
    let noted = runtime::block_on(async {
        let noted = store.touch_output(handle).await;
        store.close().await;
        noted
    });
    noted.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Why an output cannot be read.
pub fn unreadable(error: &StoreError) -> CommandError {
    let code = match error {
        StoreError::NoOutput { .. } => "unknown_handle",
        StoreError::ExpiredOutput { .. } => "expired_handle",
        StoreError::RemovedOutput { .. } => "removed_handle",
        _ => return CommandError::of_store(error),
    };
    CommandError::Input { code, message: error.to_string(), hint: None }
}

impl From<&ReadError> for CommandError {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::Store(error) => unreadable(error),
            ReadError::Excerpt(ExcerptError::Cap(error)) => capping::refused(error),
            ReadError::Excerpt(ExcerptError::Part(error)) => Self::Input {
                code: error.code(),
                message: error.to_string(),
                hint: matches!(error, PartError::Pattern(_)).then(|| PATTERN_HINT.to_owned()),
            },
        }
    }
}
