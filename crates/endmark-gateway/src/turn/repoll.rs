//! Polls a connection again immediately if it wakes itself while it runs.
//!
//! The body of a request goes through a channel to its reader, and the end of a reply admits the next request. Both
//! happen inside the connection's task, which wakes itself in this way. The runtime would queue the task and wake
//! another thread, several times per request. That would cost more than all other work for a small request.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::shared_work::{PollScope, poll_woken_work};

/// The future waits. Waking it wakes the task.
const WAITING: u8 = 0;
/// The future is running.
const RUNNING: u8 = 1;
/// The future is running, and was woken since it was polled.
const WOKEN: u8 = 2;

/// How many times a connection that wakes itself is polled before other tasks run.
const MAX_POLLS_IN_TURN: usize = 32;

/// A future that is polled again immediately if it was woken while it ran.
pub(crate) struct RepolledFuture<F> {
    future: Pin<Box<F>>,
    state_waker: Option<(Arc<StateWaker>, Waker)>,
}

/// The waker of the future.
struct StateWaker {
    state: AtomicU8,
    task: Waker,
}

impl<F: Future> RepolledFuture<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), state_waker: None }
    }
}

impl StateWaker {
    fn note_wake(&self) {
        let woken = |state| (state != WAITING).then_some(WOKEN);
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, woken).is_err() {
            self.task.wake_by_ref();
        }
    }
}

impl Wake for StateWaker {
    fn wake(self: Arc<Self>) {
        self.note_wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.note_wake();
    }
}

impl<F: Future> Future for RepolledFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let (bell, waker) = match this.state_waker.take() {
            Some(known) if known.0.task.will_wake(context.waker()) => this.state_waker.insert(known),
            _ => {
                let bell =
                    Arc::new(StateWaker { state: AtomicU8::new(WAITING), task: context.waker().clone() });
                let waker = Waker::from(Arc::clone(&bell));
                this.state_waker.insert((bell, waker))
            }
        };
        let _turn = PollScope::begin();
        let mut is_woken = true;
        for _ in 0..MAX_POLLS_IN_TURN {
            if is_woken {
                // All earlier wakes happened before this poll, which handles them.
                bell.state.swap(RUNNING, Ordering::AcqRel);
                if let Poll::Ready(done) = this.future.as_mut().poll(&mut Context::from_waker(waker)) {
                    return Poll::Ready(done);
                }
            }
            if poll_woken_work() {
                is_woken = bell.state.load(Ordering::Acquire) == WOKEN;
                continue;
            }
            let rests = bell.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire);
            if rests.is_ok() {
                return Poll::Pending;
            }
            is_woken = true;
        }
        bell.state.store(WAITING, Ordering::Release);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn wakes_itself(times: usize) -> impl Future<Output = usize> {
        let mut polled = 0;
        poll_fn(move |context| {
            polled += 1;
            if polled > times {
                return Poll::Ready(polled);
            }
            let own = context.waker().clone();
            own.wake_by_ref();
            own.wake();
            Poll::Pending
        })
    }

    #[test]
    fn a_self_waking_future_is_polled_again_in_the_same_turn() {
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut again = RepolledFuture::new(wakes_itself(MAX_POLLS_IN_TURN - 1));
        let polled = Pin::new(&mut again).poll(&mut Context::from_waker(&waker));
        assert_eq!((polled, count.0.load(Ordering::SeqCst)), (Poll::Ready(MAX_POLLS_IN_TURN), 0));
    }

    #[test]
    fn other_tasks_get_their_turn() {
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut again = RepolledFuture::new(wakes_itself(MAX_POLLS_IN_TURN + 1));
        let mut ask = || Pin::new(&mut again).poll(&mut Context::from_waker(&waker));
        assert_eq!((ask(), count.0.load(Ordering::SeqCst)), (Poll::Pending, 1));
        assert_eq!((ask(), count.0.load(Ordering::SeqCst)), (Poll::Ready(MAX_POLLS_IN_TURN + 2), 1));
    }

    #[test]
    fn a_waiting_future_wakes_the_task_that_polled_last() {
        let mut seen = None;
        let mut again = RepolledFuture::new(poll_fn(|context| {
            seen = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        let counts = [Arc::new(WakeCounter::default()), Arc::new(WakeCounter::default())];
        for count in &counts {
            let waker = Waker::from(Arc::clone(count));
            assert!(Pin::new(&mut again).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(again);
        seen.unwrap().wake();
        assert_eq!(counts.map(|count| count.0.load(Ordering::SeqCst)), [0, 1]);
    }

    #[tokio::test]
    async fn no_wake_from_another_thread_is_lost() {
        for _ in 0..200 {
            let came = Arc::new(AtomicUsize::new(0));
            let mut began = false;
            let counting = poll_fn(|context| {
                if !std::mem::replace(&mut began, true) {
                    let (came, waker) = (Arc::clone(&came), context.waker().clone());
                    thread::spawn(move || {
                        for _ in 0..50 {
                            came.fetch_add(1, Ordering::Relaxed);
                            waker.wake_by_ref();
                        }
                    });
                }
                if came.load(Ordering::Relaxed) == 50 { Poll::Ready(()) } else { Poll::Pending }
            });
            tokio::time::timeout(Duration::from_secs(30), RepolledFuture::new(counting)).await.unwrap();
        }
    }
}
