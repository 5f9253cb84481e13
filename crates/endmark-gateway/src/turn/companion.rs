//! Runs the work of an upstream connection inside the client connection that waits for it.
//!
//! An upstream connection has a task of its own, because it outlives a request. But a client's connection waits for
//! that task at every part. The runtime would switch between the two tasks for each part, and often wake another
//! thread. Therefore, if a client's connection ([`Again`](super::again::Again)) wakes such a task while it is polled,
//! it polls the task's work itself. At all other times, the task polls the work.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::Executor;

/// The work of an upstream connection.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    /// Companions that were woken while a connection is polled on this thread. `None` at all other times.
    static WOKEN: RefCell<Option<Vec<Arc<Companion>>>> = const { RefCell::new(None) };
}

/// Spawns work that can also be polled inside connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BesideConnections;

impl Executor<Work> for BesideConnections {
    fn execute(&self, work: Work) {
        let companion = Arc::new(Companion {
            work: Mutex::new(Some(work)),
            is_awaited: AtomicBool::new(false),
            task: OnceLock::new(),
        });
        tokio::spawn(Home { waker: Waker::from(Arc::clone(&companion)), companion });
    }
}

/// Work that may be polled by its own task or inside a connection.
struct Companion {
    /// The work. `None` after it ended.
    work: Mutex<Option<Work>>,
    /// Whether a connection is about to poll the work.
    is_awaited: AtomicBool,
    /// Wakes the work's own task, once that has run.
    task: OnceLock<Waker>,
}

impl Companion {
    fn ring(self: &Arc<Self>) {
        let is_turn = WOKEN.try_with(|woken| {
            let mut woken = woken.borrow_mut();
            let Some(woken) = woken.as_mut() else { return false };
            if !self.is_awaited.swap(true, Ordering::AcqRel) {
                woken.push(Arc::clone(self));
            }
            true
        });
        // A thread that is ending does not poll connections.
        if !is_turn.unwrap_or(false) {
            self.send_home();
        }
    }

    /// Leaves the work to its own task.
    fn send_home(&self) {
        // A task that has not started will run anyway.
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }

    /// Polls the work inside a connection.
    fn ask(self: Arc<Self>) {
        // Clear the flag first, so that a wake during the poll counts again.
        self.is_awaited.swap(false, Ordering::AcqRel);
        let work = match self.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The work's own task is polling it.
            Err(TryLockError::WouldBlock) => return self.send_home(),
        };
        if poll(work, &Waker::from(Arc::clone(&self))).is_ready() {
            self.send_home();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Work>> {
        // If the work panics, it is dropped before the lock is released.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls the work. Returns ready after it has ended.
fn poll(mut work: MutexGuard<'_, Option<Work>>, waker: &Waker) -> Poll<()> {
    let Some(mut open) = work.take() else { return Poll::Ready(()) };
    let polled = open.as_mut().poll(&mut Context::from_waker(waker));
    if polled.is_pending() {
        *work = Some(open);
    }
    polled
}

impl Wake for Companion {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

/// The task that owns the work.
struct Home {
    companion: Arc<Companion>,
    waker: Waker,
}

impl Future for Home {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.companion.task.get_or_init(|| context.waker().clone());
        debug_assert!(task.will_wake(context.waker()), "a spawned task has one waker");
        poll(self.companion.lock(), &self.waker)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Drop the work. It contains its own waker, and would keep itself alive.
        let work = self.companion.lock().take();
        drop(work);
    }
}

/// A scope in which a connection is polled, together with the companions that it wakes on this thread.
pub(super) struct Turn {
    /// The companions of the enclosing scope, which usually does not exist.
    outer_woken: Option<Vec<Arc<Companion>>>,
}

impl Turn {
    /// Begins a scope.
    pub(super) fn begin() -> Self {
        Self { outer_woken: WOKEN.replace(Some(Vec::new())) }
    }
}

/// Polls the companions that were woken in the current scope of this thread. Returns whether there were any.
pub(crate) fn ask_woken() -> bool {
    let woken = WOKEN.with_borrow_mut(|woken| woken.as_mut().map(std::mem::take)).unwrap_or_default();
    let is_any = !woken.is_empty();
    woken.into_iter().for_each(Companion::ask);
    is_any
}

impl Drop for Turn {
    fn drop(&mut self) {
        for left in WOKEN.replace(self.outer_woken.take()).into_iter().flatten() {
            left.is_awaited.swap(false, Ordering::AcqRel);
            left.send_home();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::super::repoll::Again;
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_part_is_lost_between_task_and_companion() {
        let connections: Vec<_> = (0..16)
            .map(|_| {
                tokio::spawn(Again::new(async {
                    let (asks, mut requested) = mpsc::channel(1);
                    let (answers, mut answered) = mpsc::channel(1);
                    BesideConnections.execute(Box::pin(async move {
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
        BesideConnections.execute(Box::pin(async move { drop(held) }));
        while Arc::strong_count(&shared) > 1 {
            tokio::task::yield_now().await;
        }
        let held = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (event, tells) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            BesideConnections.execute(Box::pin(async move {
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
        let waker = tells.await.unwrap();
        runtime.shutdown_background();
        while Arc::strong_count(&shared) > 1 {
            tokio::task::yield_now().await;
        }
        waker.wake();
    }

    #[tokio::test]
    async fn work_woken_in_a_turn_runs_in_that_turn() {
        let requested = Arc::new(AtomicUsize::new(0));
        let (ring, bell) = (Arc::new(Mutex::new(None::<Waker>)), Arc::clone(&requested));
        let rope = Arc::clone(&ring);
        BesideConnections.execute(Box::pin(poll_fn(move |context| {
            bell.fetch_add(1, Ordering::SeqCst);
            *rope.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        })));
        while ring.lock().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        let turn = Turn::begin();
        let waker = ring.lock().unwrap().clone().unwrap();
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert!(ask_woken() && !ask_woken());
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
