//! A session that writes: what the thread at work asks of the engine.

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
use crate::engine::moving_in::move_in;
use crate::engine::{budgets, leases, usage};
use crate::error::StoreError;
use crate::leases::{BudgetKey, LeasedAmount, LeasedCall, Leases};
use crate::owner::Owner;

/// Statements that are kept prepared: more than the writer has.
const PREPARED_STATEMENTS: usize = 64;

/// Pages of the journal after which it is moved into the file: four megabytes, as SQLite itself has it.
const MAX_JOURNAL_PAGES: i32 = 1_000;

/// An open session of the engine. What is done on it stands in the modules of this folder; to the rest of the crate it is
/// a transaction that is begun, filled and committed.
pub(crate) struct Session {
    connection: Connection,
    path: Arc<Path>,
    /// Pages in the journal, as SQLite said last.
    journal_pages: Arc<AtomicI32>,
}

/// What became of the row of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It is in the transaction, or was there before.
    Kept,
    /// No table takes it, for this reason: kept, it would keep all others back for ever.
    Refused(String),
}

/// For the functions of this folder, which take the connection itself.
impl Deref for Session {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Session {
    /// Opens the store: made, brought up to date, rid of what the dead left open, and registered.
    pub(crate) fn open(path: &Path, busy_timeout: Duration) -> Result<(Self, Owner), StoreError> {
        let mut connection = open_for_writing(path, busy_timeout)?;
        let owner = move_in(&mut connection, path, || Owner::register(path))?;
        Ok((Self::on(connection, path)?, owner))
    }

    /// Opens the store at a path from which its files were taken away, for an owner that is registered.
    pub(crate) fn open_anew(path: &Path, busy_timeout: Duration) -> Result<Self, StoreError> {
        let mut connection = open_for_writing(path, busy_timeout)?;
        move_in(&mut connection, path, || Ok(()))?;
        Self::on(connection, path)
    }

    /// The pages of its journal are counted: SQLite moves that by itself, too, but does not say where that fails.
    fn on(mut connection: Connection, path: &Path) -> Result<Self, StoreError> {
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        let journal_pages = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&journal_pages);
        let hook = move |_: &mut Wal, pages: i32| {
            seen.store(pages, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(|error| StoreError::of_sqlite(path, &error))?;
        Ok(Self { connection, path: Arc::from(path), journal_pages })
    }

    /// Begins a transaction.
    pub(crate) fn begin(&self) -> Result<(), StoreError> {
        self.execute("BEGIN IMMEDIATE")
    }

    /// Commits it.
    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        self.execute("COMMIT")
    }

    /// Does a write of the transaction, which is undone alone where it fails. An error is one of the whole transaction, which
    /// is over then: a full disk and the like end it, whatever else it holds.
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

    /// Writes the rows of calls that are over. An error is the store's, and ends the transaction.
    pub(crate) fn record(&self, calls: &[&Call]) -> Result<Vec<Recorded>, StoreError> {
        self.whole(|connection| usage::record_all(connection, calls))
    }

    /// Settles a call whose holds are in no lease. An error is the store's, and ends the transaction.
    pub(crate) fn settle(&self, call: &Call) -> Result<Recorded, StoreError> {
        self.whole(|connection| usage::unless_refused(connection, budgets::settle(connection, call)))
    }

    /// Writes the entries of calls that were held in leases.
    pub(crate) fn settle_leased(&self, entries: &[(&Call, &LeasedAmount)]) -> Result<(), StoreError> {
        self.whole(|connection| leases::settle(connection, entries))
    }

    /// Adds what calls cost that were held in leases.
    pub(crate) fn charge_leased(&self, costs: &HashMap<Arc<BudgetKey>, u64>) -> Result<(), StoreError> {
        self.whole(|connection| leases::charge(connection, costs))
    }

    /// Plans leases that changed, and writes them.
    pub(crate) fn write_leases(
        &self,
        owner: &str,
        leases: &Leases,
        changed: &[(Arc<BudgetKey>, u64)],
    ) -> Result<(), StoreError> {
        self.whole(|connection| leases::write(connection, owner, leases, changed))
    }

    /// Gives back all leases of a process that ends, in a transaction of its own.
    pub(crate) fn give_leases_back(&self, owner: &str, calls: &[LeasedCall]) -> Result<(), StoreError> {
        self.begin()?;
        self.whole(|connection| leases::give_back(connection, owner, calls))?;
        self.commit()
    }

    /// Does work of the transaction itself; if it fails, the transaction is over.
    fn whole<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        work(self).map_err(|error| {
            self.roll_back();
            self.failed(&error)
        })
    }

    /// Rows that it has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.total_changes()
    }

    /// Writes something that changes nothing: where a write failed and nothing waits, only that shows that it works again.
    pub(crate) fn probe(&self) -> Result<(), StoreError> {
        let sql = "UPDATE schema_migrations SET applied_at = applied_at WHERE version = 1";
        self.connection.execute(sql, []).map(|_| ()).map_err(|error| self.failed(&error))
    }

    /// Whether it is time to move the journal into the file.
    pub(crate) fn has_long_journal(&self) -> bool {
        self.journal_pages.load(Ordering::Relaxed) >= MAX_JOURNAL_PAGES
    }

    /// Moves the journal into the file, as far as nobody reads it.
    pub(crate) fn move_journal(&self) -> Result<(), StoreError> {
        self.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i32>(0))
            .map_err(|error| self.failed(&error))?;
        // What could not be moved since others read it is moved after the next commit that finds it too long.
        self.journal_pages.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Ends it where its files are gone: what is in its journal belongs to them, wherever they are by now.
    pub(crate) fn abandon(self) {
        let _ = self.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Runs a statement of the transaction itself; if it fails, the transaction is over.
    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.whole(|connection| connection.prepare_cached(sql)?.execute([]).map(|_| ()))
    }

    fn roll_back(&self) {
        if !self.is_autocommit() {
            // The first error is the one to report.
            let _ = self.execute_batch("ROLLBACK");
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::of_sqlite(&self.path, error)
    }
}

#[cfg(test)]
mod tests;
