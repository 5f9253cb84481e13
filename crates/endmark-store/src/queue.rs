//! The queue of the writer thread. Callers wait for writes to be committed. They do not wait for rows.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::engine::Session;
use crate::error::StoreError;
use crate::ledger::LedgerRow;
use crate::records::UncommittedRecords;

/// Maximum writes in one transaction. With so large a group, the cost of the transaction is negligible for
/// each write, and callers still wait only milliseconds.
const MAX_WRITES_PER_TRANSACTION: usize = 256;

/// Maximum rows in one transaction. A row costs less than a write.
const MAX_ROWS_PER_TRANSACTION: usize = 2_048;

/// Maximum rows of leased calls in a transaction with writes, which then needs only milliseconds. Holds do
/// not depend on these rows, because a lease already knows the costs of its calls.
const MAX_LEASED_ROWS_BESIDE_WRITES: usize = 128;

/// Maximum time that a row waits to be committed together with others. No caller waits for the row, because
/// it is already on the slate. A transaction costs as much as the rows of many requests, and readers do not
/// notice the delay.
const MAX_ROW_DELAY: Duration = Duration::from_millis(50);

/// How often the idle thread checks whether the store's files are still in place.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Pause before rows are retried after a failed transaction.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// A write request, independent of the type of its result.
pub(crate) trait Write: Send {
    /// Runs the write in the open transaction.
    fn run(&mut self, session: &Session) -> Result<(), StoreError>;
    /// Answers the caller after the transaction was committed or has failed.
    fn answer(self: Box<Self>, failure: Option<&StoreError>);
}

/// The queue of one writer.
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    wake: Condvar,
    /// Limits the number of queued writes. The slots of the slate limit the number of rows.
    room: Arc<Semaphore>,
    failing: AtomicBool,
}

#[derive(Default)]
struct QueueState {
    writes: VecDeque<QueuedWrite>,
    rows: VecDeque<LedgerRow>,
    /// Rows of calls that are held in leases.
    leased_rows: VecDeque<LedgerRow>,
    /// The time at which the rows must be written.
    due_at: Option<Instant>,
    /// The time at which the thread checks whether a failed store or slate works again, even if there is
    /// nothing to write.
    check_at: Option<Instant>,
    closing: bool,
    closers: Vec<oneshot::Sender<()>>,
    failure: Option<StoreError>,
    /// What the thread could not commit before it ended.
    leftover: UncommittedRecords,
}

struct QueuedWrite {
    write: Box<dyn Write>,
    _room: OwnedSemaphorePermit,
}

/// The work of one transaction.
pub(crate) struct Batch {
    pub(crate) writes: Vec<Box<dyn Write>>,
    pub(crate) rows: Vec<LedgerRow>,
    /// Whether the queue accepts no more work.
    pub(crate) is_closing: bool,
    /// Whether the queue is closed and this is its last work.
    pub(crate) is_last: bool,
}

impl Queue {
    pub(crate) fn new(writes: usize) -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            room: Arc::new(Semaphore::new(writes)),
            failing: AtomicBool::new(false),
        }
    }

    /// Queues a write, and waits while the queue is full.
    pub(crate) async fn write(&self, write: Box<dyn Write>) -> Result<(), StoreError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let mut state = self.lock();
        if state.closing {
            return Err(StoreError::Closed);
        }
        state.writes.push_back(QueuedWrite { write, _room: room });
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Queues a row. If the thread has ended, returns the row. It remains on the slate, where the next start
    /// finds it.
    pub(crate) fn push_row(&self, row: LedgerRow) -> Option<LedgerRow> {
        let mut state = self.lock();
        if state.closing && self.room.is_closed() {
            // The caller keeps the slot, so that the slate is not deleted.
            return Some(row);
        }
        state.queue_for(&row).push_back(row);
        if state.due_at.is_none() {
            state.due_at = Some(Instant::now() + MAX_ROW_DELAY);
            drop(state);
            self.wake.notify_one();
        }
        None
    }

    /// Schedules other changes to be written with the next rows.
    pub(crate) fn schedule_write(&self) {
        let mut state = self.lock();
        if state.due_at.is_none() {
            state.due_at = Some(Instant::now() + MAX_ROW_DELAY);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Closes the queue for writes. The receiver is notified when the thread ends. Returns `None` if it has
    /// already ended.
    pub(crate) fn close(&self) -> Option<oneshot::Receiver<()>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        if state.closing && self.room.is_closed() {
            return None;
        }
        state.closing = true;
        state.closers.push(sender);
        drop(state);
        self.wake.notify_one();
        Some(receiver)
    }

    /// Whether the thread has ended or is about to end.
    pub(crate) fn is_closed(&self) -> bool {
        self.room.is_closed()
    }

    /// Waits for work, or until the files must be checked.
    pub(crate) fn wait_for_batch(&self) -> Batch {
        let mut state = self.lock();
        let files = Instant::now() + FILE_CHECK_INTERVAL;
        loop {
            let now = Instant::now();
            let next = earlier(state.due_at, state.check_at).map_or(files, |next| next.min(files));
            let is_due = now >= next;
            if !state.writes.is_empty() || is_due || state.closing {
                return Self::take_batch(&mut state);
            }
            let wait = next.saturating_duration_since(now);
            state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn take_batch(state: &mut QueueState) -> Batch {
        let writes = state.writes.len().min(MAX_WRITES_PER_TRANSACTION);
        let writes: Vec<_> = state.writes.drain(..writes).map(|waiting| waiting.write).collect();
        state.check_at = state.check_at.filter(|look| Instant::now() < *look);
        // Also write rows that are not due yet, unless they wait after a failure.
        let rests = state.failure.is_some() && state.due_at.is_some_and(|due| Instant::now() < due);
        let most = if rests && !state.closing { 0 } else { MAX_ROWS_PER_TRANSACTION };
        let plain = state.rows.len().min(most);
        let most_leased = if writes.is_empty() { most } else { most.min(MAX_LEASED_ROWS_BESIDE_WRITES) };
        let leased = state.leased_rows.len().min(most_leased).min(most - plain);
        let rows: Vec<LedgerRow> =
            state.rows.drain(..plain).chain(state.leased_rows.drain(..leased)).collect();
        let is_empty = state.rows.is_empty() && state.leased_rows.is_empty();
        if !rests {
            state.due_at = if is_empty { None } else { Some(Instant::now()) };
        }
        let is_last = state.closing && state.writes.is_empty() && is_empty;
        Batch { writes, rows, is_closing: state.closing, is_last }
    }

    /// Puts rows that could not be committed back into the queue. They are retried after a pause.
    pub(crate) fn put_back(&self, rows: Vec<LedgerRow>) {
        let mut state = self.lock();
        for row in rows.into_iter().rev() {
            state.queue_for(&row).push_front(row);
        }
        state.due_at = Some(Instant::now() + PAUSE_AFTER_FAILURE);
    }

    /// Wakes the thread after a pause, even if there is nothing to write.
    pub(crate) fn retry_later(&self) {
        let mut state = self.lock();
        if state.check_at.is_none() {
            state.check_at = Some(Instant::now() + PAUSE_AFTER_FAILURE);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Records the result of the last transaction. Returns whether it differs from the previous one.
    pub(crate) fn record_result(&self, failure: Option<StoreError>) -> bool {
        self.failing.store(failure.is_some(), Ordering::Release);
        let mut state = self.lock();
        let is_news = state.failure != failure;
        state.failure = failure;
        is_news
    }

    /// Whether the last transaction failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Acquire)
    }

    /// Returns why the last transaction failed, if it did.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.lock().failure.clone()
    }

    /// Returns the numbers of waiting writes and rows.
    pub(crate) fn waiting_counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.writes.len(), state.rows.len() + state.leased_rows.len())
    }

    /// Closes the queue for rows too, and returns the remaining rows.
    pub(crate) fn take_remaining_rows(&self) -> VecDeque<LedgerRow> {
        let mut state = self.lock();
        state.closing = true;
        state.writes.clear();
        self.room.close();
        let mut rows = std::mem::take(&mut state.rows);
        rows.append(&mut state.leased_rows);
        rows
    }

    /// Records what could not be committed. Returns the callers that wait for the end of the thread.
    pub(crate) fn finish_with(&self, leftover: UncommittedRecords) -> Vec<oneshot::Sender<()>> {
        let mut state = self.lock();
        state.leftover = leftover;
        std::mem::take(&mut state.closers)
    }

    /// Returns what the thread could not commit. All counts are zero until it ends.
    pub(crate) fn leftover(&self) -> UncommittedRecords {
        self.lock().leftover
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // The state is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Returns the queue for rows of this kind: leased or not.
    fn queue_for(&mut self, row: &LedgerRow) -> &mut VecDeque<LedgerRow> {
        if row.leased.is_empty() { &mut self.rows } else { &mut self.leased_rows }
    }
}

/// Returns the earlier of two optional times.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Queue").field("waiting", &self.waiting_counts()).finish_non_exhaustive()
    }
}
