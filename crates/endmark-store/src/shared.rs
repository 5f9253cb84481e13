//! Shares data between instances in PostgreSQL: budgets, keys, and the rows of all calls.
//!
//! The SQLite file of an instance stays its durable store, and is the journal of unreported data. One thread reports
//! everything to the database, one transaction at a time ([`database::exchange`]): rows, costs, and requests for
//! shares of budgets. The database grants a share before the journal records it
//! ([`journal`](crate::engine::journal)), so a hold needs only the journal.

pub(crate) mod address;
mod calls;
mod clock;
pub(crate) mod closings;
pub(crate) mod connect;
pub(crate) mod copying;
pub(crate) mod database;
mod deletion;
pub(crate) mod inspect;
pub(crate) mod keys;
mod lookup;
pub(crate) mod outputs;
pub(crate) mod publisher;
pub(crate) mod reader;
mod recoveries;
mod request_list;
mod requests;
pub(crate) mod runs;
mod sql;
pub(crate) mod usage;
pub(crate) mod work;

use std::fmt;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use endmark_context::budget::{Tenure, pace};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use address::PostgresAddress;
use clock::Clock;
use requests::ShareRequests;

use crate::budgets::{Claim, RefusingBudget};
use crate::engine::journal::Instance;
use crate::error::StoreError;
use crate::leases::{BudgetKey, Leases};
use crate::writer::Writer;

/// Pause before a call requests shares again, so that other instances can return theirs.
const RETURN_PAUSE: Duration = Duration::from_millis(pace::RETURN_RETRY_PAUSE_MS);

/// Connects one open store to its shared database.
pub(crate) struct Shared {
    state: Arc<SharedState>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The locked journal file. Only one process may use a journal.
    lock: Mutex<Option<File>>,
    /// Allows only one lookup at a time.
    lookups: tokio::sync::Mutex<()>,
}

/// State that the thread and the callers share.
pub(crate) struct SharedState {
    address: PostgresAddress,
    path: PathBuf,
    clock: Clock,
    wake: Notify,
    requests: Mutex<ShareRequests>,
    tenure: Mutex<Tenure>,
    /// The database's last error; `None` if the last report succeeded.
    failure: Mutex<Option<StoreError>>,
    /// The version of the keys in the journal. `keys_checked_ms` is the time at which the database last
    /// confirmed it.
    keys_version: AtomicI64,
    keys_checked_ms: AtomicU64,
    /// Rows of the journal that the database did not have after the last report or attempt.
    unreported_rows: AtomicU64,
    /// Whether outputs or summaries were kept since the last upload.
    has_uploads: AtomicBool,
    /// Days for which the database keeps rows and ended budgets. It is 0 while nothing needs to be deleted.
    keep_days: AtomicU32,
    is_closing: AtomicBool,
    writer: Arc<Writer>,
    leases: Arc<Leases>,
}

impl Shared {
    /// Starts the thread. Fails if the database rejects this instance. If the database does not respond, the
    /// instance starts without it.
    pub(crate) fn start(
        address: &PostgresAddress,
        path: &Path,
        instance: Instance,
        writer: Arc<Writer>,
        leases: Arc<Leases>,
    ) -> Result<Self, StoreError> {
        let lock = lock_journal(path)?;
        let state = Arc::new(SharedState {
            address: address.clone(),
            path: path.to_owned(),
            clock: Clock::new(),
            wake: Notify::new(),
            requests: Mutex::default(),
            tenure: Mutex::default(),
            failure: Mutex::default(),
            keys_version: AtomicI64::new(instance.keys_version),
            keys_checked_ms: AtomicU64::new(0),
            unreported_rows: AtomicU64::new(0),
            has_uploads: AtomicBool::new(false),
            keep_days: AtomicU32::new(0),
            is_closing: AtomicBool::new(false),
            writer,
            leases,
        });
        let (started, first) = std::sync::mpsc::channel();
        let of_thread = Arc::clone(&state);
        let failed = |error: std::io::Error| address.store_error(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let thread = thread::Builder::new()
            .name("endmark-shared".to_owned())
            .spawn(move || runtime.block_on(work::run(of_thread, instance, started)))
            .map_err(failed)?;
        let shared = Self {
            state,
            thread: Mutex::new(Some(thread)),
            lock: Mutex::new(Some(lock)),
            lookups: tokio::sync::Mutex::default(),
        };
        match first.recv() {
            Ok(Some(error)) => Err(error),
            Ok(None) => Ok(shared),
            Err(_) => Err(StoreError::Closed),
        }
    }

    /// Fails if the database has not confirmed this instance recently. In that case the instance may not hold
    /// calls.
    pub(crate) fn check_tenure(&self) -> Result<(), StoreError> {
        let state = &self.state;
        let is_valid = lock_ignoring_poison(&state.tenure).is_valid(state.clock.now_ms());
        if is_valid { Ok(()) } else { Err(state.unconfirmed_error()) }
    }

    /// Requests shares of a call's budgets from the database, and waits for the answer.
    pub(crate) async fn request_shares(&self, claims: &[Claim]) -> Result<(), StoreError> {
        // While the database fails, callers do not wait for the next attempt.
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let (sender, answer) = oneshot::channel();
        let keys = claims.iter().map(|claim| (BudgetKey::new(claim), claim.limit, claim.amount));
        lock_ignoring_poison(&self.state.requests).add(self.state.clock.now_ms(), keys, sender);
        self.state.wake.notify_one();
        answer.await.map_err(|_| self.state.unconfirmed_error())?
    }

    /// Whether this instance lacks a share of one of these budgets, because none of its calls used that
    /// budget recently.
    pub(crate) fn lacks_share(&self, claims: &[Claim]) -> bool {
        let requests = lock_ignoring_poison(&self.state.requests);
        claims.iter().any(|claim| !requests.is_recently_used(&BudgetKey::new(claim)))
    }

    /// Requests shares again for a call that does not fit, if other instances may soon return unused shares.
    /// Returns whether to try the call again.
    pub(crate) async fn wait_for_share(
        &self,
        claims: &[Claim],
        used_up: &RefusingBudget,
        since: Instant,
    ) -> Result<bool, StoreError> {
        let is_tight = lock_ignoring_poison(&self.state.requests).is_tight(&BudgetKey::new(&used_up.claim));
        let patience = Duration::from_millis(pace::max_share_wait_ms(is_tight));
        if !used_up.account.may_admit(used_up.claim.amount) || since.elapsed() >= patience {
            return Ok(false);
        }
        let requested = tokio::time::timeout_at(since + patience, async {
            if is_tight {
                tokio::time::sleep(RETURN_PAUSE).await;
            }
            self.request_shares(claims).await
        });
        // If the database is slow, decide with the shares that are already known.
        requested.await.unwrap_or(Ok(())).map(|()| true)
    }

    /// Records that budgets are in use, so that their shares are not returned.
    pub(crate) fn note_use(&self, claims: &[Claim]) {
        lock_ignoring_poison(&self.state.requests).note_use(self.state.clock.now_ms(), claims);
    }

    /// Returns the database's error while it fails.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        lock_ignoring_poison(&self.state.failure).clone()
    }

    /// Returns the number of rows of calls that wait for the database.
    pub(crate) fn unreported_rows(&self) -> u64 {
        self.state.unreported_rows.load(Ordering::Relaxed)
    }

    /// Returns the version of the keys. When it changes, cached lookups of keys are outdated.
    pub(crate) fn keys_version(&self) -> i64 {
        self.state.keys_version.load(Ordering::Acquire)
    }

    /// Fails if the database has not confirmed the keys for longer than `stale_after`, because a key may have
    /// been revoked since.
    pub(crate) fn check_keys_age(&self, stale_after: Duration) -> Result<(), StoreError> {
        let checked_ms = self.state.keys_checked_ms.load(Ordering::Acquire);
        let age = Duration::from_millis(self.state.clock.now_ms().saturating_sub(checked_ms));
        if age > stale_after || self.keys_version() < 0 {
            Err(self.state.unconfirmed_error())
        } else {
            Ok(())
        }
    }

    /// Schedules the deletion of rows and ended budgets that are more than `days` days old from the database.
    pub(crate) fn schedule_deletion(&self, days: u32) {
        self.state.keep_days.store(days, Ordering::Release);
    }

    /// Reports the remaining data to the database, and returns unspent shares. The thread ends soon
    /// afterwards.
    pub(crate) async fn close(&self) {
        self.stop();
        let thread = lock_ignoring_poison(&self.thread).take();
        if let Some(thread) = thread {
            // A panic of the thread was already reported.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    /// Releases the journal for another process.
    pub(crate) fn release_journal(&self) {
        lock_ignoring_poison(&self.lock).take();
    }

    fn stop(&self) {
        self.state.is_closing.store(true, Ordering::Release);
        self.state.wake.notify_one();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = lock_ignoring_poison(&self.thread).take() {
            // A panic of the thread was already reported.
            let _ = thread.join();
        }
    }
}

impl SharedState {
    fn unconfirmed_error(&self) -> StoreError {
        let failure = lock_ignoring_poison(&self.failure).clone();
        failure.unwrap_or_else(|| self.address.store_error("it has not confirmed this instance yet"))
    }
}

/// Locks the journal for this process.
fn lock_journal(path: &Path) -> Result<File, StoreError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-instance");
    let beside = PathBuf::from(beside);
    let file = File::options().create(true).write(true).truncate(false).open(&beside);
    let file = file.map_err(|error| StoreError::from_io(&beside, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::JournalInUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::from_io(&beside, &error)),
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The value is consistent after each operation, so a panic elsewhere cannot have corrupted it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("address", &self.state.address).finish_non_exhaustive()
    }
}
