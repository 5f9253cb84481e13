//! Opens the database file: sets its permissions, its write-ahead log, and its busy timeout.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::StoreError;

/// How long a statement waits for transactions of other processes, which normally need only milliseconds.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the database for writing. Creates a missing file with mode 0600.
pub(crate) fn open_for_writing(path: &Path, busy_timeout: Duration) -> Result<Connection, StoreError> {
    make_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |error| StoreError::from_sqlite(path, &error);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(busy_timeout).map_err(failed)?;
    use_wal(&connection, busy_timeout).map_err(failed)?;
    // In WAL mode with `synchronous = NORMAL`, a commit survives a kill of the process, and the file is never
    // damaged. Only a power failure can lose the newest commits.
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    Ok(connection)
}

/// Opens an existing database for reading.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        return Err(StoreError::NoFile { path: path.to_owned() });
    }
    if !path.is_file() {
        return Err(StoreError::not_a_file(path));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |error| StoreError::from_sqlite(path, &error);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    Ok(connection)
}

/// Creates the file with mode 0600, or removes the permissions of other users. SQLite gives the same
/// permissions to the write-ahead log and the shared memory.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::from_io(path, &error);
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(failed)?;
    // Check this before changing permissions: the path may be a device that other users need.
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(StoreError::not_a_file(path));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700)).map_err(failed)?;
        }
    }
    drop(file);
    Ok(())
}

/// Switches to write-ahead logging. SQLite does not call the busy handler if another connection writes to a
/// database that is not in WAL mode yet, so this function retries itself.
fn use_wal(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        let switched = connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
        match switched {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            switched => return switched,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
