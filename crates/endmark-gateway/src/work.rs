//! Runs work on large inputs away from the threads that serve other connections.
//!
//! A future that runs [`Apart`] can state at any point that its input is [`large`]. From there on each of its polls
//! runs on a thread of a pool, until the guard is dropped. So every stage keeps its plain code, and none can delay
//! other clients. The process has one pool with a permit for each processor. When a client disconnects, its future is
//! dropped. Work that checks [`is_stopped`] then ends soon and returns its permit. Small inputs cost nothing.

mod apart;

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Wake, Waker};

use tokio::sync::Semaphore;

pub(crate) use apart::Apart;

/// From this size on, inputs are processed apart: smaller JSON is read and edited in less than five milliseconds.
pub(crate) const LARGE_BYTES: usize = 256 * 1024;

/// How much longer counting tokens, and shortening results, takes per byte than reading and editing.
pub(crate) const SLOW_FACTOR: usize = 8;

/// What the current thread does.
enum Current {
    /// Nothing that can run apart.
    Nothing,
    /// It polls a future on an async worker, which may have asked to be polled apart.
    Here { asked: bool },
    /// It belongs to the pool, and polls the future of this scope.
    Apart(Arc<Scope>),
}

thread_local! {
    static CURRENT: RefCell<Current> = const { RefCell::new(Current::Nothing) };
}

/// What a future and the pool share.
struct Scope {
    /// The number of the future's guards.
    large: AtomicUsize,
    /// Whether the future is no longer awaited.
    is_stopped: AtomicBool,
    /// Whether the future was woken since its last poll began.
    is_woken: AtomicBool,
    /// The task that waits for the future.
    task: Mutex<Waker>,
}

impl Scope {
    fn task(&self) -> MutexGuard<'_, Waker> {
        // It is consistent after every operation, so a panic elsewhere cannot have corrupted it.
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Scope {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let task = self.task().clone();
        task.wake();
    }
}

/// While it lives, its future is polled apart.
#[must_use]
pub(crate) struct Large(Option<Arc<Scope>>);

impl Drop for Large {
    fn drop(&mut self) {
        if let Some(scope) = &self.0 {
            scope.large.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Polls the current future in the pool from here on if `bytes` is large. Has no effect outside [`Apart`].
pub(crate) async fn large(bytes: usize) -> Large {
    if bytes < LARGE_BYTES {
        return Large(None);
    }
    let mut has_asked = false;
    poll_fn(|_| {
        CURRENT.with_borrow_mut(|current| match current {
            Current::Apart(scope) => {
                scope.large.fetch_add(1, Ordering::AcqRel);
                Poll::Ready(Large(Some(Arc::clone(scope))))
            }
            Current::Here { asked } if !has_asked => {
                (*asked, has_asked) = (true, true);
                Poll::Pending
            }
            Current::Here { .. } | Current::Nothing => Poll::Ready(Large(None)),
        })
    })
    .await
}

/// Whether the client of the work on this thread has disconnected.
pub(crate) fn is_stopped() -> bool {
    CURRENT.with_borrow(|current| match current {
        Current::Apart(scope) => scope.is_stopped.load(Ordering::Relaxed),
        Current::Here { .. } | Current::Nothing => false,
    })
}

/// Whether the current future is polled apart.
pub(crate) fn is_apart() -> bool {
    CURRENT.with_borrow(|current| matches!(current, Current::Apart(_)))
}

/// Counts events that futures must notice without being woken. A future in a poll is polled again.
static NUDGES: AtomicUsize = AtomicUsize::new(0);

/// Polls every future in the pool again.
pub(crate) fn nudge() {
    NUDGES.fetch_add(1, Ordering::AcqRel);
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
