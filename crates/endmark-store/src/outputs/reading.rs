//! Reads kept outputs in a program without an async runtime: the errors, and the record that an output was read.

use endmark_context::read::{ExcerptError, PartError};
use endmark_failure::CommandError;

use super::{Handle, capping, remote};
use crate::engine::ReadError;
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::runtime;
use crate::store::Store;

/// Hint for an invalid pattern.
const PATTERN_HINT: &str =
    "It is a regular expression of the Rust crate `regex`: no look-around, no back-references.";

impl Handle {
    /// Parses a handle. An invalid handle gives the same error as an unknown one.
    pub fn parse_known(handle: &str) -> Result<Self, CommandError> {
        let unknown = || read_failure(&StoreError::NoOutput { handle: handle.to_owned() });
        Self::parse(handle).ok_or_else(unknown)
    }
}

/// Records that an output was read, which restarts its retention time. The error states why that failed.
pub fn note_read(location: &StoreLocation, handle: &Handle) -> Result<(), String> {
    if location.postgres().is_some() {
        // Write to the database instead of the journal, which a gateway may be using.
        return remote::note_read_in_database(location, handle).map_err(|error| error.to_string());
    }
    let store = Store::open(location).map_err(|error| error.to_string())?;
    let noted = runtime::block_on(async {
        let noted = store.touch_output(handle).await;
        store.close().await;
        noted
    });
    noted.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Returns the error for an output that cannot be read.
pub fn read_failure(error: &StoreError) -> CommandError {
    let code = match error {
        StoreError::NoOutput { .. } => "unknown_handle",
        StoreError::ExpiredOutput { .. } => "expired_handle",
        StoreError::RemovedOutput { .. } => "removed_handle",
        _ => return CommandError::from_store(error),
    };
    CommandError::Input { code, message: error.to_string(), hint: None }
}

impl From<&ReadError> for CommandError {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::Store(error) => read_failure(error),
            ReadError::Excerpt(ExcerptError::Cap(error)) => capping::cap_error(error),
            ReadError::Excerpt(ExcerptError::Part(error)) => Self::Input {
                code: error.code(),
                message: error.to_string(),
                hint: matches!(error, PartError::Pattern(_)).then(|| PATTERN_HINT.to_owned()),
            },
        }
    }
}
