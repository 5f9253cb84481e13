//! Counts how often the files of a store were recreated.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the recreation of a store is reported. Metrics are collected once or twice in this time.
const REPORT_DURATION: Duration = Duration::from_mins(1);

/// Number of times the files were recreated, and the time of the last recreation.
#[derive(Debug, Default)]
pub(crate) struct RenewalCounter(Mutex<(u64, Option<Instant>)>);

impl RenewalCounter {
    pub(crate) fn count(&self) -> u64 {
        self.lock().0
    }

    pub(crate) fn is_recent(&self) -> bool {
        self.lock().1.is_some_and(|last| last.elapsed() < REPORT_DURATION)
    }

    pub(crate) fn increment(&self) {
        let mut renewals = self.lock();
        *renewals = (renewals.0 + 1, Some(Instant::now()));
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Option<Instant>)> {
        // Both values are consistent after each operation, so a panic elsewhere cannot have corrupted them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
