//! Reads kept outputs in a program without an async runtime: returns errors as command errors, and records
//! each reading.

use endmark_context::read::{ExcerptError, PartError};
use endmark_failure::CommandError;

use super::{Handle, capping, remote};
use crate::engine::ExcerptReadError;
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::runtime;
use crate::store::Store;

/// Hint for an invalid pattern.
const PATTERN_HINT: &str =
    "It is a regular expression of the Rust crate `regex`: no look-around, no back-references.";

impl Handle {
    /// Parses a handle. An invalid handle gives the same error as an unknown one.
    pub fn parse_or_unknown(handle: &str) -> Result<Self, CommandError> {
        let unknown = || read_error(&StoreError::NoOutput { handle: handle.to_owned() });
        Self::parse(handle).ok_or_else(unknown)
    }
}

/// Records that an output was read, which restarts its retention time. The error is the reason why that
/// failed.
pub fn record_read(location: &StoreLocation, handle: &Handle) -> Result<(), String> {
    if location.postgres().is_some() {
        // With PostgreSQL, write to the database. A gateway may be using the journal.
        return remote::record_read_in_database(location, handle).map_err(|error| error.to_string());
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
pub fn read_error(error: &StoreError) -> CommandError {
    let code = match error {
        StoreError::NoOutput { .. } => "unknown_handle",
        StoreError::ExpiredOutput { .. } => "expired_handle",
        StoreError::RemovedOutput { .. } => "removed_handle",
        _ => return CommandError::from_store(error),
    };
    CommandError::Input { code, message: error.to_string(), hint: None }
}

impl From<&ExcerptReadError> for CommandError {
    fn from(error: &ExcerptReadError) -> Self {
        match error {
            ExcerptReadError::Store(error) => read_error(error),
            ExcerptReadError::Excerpt(ExcerptError::Cap(error)) => capping::cap_error(error),
            ExcerptReadError::Excerpt(ExcerptError::Part(error)) => Self::Input {
                code: error.code(),
                message: error.to_string(),
                hint: matches!(error, PartError::Pattern(_)).then(|| PATTERN_HINT.to_owned()),
            },
        }
    }
}
