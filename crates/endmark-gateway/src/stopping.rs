//! The stages of stopping the gateway.
//!
//! No task waits for a stage: each connection is woken when one is reached, and tells its current work to react.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use tokio::sync::watch;

use crate::work;

/// The stages, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Nothing new begins.
    Draining = 1,
    /// What is still in progress ends now, as well as possible.
    Interrupted = 2,
    /// Every connection ends, whatever it does.
    Over = 3,
}

/// The current stage.
#[derive(Debug, Default)]
pub(crate) struct Stopping {
    /// 0 while it serves.
    stage: AtomicU8,
    reached: watch::Sender<()>,
}

/// The gateway stopped before the work was done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

impl Stopping {
    /// Reaches this stage, and notifies all subscribers.
    pub(crate) fn reach(&self, stage: Stage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
        work::nudge();
        self.reached.send_replace(());
    }

    /// Subscribes to the stages that are reached from now on.
    pub(crate) fn stages(&self) -> watch::Receiver<()> {
        self.reached.subscribe()
    }

    /// Whether this stage is reached.
    pub(crate) fn has_reached(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Acquire) >= stage as u8
    }

    /// Does this work. It is abandoned if the gateway is interrupted while it waits.
    pub(crate) async fn unless_interrupted<F>(&self, mut work: Pin<&mut F>) -> Result<F::Output, Interrupted>
    where
        F: Future,
    {
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending if self.has_reached(Stage::Interrupted) => Poll::Ready(Err(Interrupted)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn what_is_there_is_taken_and_nothing_is_waited_for_once_it_is_interrupted() {
        let stopping = Stopping::default();
        stopping.reach(Stage::Draining);
        assert!(!stopping.has_reached(Stage::Interrupted));
        stopping.reach(Stage::Interrupted);
        assert_eq!(stopping.unless_interrupted(pin!(ready(1))).await, Ok(1));
        assert_eq!(stopping.unless_interrupted(pin!(pending::<()>())).await, Err(Interrupted));
        stopping.reach(Stage::Draining);
        assert!(stopping.has_reached(Stage::Interrupted), "no stage is left again");
    }
}
