//! Limits retries to a share of the traffic.

use std::time::Duration;

/// Number of seconds over which traffic is counted. It is long enough to compute a share of infrequent
/// requests, and short enough that a quiet minute does not permit a burst of retries.
pub const BUDGET_WINDOW_SECONDS: u64 = WINDOW_SECONDS as u64;

/// [`BUDGET_WINDOW_SECONDS`] as an array length.
const WINDOW_SECONDS: usize = 10;

/// The traffic in one second of the window. `number` identifies the second.
#[derive(Debug, Clone, Copy, Default)]
struct SecondTraffic {
    number: u64,
    requests: u64,
    retries: u64,
}

/// Limits retries to a share of the requests, so that retries do not overload a failing upstream.
///
/// Within [`BUDGET_WINDOW_SECONDS`], the retries are at most `share_percent` of the requests, plus
/// `floor_per_second` retries per second. The minimum is for low traffic. A gateway has one budget for each
/// upstream.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::RetryBudget;
/// let mut budget = RetryBudget::new(20, 0);
/// let now = Duration::from_secs(1);
/// (0..10).for_each(|_| budget.note_request(now));
/// assert_eq!((0..10).filter(|_| budget.try_retry(now)).count(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct RetryBudget {
    share_percent: u64,
    floor_per_second: u64,
    seconds: [SecondTraffic; WINDOW_SECONDS],
}

impl RetryBudget {
    /// Creates a budget with this share of the requests, and a minimum number of retries per second.
    pub fn new(share_percent: u32, floor_per_second: u32) -> Self {
        Self {
            share_percent: share_percent.into(),
            floor_per_second: floor_per_second.into(),
            seconds: [SecondTraffic::default(); WINDOW_SECONDS],
        }
    }

    /// Counts a request at the time `now`, measured from the start of the driver.
    pub fn note_request(&mut self, now: Duration) {
        self.second_mut(now).requests += 1;
    }

    /// Counts a retry that does not need permission, such as one by the client.
    pub fn note_external_retry(&mut self, now: Duration) {
        self.second_mut(now).retries += 1;
    }

    /// Counts a retry if the budget permits it. Returns `false` if the budget is exhausted.
    pub fn try_retry(&mut self, now: Duration) -> bool {
        self.second_mut(now);
        let oldest = now.as_secs().saturating_sub(BUDGET_WINDOW_SECONDS - 1);
        let inside = self.seconds.iter().filter(|second| second.number >= oldest);
        let (requests, retries) = inside.fold((0_u64, 0_u64), |(requests, retries), second| {
            (requests.saturating_add(second.requests), retries.saturating_add(second.retries))
        });
        let floor = self.floor_per_second.saturating_mul(BUDGET_WINDOW_SECONDS);
        let allowed = (requests.saturating_mul(self.share_percent) / 100).saturating_add(floor);
        if retries >= allowed {
            return false;
        }
        self.second_mut(now).retries += 1;
        true
    }

    /// Returns the counters of the current second. Resets them if they belong to an earlier second.
    fn second_mut(&mut self, now: Duration) -> &mut SecondTraffic {
        let number = now.as_secs();
        // The remainder is small enough for `usize`.
        let second = &mut self.seconds[(number % BUDGET_WINDOW_SECONDS) as usize];
        if second.number != number {
            *second = SecondTraffic { number, ..SecondTraffic::default() };
        }
        second
    }
}
