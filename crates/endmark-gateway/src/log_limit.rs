//! Limits log lines about a permanent failure that affects every request.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two lines.
const MIN_LOG_INTERVAL: Duration = Duration::from_secs(5);

/// Logs at most one event per interval, and counts the others.
#[derive(Debug)]
pub(crate) struct LogThrottle(Mutex<(Option<Instant>, u64)>);

impl LogThrottle {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Counts an event. If it should be logged, returns how many events before it were not logged.
    pub(crate) fn count_skipped(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, skipped) = *state;
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= MIN_LOG_INTERVAL);
        *state = if is_due { (Some(now), 0) } else { (last, skipped + 1) };
        is_due.then_some(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressed_log_events_are_counted() {
        let (throttle, begin) = (LogThrottle::new(), Instant::now());
        let at = |seconds| throttle.count_skipped(begin + Duration::from_secs(seconds));
        assert_eq!([0, 1, 4, 5, 9, 12, 30].map(at), [Some(0), None, None, Some(2), None, Some(1), Some(0)]);
    }
}
