//! Limits the number of requests that are served at once, and queues the others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::settings::Limits;
use crate::stopping::{ShutdownStage, Stopping};

/// The number of requests that are being served, and the queue of waiting requests in order of arrival.
#[derive(Default)]
pub(crate) struct Permits(Mutex<PermitState>);

#[derive(Default)]
struct PermitState {
    served: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

/// Error: no permit became free in time. The client must repeat the request later.
#[derive(Debug, PartialEq, Eq)]
struct NoFreePermit;

/// Why a request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermitRefused {
    /// All permits are in use, and the queue is full.
    QueueFull {
        /// Maximum requests that are served at once.
        served: usize,
        /// Maximum requests that wait.
        queue: usize,
    },
    /// The gateway is stopping.
    Stopping,
}

impl Permits {
    /// Returns a permit immediately or after another request ends. At most `served` requests have a permit. At most
    /// `waiting` requests wait, each at most `patience`.
    async fn acquire(
        self: &Arc<Self>,
        served: usize,
        waiting: usize,
        patience: Duration,
    ) -> Result<Permit, NoFreePermit> {
        if let Some(permit) = self.try_acquire(served) {
            return Ok(permit);
        }
        let turn = {
            let mut state = self.lock();
            state.waiting.retain(|waiting| !waiting.is_closed());
            if state.waiting.len() >= waiting {
                return Err(NoFreePermit);
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push_back(sender);
            turn
        };
        let mut turn = QueuePosition { permits: self, turn };
        match timeout(patience, &mut turn.turn).await {
            Ok(Ok(())) => Ok(Permit(Arc::clone(self))),
            Ok(Err(_)) | Err(_) => Err(NoFreePermit),
        }
    }

    /// Returns a permit if fewer than `served` requests have one.
    fn try_acquire(self: &Arc<Self>, served: usize) -> Option<Permit> {
        let mut state = self.lock();
        if state.served >= served {
            return None;
        }
        state.served += 1;
        Some(Permit(Arc::clone(self)))
    }

    /// Passes a permit to the next waiting request, or frees it.
    fn release(&self) {
        let mut state = self.lock();
        while let Some(next) = state.waiting.pop_front() {
            if next.send(()).is_ok() {
                return;
            }
        }
        state.served -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, PermitState> {
        // Both values are consistent after each operation, so a panic elsewhere cannot have corrupted them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A position in the queue. If it is dropped after it was assigned a permit, the next request gets that
/// permit.
struct QueuePosition<'a> {
    permits: &'a Permits,
    turn: oneshot::Receiver<()>,
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.turn.close();
        if self.turn.try_recv().is_ok() {
            self.permits.release();
        }
    }
}

/// A request's claim to a permit. The permit is acquired only when work begins, so that a client that is
/// still sending its body cannot block other clients.
pub(crate) struct PermitClaim {
    permits: Arc<Permits>,
    stopping: Arc<Stopping>,
    served: usize,
    waiting: usize,
    patience: Duration,
    permit: OnceLock<Permit>,
}

impl PermitClaim {
    pub(crate) fn new(permits: &Arc<Permits>, stopping: &Arc<Stopping>, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            permits: Arc::clone(permits),
            stopping: Arc::clone(stopping),
            served: limits.requests,
            waiting: limits.queue,
            patience: limits.queue_wait,
            permit: OnceLock::new(),
        })
    }

    /// Waits for the permit. Dropping the claim releases it. If the gateway stops while the request waits,
    /// the request is refused.
    pub(crate) async fn acquire(&self) -> Result<(), PermitRefused> {
        let permit = match self.permits.try_acquire(self.served) {
            Some(permit) => permit,
            None => match self.permits.acquire(self.served, self.waiting, self.patience).await {
                Ok(permit) if !self.stopping.has_reached(ShutdownStage::Draining) => permit,
                Ok(_) => return Err(PermitRefused::Stopping),
                Err(NoFreePermit) => {
                    return Err(PermitRefused::QueueFull { served: self.served, queue: self.waiting });
                }
            },
        };
        // If the claim already has a permit, dropping the new one releases it.
        let _ = self.permit.set(permit);
        Ok(())
    }
}

/// The right to be served. Dropping it releases the permit.
struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn waiting_requests_are_served_in_order_up_to_a_limit() {
        let permits = Arc::new(Permits::default());
        let first = permits.acquire(1, 2, LONG_PATIENCE).await.ok().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..2)
            .map(|number| {
                let (permits, order) = (Arc::clone(&permits), Arc::clone(&order));
                tokio::spawn(async move {
                    let permit = permits.acquire(1, 2, LONG_PATIENCE).await;
                    order.lock().unwrap().push(number);
                    drop(permit.ok().unwrap());
                })
            })
            .collect();
        while permits.lock().waiting.len() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(permits.acquire(1, 2, LONG_PATIENCE).await.is_err());
        drop(first);
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1]);
        assert_eq!(permits.lock().served, 0);
    }

    #[tokio::test]
    async fn a_cancelled_waiter_keeps_no_permit() {
        let permits = Arc::new(Permits::default());
        let first = permits.acquire(1, 2, LONG_PATIENCE).await.ok().unwrap();
        assert!(permits.acquire(1, 2, Duration::from_millis(1)).await.is_err());
        let mut gone = Box::pin(permits.acquire(1, 2, LONG_PATIENCE));
        assert!(is_pending(&mut gone).await);
        drop(first);
        // The request is dropped after its turn has come and before the next poll.
        drop(gone);
        assert_eq!(permits.lock().served, 0);
        assert!(permits.acquire(1, 0, LONG_PATIENCE).await.is_ok());
    }

    /// Polls a future once. Returns `true` if it is still pending.
    async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
