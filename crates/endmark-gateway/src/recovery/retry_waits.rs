//! Limits how long one request waits for upstreams, over all calls for the rest of its reply.

use std::time::Duration;

use endmark_recovery::failover::{pause, requested_wait};
use tokio::time::Instant;

/// Number of quick attempts, for a server that was just restarted. Afterwards the waits grow.
const QUICK_ATTEMPTS: u32 = 4;

/// The waits between attempts, over all calls for the rest of one reply. Their sum is limited. Each wait is
/// longer than the previous one, even if that was for another call.
#[derive(Debug)]
pub(crate) struct RetryWaits {
    remaining: Duration,
    attempt_count: u32,
    is_over: bool,
    call_time: Duration,
    /// The deadline of all calls. `None` if it exceeds the range of the clock.
    deadline: Option<Instant>,
}

impl RetryWaits {
    /// Limits the sum of all waits to `total_wait`, and all calls with their waits to `call_time` after
    /// `now`.
    pub(crate) fn new(total_wait: Duration, call_time: Duration, now: Instant) -> Self {
        Self {
            remaining: total_wait,
            attempt_count: 0,
            is_over: false,
            call_time,
            deadline: now.checked_add(call_time),
        }
    }

    /// Returns the time left for the next call.
    pub(super) fn time_for_call(&self) -> Duration {
        self.remaining_at(Instant::now())
    }

    /// Returns the time left at this moment.
    pub(super) fn remaining_at(&self, now: Instant) -> Duration {
        self.deadline.map_or(self.call_time, |until| until.saturating_duration_since(now))
    }

    /// Returns the total time of all calls.
    pub(super) fn total_call_time(&self) -> Duration {
        self.call_time
    }

    /// Whether no time is left.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the wait before the next attempt, at least as long as the upstream requested. Returns `None` if too
    /// little time remains for another attempt. `random` is a uniformly distributed number.
    pub(super) fn wait(&mut self, retry_after: Option<Duration>, random: u32) -> Option<Duration> {
        self.attempt_count = self.attempt_count.saturating_add(1);
        let doublings = self.attempt_count.saturating_sub(QUICK_ATTEMPTS).min(8);
        let own = pause(self.attempt_count, random).saturating_mul(1 << doublings);
        // Pause even after `Retry-After: 0`, which is not a request for an immediate retry.
        let wait = retry_after.map_or(own, |retry_after| requested_wait(retry_after, random).max(own));
        match self.remaining.checked_sub(wait) {
            Some(left) => self.remaining = left,
            None => self.is_over = true,
        }
        (!self.is_over).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_share_one_time_limit_and_few_attempts() {
        for random in [0, u32::MAX / 2, u32::MAX] {
            let mut patience = RetryWaits::new(Duration::from_secs(30), Duration::ZERO, Instant::now());
            let waits: Vec<Duration> = std::iter::from_fn(|| patience.wait(None, random)).collect();
            assert!((4..=10).contains(&waits.len()), "{waits:?}");
            assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(30), "{waits:?}");
            assert!(patience.is_over());
            for retry_after in [Duration::ZERO, Duration::from_secs(1)] {
                let mut patience = RetryWaits::new(Duration::from_secs(30), Duration::ZERO, Instant::now());
                let waits = std::iter::from_fn(|| patience.wait(Some(retry_after), random)).count();
                assert!((4..=10).contains(&waits), "{waits} waits of {retry_after:?}");
            }
        }
    }

    #[test]
    fn no_attempt_is_made_before_the_retry_time() {
        let mut patience = RetryWaits::new(Duration::from_secs(30), Duration::ZERO, Instant::now());
        let retry_after = Some(Duration::from_secs(9));
        assert!(patience.wait(retry_after, 0) >= retry_after);
        assert_eq!(patience.wait(Some(Duration::from_mins(1)), 0), None);
        assert_eq!(patience.wait(None, 0), None, "it is given up once");
    }
}
