//! Errors of SQL statements, and their conversion to store errors.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::StoreError;
use crate::records::CutId;

/// Error of a statement, without the path of the file.
#[derive(Debug)]
pub(crate) enum StatementError {
    /// SQLite reported an error.
    Sqlite(rusqlite::Error),
    /// The intent does not exist.
    NoSuchCut(CutId),
    /// Kept outputs have reached their quota, and none of them may be removed.
    QuotaExceeded {
        /// Maximum total size of the kept outputs.
        max_bytes: u64,
    },
    /// An error that already contains the path of the file.
    Store(StoreError),
}

impl From<StoreError> for StatementError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for StatementError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl StoreError {
    pub(crate) fn from_fault(path: &Path, fault: &StatementError) -> Self {
        match fault {
            StatementError::Sqlite(error) => Self::from_sqlite(path, error),
            StatementError::NoSuchCut(id) => Self::NoSuchCut(*id),
            StatementError::QuotaExceeded { max_bytes } => Self::NoRoomForOutput { max_bytes: *max_bytes },
            StatementError::Store(error) => error.clone(),
        }
    }

    pub(crate) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail },
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::Denied { path, detail }
            }
            _ => Self::Failed { path, detail },
        }
    }
}
