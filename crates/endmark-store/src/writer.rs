//! The writer: one thread with a bounded queue, which commits writes in groups and answers their callers.

mod renewals;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;

pub(crate) use renewals::RenewalCounter;
use worker::WriterThread;

use crate::engine::{Session, StatementError};
use crate::error::StoreError;
use crate::leases::Leases;
use crate::ledger::slate::Slate;
use crate::location::StoreLocation;
use crate::queue::{Queue, Write};
use crate::records::UncommittedRecords;

/// Maximum number of waiting writes. If the queue is full, callers wait. A row needs a few hundred bytes.
pub(crate) const MAX_QUEUED_WRITES: usize = 1024;

/// Settings of the writer that only tests change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterSettings {
    pub(crate) busy_timeout: Duration,
    pub(crate) queue: usize,
}

/// The writer of a store. Dropping it writes the queued data and then ends the thread.
pub(crate) struct Writer {
    path: Arc<Path>,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// Counts of the thread's work since its start.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) refused_rows: AtomicU64,
    pub(crate) renewals: RenewalCounter,
}

/// A snapshot of the writer's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CounterSnapshot {
    pub(crate) commits: u64,
    pub(crate) writes: u64,
    pub(crate) rows: u64,
    pub(crate) failures: u64,
    pub(crate) refused_rows: u64,
    /// Number of times the files were recreated.
    pub(crate) renewals: u64,
    pub(crate) renewed_lately: bool,
    /// Rows that remained on the slate at the end.
    pub(crate) rows_left: u64,
    /// Rows that were neither committed nor on the slate at the end.
    pub(crate) rows_lost: u64,
}

impl Writer {
    /// Starts the thread on an open session. The slate is closed when the thread ends.
    pub(crate) fn start(
        session: Session,
        slate: Arc<Slate>,
        leases: Arc<Leases>,
        location: &StoreLocation,
        tuning: WriterSettings,
    ) -> Result<Self, StoreError> {
        let path: Arc<Path> = Arc::from(location.path());
        let counters = Arc::new(Counters::default());
        let queue = Arc::new(Queue::new(tuning.queue));
        let (busy_timeout, is_journal) = (tuning.busy_timeout, location.postgres().is_some());
        let (own_counters, own_queue) = (Arc::clone(&counters), Arc::clone(&queue));
        let desk =
            WriterThread::new(session, busy_timeout, &path, own_counters, own_queue, leases, is_journal);
        let thread = thread::Builder::new()
            .name("endmark-store".to_owned())
            .spawn(move || desk.run(&slate))
            .map_err(|error| StoreError::Failed { path: path.to_path_buf(), detail: error.to_string() })?;
        Ok(Self { path, queue, thread: Some(thread), counters })
    }

    /// Returns the queue.
    pub(crate) fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.queue)
    }

    /// Runs `work` in the next transaction, and returns after the commit. The work is done even if the caller
    /// stops waiting.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Session) -> Result<T, StatementError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let write = TypedWrite { path: Arc::clone(&self.path), work: Some(work), outcome: None, reply };
        self.queue.write(Box::new(write)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Closes the queue for writes. Returns after the waiting writes were committed and the write-ahead log
    /// was moved into the database.
    pub(crate) async fn close(&self) -> UncommittedRecords {
        if let Some(through) = self.queue.close() {
            // An error means that the thread has ended, which is what this function waits for.
            let _ = through.await;
        }
        self.queue.leftover()
    }

    /// Returns the current counters.
    pub(crate) fn counts(&self) -> CounterSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { commits, writes, rows, failures, refused_rows, renewals } = &*self.counters;
        let UncommittedRecords { rows_left, rows_lost, .. } = self.queue.leftover();
        CounterSnapshot {
            commits: read(commits),
            writes: read(writes),
            rows: read(rows),
            failures: read(failures),
            refused_rows: read(refused_rows),
            renewals: renewals.count(),
            renewed_lately: renewals.is_recent(),
            rows_left,
            rows_lost,
        }
    }

    /// Returns why the last transaction failed, if it did.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.queue.failure()
    }

    /// Returns the numbers of waiting writes and rows.
    pub(crate) fn waiting_counts(&self) -> (usize, usize) {
        self.queue.waiting_counts()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.close());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it happened, and there is nothing left to save.
            let _ = thread.join();
        }
    }
}

struct TypedWrite<T, F> {
    path: Arc<Path>,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Write for TypedWrite<T, F>
where
    T: Send,
    F: FnOnce(&Session) -> Result<T, StatementError> + Send,
{
    fn run(&mut self, session: &Session) -> Result<(), StoreError> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let outcome = work(session).map_err(|fault| StoreError::from_fault(&self.path, &fault));
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
        // The caller may have stopped waiting; the commit is valid anyway.
        let _ = self.reply.send(answer);
    }
}
