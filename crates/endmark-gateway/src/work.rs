//! Runs work on large inputs away from the threads that serve other connections.
//!
//! A future in [`PooledFuture`] can declare at any point that its input is large: see
//! [`enter_pool_if_large`]. From then on it is polled on a thread of a pool, until the guard is dropped. The
//! stages therefore stay ordinary code, and none of them can delay other clients. The process has one pool
//! with a permit for each processor. When a client disconnects, its future is dropped. Work that checks
//! [`is_stopped`] then ends soon and releases its permit. Small inputs cause no overhead.

mod pooled;

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Wake, Waker};

use tokio::sync::Semaphore;

pub(crate) use pooled::PooledFuture;

/// Minimum size of an input that is processed in the pool. Smaller JSON is read and edited in less than five
/// milliseconds.
pub(crate) const LARGE_BYTES: usize = 256 * 1024;

/// Factor by which counting tokens and shortening results is slower per byte than reading and editing.
pub(crate) const COUNTING_COST_FACTOR: usize = 8;

/// The activity of the current thread.
enum ThreadActivity {
    /// The thread has no activity that could move to the pool.
    Nothing,
    /// The thread polls a future on an async worker. The future may have asked to move to the pool.
    OnThread { is_requested: bool },
    /// The thread belongs to the pool, and polls the future of this scope.
    InPool(Arc<PoolScope>),
}

thread_local! {
    static CURRENT: RefCell<ThreadActivity> = const { RefCell::new(ThreadActivity::Nothing) };
}

/// State that a future shares with the pool.
struct PoolScope {
    /// Number of guards that the future holds.
    guard_count: AtomicUsize,
    /// Whether nothing is waiting for the future.
    is_stopped: AtomicBool,
    /// Whether the future was woken since its last poll began.
    was_woken: AtomicBool,
    /// The task that waits for the future.
    task: Mutex<Waker>,
}

impl PoolScope {
    fn task(&self) -> MutexGuard<'_, Waker> {
        // The waker is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for PoolScope {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.was_woken.store(true, Ordering::Release);
        let task = self.task().clone();
        task.wake();
    }
}

/// A guard. While it exists, its future is polled in the pool.
#[must_use]
pub(crate) struct LargeInput(Option<Arc<PoolScope>>);

impl Drop for LargeInput {
    fn drop(&mut self) {
        if let Some(scope) = &self.0 {
            scope.guard_count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Polls the current future in the pool from now on if `bytes` is large. Has no effect outside [`PooledFuture`].
pub(crate) async fn enter_pool_if_large(bytes: usize) -> LargeInput {
    if bytes < LARGE_BYTES {
        return LargeInput(None);
    }
    let mut has_asked = false;
    poll_fn(|_| {
        CURRENT.with_borrow_mut(|current| match current {
            ThreadActivity::InPool(scope) => {
                scope.guard_count.fetch_add(1, Ordering::AcqRel);
                Poll::Ready(LargeInput(Some(Arc::clone(scope))))
            }
            ThreadActivity::OnThread { is_requested } if !has_asked => {
                (*is_requested, has_asked) = (true, true);
                Poll::Pending
            }
            ThreadActivity::OnThread { .. } | ThreadActivity::Nothing => Poll::Ready(LargeInput(None)),
        })
    })
    .await
}

/// Whether the client for which this thread works has disconnected.
pub(crate) fn is_stopped() -> bool {
    CURRENT.with_borrow(|current| match current {
        ThreadActivity::InPool(scope) => scope.is_stopped.load(Ordering::Relaxed),
        ThreadActivity::OnThread { .. } | ThreadActivity::Nothing => false,
    })
}

/// Whether the current future is polled in the pool.
pub(crate) fn is_in_pool() -> bool {
    CURRENT.with_borrow(|current| matches!(current, ThreadActivity::InPool(_)))
}

/// Counts events that futures must notice without being woken. If it changes during a poll, the future is polled again.
static REPOLL_COUNTER: AtomicUsize = AtomicUsize::new(0);

/// Causes all futures in the pool to be polled again.
pub(crate) fn wake_pool() {
    REPOLL_COUNTER.fetch_add(1, Ordering::AcqRel);
}

/// Returns the permits of the pool.
fn pool() -> &'static Arc<Semaphore> {
    static POOL: OnceLock<Arc<Semaphore>> = OnceLock::new();
    POOL.get_or_init(|| {
        Arc::new(Semaphore::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)))
    })
}

#[cfg(test)]
mod tests;
