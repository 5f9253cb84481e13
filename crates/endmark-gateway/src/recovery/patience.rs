//! How long the upstreams of one request are waited for, over all calls for its rest.

use std::time::Duration;

use endmark_recovery::failover::{pause, wait_as_told};
use tokio::time::Instant;

/// So many tries follow one another as soon as a server that was started anew may be there; what is not there by
/// then is in trouble, and is left alone for longer each time.
const QUICK_TRIES: u32 = 4;

/// The waits between the tries of all calls for the rest of one request: they have one length together, and each is
/// longer than the one before, whichever call it is for.
#[derive(Debug)]
pub(crate) struct Patience {
    left: Duration,
    tries: u32,
    is_over: bool,
    calls: Duration,
    /// None where that is further away than a clock can say.
    calls_until: Option<Instant>,
}

impl Patience {
    /// Waits of this length in all, and calls that are over, with those waits, `calls` after `now`.
    pub(crate) fn new(in_all: Duration, calls: Duration, now: Instant) -> Self {
        Self { left: in_all, tries: 0, is_over: false, calls, calls_until: now.checked_add(calls) }
    }

    /// What is left for the next call of the time that all of them have together.
    pub(super) fn call(&self) -> Duration {
        self.call_at(Instant::now())
    }

    /// The same at this moment.
    pub(super) fn call_at(&self, now: Instant) -> Duration {
        self.calls_until.map_or(self.calls, |until| until.saturating_duration_since(now))
    }

    /// The time that all calls have together.
    pub(super) fn calls(&self) -> Duration {
        self.calls
    }

    /// Whether it was used up.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The wait before a further try, at least as long as the upstream asked for if it did; none where that is longer than
    /// what is left, and nothing is tried any more then. `random` is any number, evenly spread.
    pub(super) fn wait(&mut self, told: Option<Duration>, random: u32) -> Option<Duration> {
        self.tries = self.tries.saturating_add(1);
        let doublings = self.tries.saturating_sub(QUICK_TRIES).min(8);
        let own = pause(self.tries, random).saturating_mul(1 << doublings);
        // `Retry-After: 0` is no invitation to ask without end.
        let wait = told.map_or(own, |told| wait_as_told(told, random).max(own));
        match self.left.checked_sub(wait) {
            Some(left) => self.left = left,
            None => self.is_over = true,
        }
        (!self.is_over).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_share_one_length_of_time_and_few_tries() {
        for random in [0, u32::MAX / 2, u32::MAX] {
            let mut patience = Patience::new(Duration::from_secs(30), Duration::ZERO, Instant::now());
            let waits: Vec<Duration> = std::iter::from_fn(|| patience.wait(None, random)).collect();
            assert!((4..=10).contains(&waits.len()), "{waits:?}");
            assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(30), "{waits:?}");
            assert!(patience.is_over());
            for told in [Duration::ZERO, Duration::from_secs(1)] {
                let mut patience = Patience::new(Duration::from_secs(30), Duration::ZERO, Instant::now());
                let waits = std::iter::from_fn(|| patience.wait(Some(told), random)).count();
                assert!((4..=10).contains(&waits), "{waits} waits of {told:?}");
            }
        }
    }

    #[test]
    fn an_upstream_is_never_asked_before_it_wants_to_be() {
        let mut patience = Patience::new(Duration::from_secs(30), Duration::ZERO, Instant::now());
        let told = Some(Duration::from_secs(9));
        assert!(patience.wait(told, 0) >= told);
        assert_eq!(patience.wait(Some(Duration::from_mins(1)), 0), None);
        assert_eq!(patience.wait(None, 0), None, "it is given up once");
    }
}
