//! Limits how long the reply to one request waits for the store, over all accesses.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// Total delay that a failing store may cause. A working store needs far less time, and recovering a reply takes far
/// longer.
const STORE_DELAY_LIMIT: Duration = Duration::from_secs(2);

/// The remaining time that one reply may wait for the store.
#[derive(Debug)]
pub(crate) struct StoreWaitLimit {
    remaining: Mutex<Duration>,
}

impl Default for StoreWaitLimit {
    fn default() -> Self {
        Self { remaining: Mutex::new(STORE_DELAY_LIMIT) }
    }
}

impl StoreWaitLimit {
    /// Returns the result of `work` if it is ready in time. Work that completes immediately is always accepted.
    pub(super) async fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (began, left) = (Instant::now(), *self.lock());
        let done = timeout(left, work).await.ok();
        let mut left = self.lock();
        *left = left.saturating_sub(began.elapsed());
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Duration> {
        // The value is consistent after each operation, so a panic elsewhere cannot have corrupted it.
        self.remaining.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn one_wait_reduces_the_time_for_the_next() {
        let patience = StoreWaitLimit { remaining: Mutex::new(Duration::from_millis(60)) };
        assert_eq!(patience.wait(tokio::time::sleep(Duration::from_millis(5))).await, Some(()));
        assert!(*patience.lock() <= Duration::from_millis(55));
        assert_eq!(patience.wait(pending::<()>()).await, None);
        assert_eq!(*patience.lock(), Duration::ZERO);
        assert_eq!(patience.wait(pending::<()>()).await, None);
        assert_eq!(patience.wait(ready(7)).await, Some(7));
    }
}
