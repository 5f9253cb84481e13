//! The one thread that writes: a bounded queue in, group commits, answers out.

mod queue;
mod renewal;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

pub(crate) use queue::Queue;
use queue::Work;

use crate::error::{Fault, StoreError};
use crate::files::Files;
use crate::ledger::{Noted, Row, Slate};
use crate::records::Leftover;
use crate::store::Tuning;
use crate::usage;
use renewal::Renewals;

/// Writes that wait for the thread; when it is full, callers wait for room (a row is a few hundred bytes).
pub(crate) const QUEUE: usize = 1024;

/// Pages of the journal after which it is moved into the file: four megabytes, as SQLite itself has it.
const CHECKPOINT_PAGES: i32 = 1_000;

/// How long the journal is left alone after it could not be moved.
const CHECKPOINT_REST: Duration = Duration::from_secs(1);

/// How often a closing writer tries to commit rows before it leaves them on the slate.
const LAST_TRIES: u32 = 1;

/// The writing end of a store. Dropping it writes what is queued, then ends the thread.
pub(crate) struct Writer {
    path: Arc<Path>,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// What the thread did since it was started.
#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    writes: AtomicU64,
    rows: AtomicU64,
    failures: AtomicU64,
    refused_rows: AtomicU64,
    renewals: Renewals,
}

/// The writer's account of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) commits: u64,
    pub(crate) writes: u64,
    pub(crate) rows: u64,
    pub(crate) failures: u64,
    pub(crate) refused_rows: u64,
    /// How often the files were begun anew, and whether that was lately.
    pub(crate) renewals: u64,
    pub(crate) renewed_lately: bool,
    /// Left on the slate at the end.
    pub(crate) rows_left: u64,
    /// Neither committed nor left on the slate at the end.
    pub(crate) rows_lost: u64,
}

impl Writer {
    /// Starts the thread on an open connection; the slate is let go of when the thread ends.
    pub(crate) fn start(
        connection: Connection,
        slate: Arc<Slate>,
        path: &Path,
        tuning: Tuning,
    ) -> Result<Self, StoreError> {
        let path: Arc<Path> = Arc::from(path);
        let counters = Arc::new(Counters::default());
        let queue = Arc::new(Queue::new(tuning.queue));
        let pages = Arc::new(AtomicI32::new(0));
        let connection = renewal::watched(connection, &path, &pages)?;
        let desk = Desk {
            connection: Some(connection),
            files: Files::note(&path),
            busy_timeout: tuning.busy_timeout,
            path: Arc::clone(&path),
            counters: Arc::clone(&counters),
            queue: Arc::clone(&queue),
            pages,
        };
        let thread = thread::Builder::new()
            .name("endmark-store".to_owned())
            .spawn(move || desk.run(&slate))
            .map_err(|error| StoreError::Failed { path: path.to_path_buf(), detail: error.to_string() })?;
        Ok(Self { path, queue, thread: Some(thread), counters })
    }

    /// Where rows are queued.
    pub(crate) fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.queue)
    }

    /// Runs `work` in the next transaction and answers once it is committed. It is done even when the caller
    /// stops waiting for the answer.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let write = Typed { path: Arc::clone(&self.path), work: Some(work), outcome: None, reply };
        self.queue.write(Box::new(write)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Takes no more writes, and returns when those that wait are committed and the file is tidy.
    pub(crate) async fn close(&self) -> Leftover {
        if let Some(through) = self.queue.close() {
            // An error here means that the thread is gone, which is what was asked for.
            let _ = through.await;
        }
        self.queue.leftover()
    }

    /// What was done so far.
    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { commits, writes, rows, failures, refused_rows, renewals } = &*self.counters;
        let Leftover { rows_left, rows_lost, .. } = self.queue.leftover();
        Counts {
            commits: read(commits),
            writes: read(writes),
            rows: read(rows),
            failures: read(failures),
            refused_rows: read(refused_rows),
            renewals: renewals.count(),
            renewed_lately: renewals.was_lately(),
            rows_left,
            rows_lost,
        }
    }

    /// Why the last transaction failed, if it did.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.queue.failure()
    }

    /// Writes and rows that wait.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.queue.waiting()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.close());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it happened; there is nothing left to save here.
            let _ = thread.join();
        }
    }
}

/// Where the thread works.
struct Desk {
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
    fn run(mut self, slate: &Slate) {
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
        for row in rows {
            if let Err(error) = usage::record(connection, &row.call) {
                self.row_failed(connection, row, &error)?;
            }
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

/// One request to write, whatever its answer's type.
trait Write: Send {
    /// Does it, within the open transaction.
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError>;
    /// Tells the caller, now that the transaction is committed or has failed.
    fn answer(self: Box<Self>, failure: Option<&StoreError>);
}

struct Typed<T, F> {
    path: Arc<Path>,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Write for Typed<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let outcome = work(connection).map_err(|fault| StoreError::of_fault(&self.path, &fault));
        let result = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        result
    }

    fn answer(self: Box<Self>, failure: Option<&StoreError>) {
        let answer = match (failure, self.outcome) {
            (Some(failure), _) => Err(failure.clone()),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(StoreError::Closed),
        };
        // The caller may have gone away; what is committed stays committed.
        let _ = self.reply.send(answer);
    }
}

#[cfg(test)]
mod tests;
