//! The writing thread at work: group commits, the journal moved into the file, what is left behind at the end.

mod renewal;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::engine::usage;
use crate::error::StoreError;
use crate::files::Files;
use crate::ledger::{Noted, Row, Slate};
use crate::records::Leftover;
use crate::writer::{Counters, Queue, Work, Write};

/// Pages of the journal after which it is moved into the file: four megabytes, as SQLite itself has it.
const CHECKPOINT_PAGES: i32 = 1_000;

/// How long the journal is left alone after it could not be moved.
const CHECKPOINT_REST: Duration = Duration::from_secs(1);

/// How often a closing writer tries to commit rows before it leaves them on the slate.
const LAST_TRIES: u32 = 1;

/// Where the thread works.
pub(crate) struct Desk {
    /// None where its files are gone, and could not be begun anew.
    connection: Option<Connection>,
    files: Files,
    busy_timeout: Duration,
    path: Arc<Path>,
    counters: Arc<Counters>,
    queue: Arc<Queue>,
    /// Pages in the journal, as SQLite said last.
    pages: Arc<AtomicI32>,
}

impl Desk {
    /// On an open connection.
    pub(crate) fn new(
        connection: Connection,
        busy_timeout: Duration,
        path: &Arc<Path>,
        counters: Arc<Counters>,
        queue: Arc<Queue>,
    ) -> Result<Self, StoreError> {
        let pages = Arc::new(AtomicI32::new(0));
        let connection = renewal::watched(connection, path, &pages)?;
        let (files, path) = (Files::note(path), Arc::clone(path));
        Ok(Self { connection: Some(connection), files, busy_timeout, path, counters, queue, pages })
    }

    /// Writes until the queue is closed and empty.
    pub(crate) fn run(mut self, slate: &Slate) {
        let mut last_tries = 0;
        let mut resting_until: Option<Instant> = None;
        loop {
            let Work { writes, rows, is_closing, is_last } = self.queue.next();
            let placed = self.stay_in_place(slate);
            slate.probe();
            let before = self.changes();
            let is_idle = writes.is_empty() && rows.is_empty() && !is_closing;
            let mut failure = if is_idle && self.queue.is_failing() && resting_until.is_none() {
                self.probe().err()
            } else {
                self.commit(writes, rows, slate)
            };
            // A transaction that changes nothing writes nothing, and proves nothing.
            failure = placed.err().or(failure);
            if failure.is_none() && self.changes() == before {
                failure = self.queue.failure().filter(|_| resting_until.is_none());
            }
            let rests = resting_until.is_some_and(|until| Instant::now() < until);
            if failure.is_none() && self.pages.load(Ordering::Relaxed) >= CHECKPOINT_PAGES {
                if rests {
                    failure = self.queue.failure();
                } else if let Err(error) = self.checkpoint() {
                    self.counters.failures.fetch_add(1, Ordering::Relaxed);
                    resting_until = Some(Instant::now() + CHECKPOINT_REST);
                    failure = Some(error);
                } else {
                    resting_until = None;
                }
            }
            let failed = failure.is_some();
            if failed || slate.fails() {
                self.queue.look_again();
            }
            self.tell(failure);
            // What cannot be committed stays on the slate, for the next start.
            last_tries += u32::from(is_closing && failed);
            if (is_last && !failed) || last_tries > LAST_TRIES {
                break;
            }
        }
        // Moves the journal into the file; should another process be in the way, SQLite does it later.
        let _ = self.checkpoint();
        // It says by itself where that fails, and what stands there is lost then.
        let _ = slate.stay_in_place();
        let leftover = leave(&self.queue.end(), slate);
        let closers = self.queue.left(leftover);
        drop(self.connection);
        slate.close();
        for closer in closers {
            // Nobody waits any more: fine.
            let _ = closer.send(());
        }
    }

    /// Rows that this connection has changed.
    fn changes(&self) -> u64 {
        self.connection.as_ref().map_or(0, Connection::total_changes)
    }

    /// The connection to the files at the path.
    fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or_else(|| self.gone("they were not there when it was last tried"))
    }

    /// Says so where the store begins to fail, and where it works again.
    fn tell(&self, failure: Option<StoreError>) {
        let said = failure.as_ref().map(ToString::to_string);
        if !self.queue.note(failure) {
            return;
        }
        if let Some(error) = said {
            tracing::error!(error, "the store fails: what is to be recorded waits");
        } else {
            tracing::info!("the store takes records again");
        }
    }

    /// Where nothing waits, only a write that changes something shows that the store works again.
    fn probe(&self) -> Result<(), StoreError> {
        let probed = self.connection().and_then(|connection| {
            probe(connection).map_err(|error| StoreError::of_sqlite(&self.path, &error))
        });
        if probed.is_err() {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
        }
        probed
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.connection()?
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i32>(0))
            .map_err(|error| StoreError::of_sqlite(&self.path, &error))?;
        // What could not be moved since others read it is moved after the next commit that finds it too long.
        self.pages.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Runs a batch in one transaction. A write that fails is undone alone; if the transaction fails, all of
    /// them are answered with that failure, and the rows wait.
    fn commit(
        &mut self,
        mut writes: Vec<Box<dyn Write>>,
        rows: Vec<Row>,
        slate: &Slate,
    ) -> Option<StoreError> {
        if writes.is_empty() && rows.is_empty() {
            return None;
        }
        let mut result = self.transact(&mut writes, &rows);
        if result.is_ok() && !self.files.are_in_place() {
            // Nobody finds what was written.
            result = Err(self.gone("they are begun anew"));
        }
        if result.is_ok() {
            self.counters.commits.fetch_add(1, Ordering::Relaxed);
            self.counters.writes.fetch_add(writes.len() as u64, Ordering::Relaxed);
            self.counters.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
            for row in &rows {
                slate.give_back(row.place.slot);
            }
        } else {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
            self.queue.put_back(rows);
        }
        for write in writes {
            write.answer(result.as_ref().err());
        }
        result.err()
    }

    fn transact(&self, writes: &mut [Box<dyn Write>], rows: &[Row]) -> Result<(), StoreError> {
        let connection = self.connection()?;
        self.execute("BEGIN IMMEDIATE")?;
        // What was spent before what is asked: a hold sees every call that is over.
        for row in rows {
            if let Err(error) = usage::record(connection, &row.call) {
                self.row_failed(connection, row, &error)?;
            }
        }
        for write in writes {
            self.execute("SAVEPOINT one")?;
            let result = write.run(connection);
            // A full disk and the like end the whole transaction, whatever else the batch holds.
            if let (Err(error), true) = (&result, connection.is_autocommit()) {
                return Err(error.clone());
            }
            if result.is_err() {
                self.execute("ROLLBACK TO one")?;
            }
            self.execute("RELEASE one")?;
        }
        self.execute("COMMIT")
    }

    /// A row that no table takes is left out, or it would keep all others back for ever; any other failure is the
    /// store's.
    fn row_failed(
        &self,
        connection: &Connection,
        row: &Row,
        error: &rusqlite::Error,
    ) -> Result<(), StoreError> {
        let is_the_rows = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        );
        if is_the_rows && !connection.is_autocommit() {
            self.counters.refused_rows.fetch_add(1, Ordering::Relaxed);
            tracing::error!(request = row.call.started.request_id, %error, "the store refuses the row of a call");
            return Ok(());
        }
        if !connection.is_autocommit() {
            // The first error is the one to report.
            let _ = connection.execute_batch("ROLLBACK");
        }
        Err(StoreError::of_sqlite(&self.path, error))
    }

    /// Runs a statement of the transaction itself; if it fails, the transaction is over.
    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        let connection = self.connection()?;
        let result = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        result.map(|_| ()).map_err(|error| {
            if !connection.is_autocommit() {
                // The first error is the one to report.
                let _ = connection.execute_batch("ROLLBACK");
            }
            StoreError::of_sqlite(&self.path, &error)
        })
    }
}

/// Writes something that changes nothing.
pub(crate) fn probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE schema_migrations SET applied_at = applied_at WHERE version = 1", [])?;
    Ok(())
}

/// Sees to it that the rows that could not be committed stand on the slate, and says what becomes of them.
fn leave(rows: &VecDeque<Row>, slate: &Slate) -> Leftover {
    let mut leftover = Leftover::default();
    for Row { call, place } in rows {
        let is_found = match place.noted {
            // What stands in a file that is nowhere is found by nobody.
            _ if slate.is_gone() => false,
            Noted::End => true,
            // There may be room by now. Of a call that only began to stand there, the next start finds that.
            Noted::Start | Noted::Nothing => {
                let written = slate.write(place.slot, &call.started, call.settled.as_ref());
                written.is_ok() || place.noted == Noted::Start
            }
        };
        leftover.rows_left += u64::from(is_found);
        leftover.rows_lost += u64::from(!is_found);
    }
    let Leftover { rows_left, rows_lost, .. } = leftover;
    if rows_lost > 0 {
        tracing::error!(
            rows_left,
            rows_lost,
            "rows of calls are lost: neither the store nor its slate took them"
        );
    } else if rows_left > 0 {
        tracing::warn!(rows_left, "rows of calls wait on the slate: the next start commits them");
    }
    leftover
}

#[cfg(test)]
mod tests;
