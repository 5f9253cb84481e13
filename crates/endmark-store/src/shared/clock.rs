//! Measures how long an instance may act without the database. The time never goes back, and continues while
//! the machine is suspended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

/// Returns milliseconds since its creation. The monotonic clock stops while the machine is suspended, and the
/// wall clock may be set back, so the larger of both is used. It is correct or ahead. A clock that is ahead
/// only makes the instance stop early.
#[derive(Debug)]
pub(crate) struct Clock {
    monotonic: Instant,
    wall: SystemTime,
    latest_ms: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now(), latest_ms: AtomicU64::new(0) }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let passed = self.monotonic.elapsed().max(self.wall.elapsed().unwrap_or_default());
        let now_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        self.latest_ms.fetch_max(now_ms, Ordering::AcqRel).max(now_ms)
    }
}
