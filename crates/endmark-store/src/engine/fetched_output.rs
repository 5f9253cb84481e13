//! Reads an output that was fetched from the shared database. It is stored in an in-memory store, so that it
//! can be read like any other output.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::engine::outputs::{self, CompressedPiece};
use crate::engine::{Reader, StatementError, migrate};
use crate::error::StoreError;
use crate::outputs::{Handle, NewOutput};

/// An output with all its pieces.
pub(crate) struct FetchedOutput {
    pub(crate) handle: String,
    pub(crate) owner: String,
    pub(crate) format: String,
    pub(crate) bytes: i64,
    pub(crate) lines: i64,
    pub(crate) is_expired: bool,
    pub(crate) pieces: Vec<CompressedPiece>,
}

impl Reader {
    /// Returns a reader on an in-memory store that contains only this output. `path` is for error messages.
    pub(crate) fn from_fetched(path: &Path, output: &FetchedOutput) -> Result<Self, StoreError> {
        let failed = |error: rusqlite::Error| StoreError::from_sqlite(path, &error);
        let connection = Connection::open_in_memory().map_err(failed)?;
        migrate::migrate(&connection, path)?;
        insert_output(&connection, output).map_err(|fault| StoreError::from_fault(path, &fault))?;
        Ok(Self::from_connection(connection, path))
    }

    /// Whether this file contains the output, and the output has not expired.
    pub(crate) fn has_output(&self, handle: &Handle) -> Result<bool, StoreError> {
        outputs::is_available(self.connection(), handle.as_str()).map_err(|error| self.store_error(&error))
    }
}

fn insert_output(connection: &Connection, output: &FetchedOutput) -> Result<(), StatementError> {
    let FetchedOutput { handle, owner, format, bytes, lines, is_expired, pieces } = output;
    let Some(handle) = Handle::parse(handle) else { return Ok(()) };
    let new = NewOutput { handle, owner: owner.clone(), keep_days: 0, max_bytes: 0 };
    outputs::insert_output(connection, &new)?;
    let handle = new.handle.as_str();
    for piece in pieces {
        outputs::append_piece(connection, handle, piece, 0)?;
    }
    outputs::mark_complete(connection, handle, format, *bytes, *lines)?;
    if *is_expired {
        connection
            .execute("UPDATE outputs SET keep_days = 1, last_used = 0 WHERE handle = ?1", params![handle])?;
    }
    Ok(())
}
