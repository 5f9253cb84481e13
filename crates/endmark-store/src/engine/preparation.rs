//! Prepares an opened database before any other data is written.

use std::io;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::engine::{budgets, leases, migrate, recoveries, runs, usage};
use crate::error::StoreError;
use crate::ledger::slate;
use crate::owner;

/// Migrates the database, calls `identify`, settles what dead processes left unfinished, and calls
/// `register`. All of this happens under the database's write lock, so if two processes start together, one
/// of them waits. `identify` sees the file before the calls of dead processes are added.
pub(crate) fn register_owner<I, T>(
    connection: &mut Connection,
    path: &Path,
    identify: impl FnOnce(&Connection) -> Result<I, StoreError>,
    register: impl FnOnce() -> io::Result<T>,
) -> Result<(I, T), StoreError> {
    let failed = |error| StoreError::from_sqlite(path, &error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    migrate::migrate(&transaction, path)?;
    let found = identify(&transaction)?;
    recoveries::settle_interrupted(&transaction, path).map_err(failed)?;
    runs::mark_lost(&transaction, path).map_err(failed)?;
    let io_failed = |error| StoreError::from_io(path, &error);
    let dead = owner::find_dead_owners(path).map_err(io_failed)?;
    for left in &dead {
        for call in slate::read(left.path()).map_err(io_failed)? {
            usage::record_interrupted(&transaction, &call).map_err(failed)?;
        }
    }
    budgets::settle_interrupted(&transaction, path, &dead).map_err(failed)?;
    leases::settle_dead_processes(&transaction, path, &dead).map_err(failed)?;
    let registered = register().map_err(io_failed)?;
    transaction.commit().map_err(failed)?;
    // Commit the calls on the slates of dead processes.
    for left in dead {
        left.remove_file().map_err(io_failed)?;
    }
    Ok((found, registered))
}
