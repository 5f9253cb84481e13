//! A writing session: the interface of the engine to the writer thread.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::calls::Call;
use crate::engine::connection::open_for_writing;
use crate::engine::preparation::register_owner;
use crate::engine::{budgets, leases, usage};
use crate::error::StoreError;
use crate::leases::{BudgetKey, LeasedAmount, LeasedCall, Leases};
use crate::owner::Owner;

/// Capacity of the statement cache, which is larger than the number of statements that the writer uses.
const STATEMENT_CACHE_CAPACITY: usize = 128;

/// Number of pages after which the write-ahead log is moved into the database: four megabytes, SQLite's own
/// default.
const MAX_WAL_PAGES: i32 = 1_000;

/// An open session of the engine. The modules in this folder implement its operations. The writer begins, fills and
/// commits its transactions.
pub(crate) struct Session {
    connection: Connection,
    path: Arc<Path>,
    /// Number of pages in the write-ahead log, as last reported by SQLite.
    wal_pages: Arc<AtomicI32>,
}

/// The result of writing the row of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowOutcome {
    /// The row is in the transaction, or was already in the table.
    Kept,
    /// The table rejects the row for this reason. A retry would block all other rows forever.
    Refused(String),
}

/// Lets the functions of this folder use the connection.
impl Deref for Session {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Session {
    /// Opens the store: creates and migrates it, calls `identify`, settles what dead processes left unfinished, and
    /// registers this owner.
    pub(crate) fn open<I>(
        path: &Path,
        busy_timeout: Duration,
        identify: impl FnOnce(&Connection) -> Result<I, StoreError>,
    ) -> Result<(Self, Owner, I), StoreError> {
        let mut connection = open_for_writing(path, busy_timeout)?;
        let (found, owner) = register_owner(&mut connection, path, identify, || Owner::register(path))?;
        Ok((Self::from_connection(connection, path)?, owner, found))
    }

    /// Creates the store again after its files were removed. The owner is already registered.
    pub(crate) fn reopen(path: &Path, busy_timeout: Duration) -> Result<Self, StoreError> {
        let mut connection = open_for_writing(path, busy_timeout)?;
        register_owner(&mut connection, path, |_| Ok(()), || Ok(()))?;
        Self::from_connection(connection, path)
    }

    /// Creates the session, and counts the pages of the write-ahead log from now on. SQLite could move the
    /// log by itself, but it would not report failures.
    fn from_connection(mut connection: Connection, path: &Path) -> Result<Self, StoreError> {
        connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
        let journal_pages = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&journal_pages);
        let hook = move |_: &mut Wal, pages: i32| {
            seen.store(pages, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(|error| StoreError::from_sqlite(path, &error))?;
        Ok(Self { connection, path: Arc::from(path), wal_pages: journal_pages })
    }

    /// Begins a transaction.
    pub(crate) fn begin(&self) -> Result<(), StoreError> {
        self.execute("BEGIN IMMEDIATE")
    }

    /// Commits the transaction.
    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        self.execute("COMMIT")
    }

    /// Runs one write in the transaction. If the write fails, only that write is rolled back. An error means
    /// that the whole transaction has ended, for example because the disk is full.
    pub(crate) fn write(
        &self,
        write: impl FnOnce(&Self) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.execute("SAVEPOINT one")?;
        let result = write(self);
        if let (Err(error), true) = (&result, self.is_autocommit()) {
            return Err(error.clone());
        }
        if result.is_err() {
            self.execute("ROLLBACK TO one")?;
        }
        self.execute("RELEASE one")
    }

    /// Writes the rows of finished calls. An error means that the store failed and the transaction has ended.
    pub(crate) fn record(&self, calls: &[&Call]) -> Result<Vec<RowOutcome>, StoreError> {
        self.in_transaction(|connection| usage::record_all(connection, calls))
    }

    /// Settles a call that is not held in a lease. An error means that the store failed and the transaction
    /// has ended.
    pub(crate) fn settle(&self, call: &Call) -> Result<RowOutcome, StoreError> {
        self.in_transaction(|connection| {
            usage::classify_result(connection, budgets::settle(connection, call, true))
        })
    }

    /// Writes the budget entries of calls that were held in leases.
    pub(crate) fn settle_leased(&self, entries: &[(&Call, &LeasedAmount)]) -> Result<(), StoreError> {
        self.in_transaction(|connection| leases::settle(connection, entries))
    }

    /// Adds the costs of calls that were held in leases to their budgets.
    pub(crate) fn charge_leased(&self, costs: &HashMap<Arc<BudgetKey>, u64>) -> Result<(), StoreError> {
        self.in_transaction(|connection| leases::charge(connection, costs))
    }

    /// Plans which leases change, and writes those.
    pub(crate) fn write_leases(
        &self,
        owner: &str,
        leases: &Leases,
        changed: &[(Arc<BudgetKey>, u64)],
    ) -> Result<(), StoreError> {
        self.in_transaction(|connection| leases::write(connection, owner, leases, changed))
    }

    /// Returns all leases of an ending process to their budgets, in a separate transaction.
    pub(crate) fn return_leases(&self, owner: &str, calls: &[LeasedCall]) -> Result<(), StoreError> {
        self.begin()?;
        self.in_transaction(|connection| leases::return_all(connection, owner, calls))?;
        self.commit()
    }

    /// Runs `work` in the transaction, which ends if `work` fails.
    fn in_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(self).map_err(|error| {
            self.roll_back();
            self.store_error(&error)
        })
    }

    /// Returns the number of rows that this session has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.total_changes()
    }

    /// Runs a write that changes nothing. After a failure with an empty queue, only a write shows that the
    /// store works again.
    pub(crate) fn test_write(&self) -> Result<(), StoreError> {
        let sql = "UPDATE schema_migrations SET applied_at = applied_at WHERE version = 1";
        self.connection.execute(sql, []).map(|_| ()).map_err(|error| self.store_error(&error))
    }

    /// Whether it is time to move the write-ahead log into the database.
    pub(crate) fn is_wal_long(&self) -> bool {
        self.wal_pages.load(Ordering::Relaxed) >= MAX_WAL_PAGES
    }

    /// Moves the write-ahead log into the database, except for pages that readers still need.
    pub(crate) fn checkpoint(&self) -> Result<(), StoreError> {
        self.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i32>(0))
            .map_err(|error| self.store_error(&error))?;
        // If pages remain in the log, a later commit finds again that it is too long.
        self.wal_pages.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the session after its files were removed. Moves the write-ahead log into the removed database, to
    /// which it belongs.
    pub(crate) fn close_removed(self) {
        let _ = self.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Runs a statement of the transaction. An error ends the transaction.
    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.in_transaction(|connection| connection.prepare_cached(sql)?.execute([]).map(|_| ()))
    }

    fn roll_back(&self) {
        if !self.is_autocommit() {
            // The first error is reported, so this one can be ignored.
            let _ = self.execute_batch("ROLLBACK");
        }
    }

    fn store_error(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, error)
    }
}

#[cfg(test)]
mod tests;
