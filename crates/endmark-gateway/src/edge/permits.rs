//! How many requests are served at once, and who waits for a place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// The requests that are served, and those that wait, in the order in which they came.
#[derive(Default)]
pub(super) struct Permits(Mutex<State>);

#[derive(Default)]
struct State {
    served: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

/// A request has to come again later.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoPermit;

impl Permits {
    /// A permit, at once or after others have ended: at most `served` have one, at most `waiting` wait for one, and
    /// no longer than `patience`.
    pub(super) async fn get(
        self: &Arc<Self>,
        served: usize,
        waiting: usize,
        patience: Duration,
    ) -> Result<Permit, NoPermit> {
        let turn = {
            let mut state = self.lock();
            if state.served < served {
                state.served += 1;
                return Ok(Permit(Arc::clone(self)));
            }
            state.waiting.retain(|waiting| !waiting.is_closed());
            if state.waiting.len() >= waiting {
                return Err(NoPermit);
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push_back(sender);
            turn
        };
        let mut turn = Turn { of: self, turn };
        match timeout(patience, &mut turn.turn).await {
            Ok(Ok(())) => Ok(Permit(Arc::clone(self))),
            Ok(Err(_)) | Err(_) => Err(NoPermit),
        }
    }

    /// Passes a permit on to the next who waits, or takes it back.
    fn release(&self) {
        let mut state = self.lock();
        while let Some(next) = state.waiting.pop_front() {
            if next.send(()).is_ok() {
                return;
            }
        }
        state.served -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Both are whole after every operation, so a panic elsewhere cannot have spoilt them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue. One whose turn came while nobody looked any more passes it on.
struct Turn<'a> {
    of: &'a Permits,
    turn: oneshot::Receiver<()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turn.close();
        if self.turn.try_recv().is_ok() {
            self.of.release();
        }
    }
}

/// A request may be served until this is dropped.
pub(crate) struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn those_who_wait_are_served_in_order_and_too_many_are_sent_away() {
        let permits = Arc::new(Permits::default());
        let first = permits.get(1, 2, LONG).await.ok().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..2)
            .map(|number| {
                let (permits, order) = (Arc::clone(&permits), Arc::clone(&order));
                tokio::spawn(async move {
                    let permit = permits.get(1, 2, LONG).await;
                    order.lock().unwrap().push(number);
                    drop(permit.ok().unwrap());
                })
            })
            .collect();
        while permits.lock().waiting.len() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(permits.get(1, 2, LONG).await.is_err());
        drop(first);
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1]);
        assert_eq!(permits.lock().served, 0);
    }

    #[tokio::test]
    async fn who_stops_waiting_takes_no_permit_along() {
        let permits = Arc::new(Permits::default());
        let first = permits.get(1, 2, LONG).await.ok().unwrap();
        assert!(permits.get(1, 2, Duration::from_millis(1)).await.is_err());
        let mut gone = Box::pin(permits.get(1, 2, LONG));
        assert!(futures_poll(&mut gone).await);
        drop(first);
        // Its turn came, and it is dropped before it looks.
        drop(gone);
        assert_eq!(permits.lock().served, 0);
        assert!(permits.get(1, 0, LONG).await.is_ok());
    }

    /// Polls once; true where there is no answer yet.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
