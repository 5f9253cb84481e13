//! How long the reply to one request waits for the store, over all that it asks of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// Long for a store that works, and little beside what a cut reply takes: of one that does not, no client is to notice
/// more.
const STORE_DELAY_LIMIT: Duration = Duration::from_secs(2);

/// What is left of that time.
#[derive(Debug)]
pub(crate) struct StorePatience {
    left: Mutex<Duration>,
}

impl Default for StorePatience {
    fn default() -> Self {
        Self { left: Mutex::new(STORE_DELAY_LIMIT) }
    }
}

impl StorePatience {
    /// What comes of the work, if it comes in the time that is left. What is done at once is waited for in any case.
    pub(super) async fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (began, left) = (Instant::now(), *self.lock());
        let done = timeout(left, work).await.ok();
        let mut left = self.lock();
        *left = left.saturating_sub(began.elapsed());
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Duration> {
        // It is whole after every single operation, so a panic elsewhere cannot have spoilt it.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn what_one_wait_takes_is_missing_to_the_next() {
        let patience = StorePatience { left: Mutex::new(Duration::from_millis(60)) };
        assert_eq!(patience.wait(tokio::time::sleep(Duration::from_millis(5))).await, Some(()));
        assert!(*patience.lock() <= Duration::from_millis(55));
        assert_eq!(patience.wait(pending::<()>()).await, None);
        assert_eq!(*patience.lock(), Duration::ZERO);
        assert_eq!(patience.wait(pending::<()>()).await, None);
        assert_eq!(patience.wait(ready(7)).await, Some(7));
    }
}
