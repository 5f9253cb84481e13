//! The stages of the gateway's shutdown.
//!
//! No task waits for a stage. Each stage wakes the connections, which notify their current work.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use tokio::sync::watch;

use crate::work;

/// The stages, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShutdownStage {
    /// No new work starts.
    Draining = 1,
    /// Work in progress is aborted, if possible with a message to the client.
    Interrupted = 2,
    /// All connections are closed, regardless of their activity.
    Stopped = 3,
}

/// The current stage of the shutdown.
#[derive(Debug, Default)]
pub(crate) struct Stopping {
    /// The stage; 0 while the gateway serves.
    stage: AtomicU8,
    reached: watch::Sender<()>,
}

/// Error: the gateway stopped before the work was done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

impl Stopping {
    /// Enters this stage, and notifies all subscribers.
    pub(crate) fn reach(&self, stage: ShutdownStage) {
        self.stage.fetch_max(stage as u8, Ordering::AcqRel);
        work::wake_pool();
        self.reached.send_replace(());
    }

    /// Subscribes to later stages.
    pub(crate) fn stages(&self) -> watch::Receiver<()> {
        self.reached.subscribe()
    }

    /// Whether this stage has been entered.
    pub(crate) fn has_reached(&self, stage: ShutdownStage) -> bool {
        self.stage.load(Ordering::Acquire) >= stage as u8
    }

    /// Runs this work, and aborts it if the gateway is interrupted.
    pub(crate) async fn unless_interrupted<F>(&self, mut work: Pin<&mut F>) -> Result<F::Output, Interrupted>
    where
        F: Future,
    {
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending if self.has_reached(ShutdownStage::Interrupted) => Poll::Ready(Err(Interrupted)),
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
    async fn an_interrupted_wait_returns_finished_work_only() {
        let stopping = Stopping::default();
        stopping.reach(ShutdownStage::Draining);
        assert!(!stopping.has_reached(ShutdownStage::Interrupted));
        stopping.reach(ShutdownStage::Interrupted);
        assert_eq!(stopping.unless_interrupted(pin!(ready(1))).await, Ok(1));
        assert_eq!(stopping.unless_interrupted(pin!(pending::<()>())).await, Err(Interrupted));
        stopping.reach(ShutdownStage::Draining);
        assert!(stopping.has_reached(ShutdownStage::Interrupted), "no stage is left again");
    }
}
