//! Runs the work of an upstream connection inside the client connection that waits for it.
//!
//! An upstream connection has a task of its own, because it outlives a request. But a client's connection
//! waits for that task at every piece of a body. The runtime would switch between the two tasks for each
//! piece, and often wake another thread. Therefore, if a client's connection
//! ([`RepolledFuture`](super::repoll::RepolledFuture)) wakes such a task while it is polled, it polls the
//! task's work itself. At all other times, the task polls the work.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::Executor;

type ConnectionWork = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    /// Work that was woken while a connection is polled on this thread. `None` if no connection is being
    /// polled.
    static WOKEN_WORK: RefCell<Option<Vec<Arc<SharedWork>>>> = const { RefCell::new(None) };
}

/// Spawns work that can also be polled inside connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SharedWorkExecutor;

impl Executor<ConnectionWork> for SharedWorkExecutor {
    fn execute(&self, work: ConnectionWork) {
        let companion = Arc::new(SharedWork {
            work: Mutex::new(Some(work)),
            is_queued: AtomicBool::new(false),
            task: OnceLock::new(),
        });
        tokio::spawn(WorkTask { waker: Waker::from(Arc::clone(&companion)), companion });
    }
}

/// Work that may be polled by its own task or inside a connection.
struct SharedWork {
    /// The work. `None` after it ended.
    work: Mutex<Option<ConnectionWork>>,
    /// Whether a connection is about to poll the work.
    is_queued: AtomicBool,
    /// Wakes the task that owns the work. Empty until that task has run.
    task: OnceLock<Waker>,
}

impl SharedWork {
    fn wake_work(self: &Arc<Self>) {
        let is_turn = WOKEN_WORK.try_with(|woken| {
            let mut woken = woken.borrow_mut();
            let Some(woken) = woken.as_mut() else { return false };
            if !self.is_queued.swap(true, Ordering::AcqRel) {
                woken.push(Arc::clone(self));
            }
            true
        });
        // A thread that is ending does not poll connections.
        if !is_turn.unwrap_or(false) {
            self.wake_own_task();
        }
    }

    /// Leaves the work to its own task.
    fn wake_own_task(&self) {
        // A task that has not started will run anyway.
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }

    /// Polls the work inside a connection.
    fn poll_here(self: Arc<Self>) {
        // Clear the flag first, so that a wake during the poll counts again.
        self.is_queued.swap(false, Ordering::AcqRel);
        let work = match self.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The work's own task is polling it.
            Err(TryLockError::WouldBlock) => return self.wake_own_task(),
        };
        if poll(work, &Waker::from(Arc::clone(&self))).is_ready() {
            self.wake_own_task();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ConnectionWork>> {
        // If the work panics, it is dropped before the lock is released.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls the work. Returns ready after it has ended.
fn poll(mut work: MutexGuard<'_, Option<ConnectionWork>>, waker: &Waker) -> Poll<()> {
    let Some(mut open) = work.take() else { return Poll::Ready(()) };
    let polled = open.as_mut().poll(&mut Context::from_waker(waker));
    if polled.is_pending() {
        *work = Some(open);
    }
    polled
}

impl Wake for SharedWork {
    fn wake(self: Arc<Self>) {
        self.wake_work();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_work();
    }
}

/// The task that owns the work.
struct WorkTask {
    companion: Arc<SharedWork>,
    waker: Waker,
}

impl Future for WorkTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.companion.task.get_or_init(|| context.waker().clone());
        debug_assert!(task.will_wake(context.waker()), "a spawned task has one waker");
        poll(self.companion.lock(), &self.waker)
    }
}

impl Drop for WorkTask {
    fn drop(&mut self) {
        // Drop the work. It contains its own waker, and would keep itself alive.
        let work = self.companion.lock().take();
        drop(work);
    }
}

/// A scope in which a connection is polled, together with the work that it wakes on this thread.
pub(super) struct PollScope {
    /// The woken work of the enclosing scope, which usually does not exist.
    outer_woken: Option<Vec<Arc<SharedWork>>>,
}

impl PollScope {
    /// Begins a scope.
    pub(super) fn begin() -> Self {
        Self { outer_woken: WOKEN_WORK.replace(Some(Vec::new())) }
    }
}

/// Polls the work that was woken in the current scope of this thread. Returns whether there was any.
pub(crate) fn poll_woken_work() -> bool {
    let woken = WOKEN_WORK.with_borrow_mut(|woken| woken.as_mut().map(std::mem::take)).unwrap_or_default();
    let is_any = !woken.is_empty();
    woken.into_iter().for_each(SharedWork::poll_here);
    is_any
}

impl Drop for PollScope {
    fn drop(&mut self) {
        for left in WOKEN_WORK.replace(self.outer_woken.take()).into_iter().flatten() {
            left.is_queued.swap(false, Ordering::AcqRel);
            left.wake_own_task();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::super::repoll::RepolledFuture;
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_event_is_lost_between_a_task_and_its_connection() {
        let connections: Vec<_> = (0..16)
            .map(|_| {
                tokio::spawn(RepolledFuture::new(async {
                    let (asks, mut requested) = mpsc::channel(1);
                    let (answers, mut answered) = mpsc::channel(1);
                    SharedWorkExecutor.execute(Box::pin(async move {
                        while let Some(number) = requested.recv().await {
                            if number % 7 == 0 {
                                tokio::task::yield_now().await;
                            }
                            answers.send(number + 1).await.unwrap();
                        }
                    }));
                    for number in 0..500 {
                        asks.send(number).await.unwrap();
                        assert_eq!(answered.recv().await, Some(number + 1));
                    }
                }))
            })
            .collect();
        for connection in connections {
            tokio::time::timeout(Duration::from_mins(1), connection).await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn finished_or_orphaned_work_is_dropped() {
        let shared = Arc::new(());
        let held = Arc::clone(&shared);
        SharedWorkExecutor.execute(Box::pin(async move { drop(held) }));
        while Arc::strong_count(&shared) > 1 {
            tokio::task::yield_now().await;
        }
        let held = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (event, event_receiver) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            SharedWorkExecutor.execute(Box::pin(async move {
                let mut event = Some(event);
                poll_fn(|context| {
                    // Keep the waker, as a task does that waits for a socket.
                    if let Some(event) = event.take() {
                        let _ = event.send(context.waker().clone());
                    }
                    Poll::<()>::Pending
                })
                .await;
                drop(held);
            }));
        });
        let waker = event_receiver.await.unwrap();
        runtime.shutdown_background();
        while Arc::strong_count(&shared) > 1 {
            tokio::task::yield_now().await;
        }
        waker.wake();
    }

    #[tokio::test]
    async fn work_woken_in_a_scope_is_polled_in_that_scope() {
        let requested = Arc::new(AtomicUsize::new(0));
        let (waker_slot, poll_counter) = (Arc::new(Mutex::new(None::<Waker>)), Arc::clone(&requested));
        let task_waker_slot = Arc::clone(&waker_slot);
        SharedWorkExecutor.execute(Box::pin(poll_fn(move |context| {
            poll_counter.fetch_add(1, Ordering::SeqCst);
            *task_waker_slot.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        })));
        while waker_slot.lock().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        let turn = PollScope::begin();
        let waker = waker_slot.lock().unwrap().clone().unwrap();
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert!(poll_woken_work() && !poll_woken_work());
        assert_eq!(requested.load(Ordering::SeqCst), 2);
        waker.wake_by_ref();
        drop(turn);
        // The work's own task makes the remaining polls.
        assert_eq!(requested.load(Ordering::SeqCst), 2);
        while requested.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
    }
}
