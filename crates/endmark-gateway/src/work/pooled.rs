//! Polls a future on an async worker. If the input is large, polls it on a thread of the pool instead.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{CURRENT, PoolScope, REPOLL_COUNTER, ThreadActivity, pool};

/// A future that moves to the pool after it declares that its input is large: see
/// [`enter_pool_if_large`](super::enter_pool_if_large).
pub(crate) struct PooledFuture<F: Future> {
    state: FutureState<F>,
    /// The state shared with the pool. `None` until the future moves there.
    scope: Option<Arc<PoolScope>>,
    /// Whether this task was polled while a pool thread polled the future.
    must_repoll: bool,
    /// The value of the repoll counter at the time of the last poll.
    seen_repolls: usize,
}

type PendingPermit = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// A future after a poll, with the result.
type Polled<F> = (Pin<Box<F>>, Poll<<F as Future>::Output>);

enum FutureState<F: Future> {
    OnThisThread(Pin<Box<F>>),
    /// The future waits for a permit.
    Waiting(Pin<Box<F>>, PendingPermit),
    /// A thread of the pool polls the future.
    InPool(JoinHandle<Polled<F>>),
    Finished,
}

impl<F: Future> PooledFuture<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            state: FutureState::OnThisThread(Box::pin(future)),
            scope: None,
            must_repoll: false,
            seen_repolls: 0,
        }
    }

    fn is_large(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.guard_count.load(Ordering::Acquire) > 0)
    }

    /// Returns the state shared with the pool. The pool wakes this task from now on.
    fn open_scope(&mut self, task: &Waker) -> Arc<PoolScope> {
        let scope = self.scope.get_or_insert_with(|| {
            Arc::new(PoolScope {
                guard_count: AtomicUsize::new(0),
                is_stopped: AtomicBool::new(false),
                was_woken: AtomicBool::new(false),
                task: Mutex::new(task.clone()),
            })
        });
        scope.task().clone_from(task);
        Arc::clone(scope)
    }

    /// Whether an event may have occurred that the last poll in the pool did not notice.
    fn must_poll_again(&self) -> bool {
        self.must_repoll
            || self.seen_repolls != REPOLL_COUNTER.load(Ordering::Acquire)
            || self.scope.as_ref().is_some_and(|scope| scope.was_woken.load(Ordering::Acquire))
    }
}

impl<F> Future for PooledFuture<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let mut is_new = false;
        loop {
            this.state = match std::mem::replace(&mut this.state, FutureState::Finished) {
                FutureState::OnThisThread(mut future) => {
                    if !this.is_large() {
                        let within = CurrentScope::new(ThreadActivity::OnThread { is_requested: false });
                        let polled = future.as_mut().poll(context);
                        let is_asked =
                            matches!(within.end(), ThreadActivity::OnThread { is_requested: true });
                        if polled.is_ready() {
                            return polled;
                        }
                        if !is_asked {
                            this.state = FutureState::OnThisThread(future);
                            return Poll::Pending;
                        }
                    }
                    FutureState::Waiting(
                        future,
                        Box::pin(async { Arc::clone(pool()).acquire_owned().await.ok() }),
                    )
                }
                FutureState::Waiting(future, mut permit) => {
                    let Poll::Ready(permit) = permit.as_mut().poll(context) else {
                        this.state = FutureState::Waiting(future, permit);
                        return Poll::Pending;
                    };
                    let scope = this.open_scope(context.waker());
                    scope.was_woken.store(false, Ordering::Release);
                    (this.must_repoll, this.seen_repolls) = (false, REPOLL_COUNTER.load(Ordering::Acquire));
                    is_new = true;
                    FutureState::InPool(spawn_blocking(move || {
                        let _permit = permit;
                        poll_in_pool(scope, future)
                    }))
                }
                FutureState::InPool(mut job) => match Pin::new(&mut job).poll(context) {
                    Poll::Pending => {
                        this.must_repoll |= !is_new;
                        this.state = FutureState::InPool(job);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok((_, Poll::Ready(done)))) => return Poll::Ready(done),
                    Poll::Ready(Ok((future, Poll::Pending))) => {
                        this.state = FutureState::OnThisThread(future);
                        if !this.must_poll_again() {
                            return Poll::Pending;
                        }
                        continue;
                    }
                    Poll::Ready(Err(error)) => match error.try_into_panic() {
                        // Propagate the panic as if the future had been polled here.
                        Ok(panic) => resume_unwind(panic),
                        // The runtime is shutting down, so there is no caller left.
                        Err(_) => return Poll::Pending,
                    },
                },
                FutureState::Finished => return Poll::Pending,
            };
        }
    }
}

impl<F: Future> Drop for PooledFuture<F> {
    fn drop(&mut self) {
        if let Some(scope) = &self.scope {
            scope.is_stopped.store(true, Ordering::Release);
        }
    }
}

/// Polls a future on this pool thread, unless its client has disconnected.
fn poll_in_pool<F: Future>(scope: Arc<PoolScope>, mut future: Pin<Box<F>>) -> Polled<F> {
    if scope.is_stopped.load(Ordering::Acquire) {
        return (future, Poll::Pending);
    }
    let waker = Waker::from(Arc::clone(&scope));
    let _within = CurrentScope::new(ThreadActivity::InPool(scope));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    (future, polled)
}

/// Sets the activity of the current thread until this is dropped.
struct CurrentScope {
    before: Option<ThreadActivity>,
}

impl CurrentScope {
    fn new(current: ThreadActivity) -> Self {
        Self { before: Some(CURRENT.replace(current)) }
    }

    /// Restores the previous value. Returns the activity of the thread.
    fn end(mut self) -> ThreadActivity {
        self.before.take().map_or(ThreadActivity::Nothing, |before| CURRENT.replace(before))
    }
}

impl Drop for CurrentScope {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            CURRENT.set(before);
        }
    }
}
