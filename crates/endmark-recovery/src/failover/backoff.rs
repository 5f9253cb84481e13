//! How long to wait before a further try.

use std::time::Duration;

/// The mean of the first pause: long enough to establish a new connection after a reset, and short compared with the
/// seconds of a reply.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The mean of the longest pause: a server that loads its model is found soon after it is ready.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Jitter added to a wait that the upstream requested, in percent. Clients that were refused together do not return
/// together, and none returns early.
const SPREAD_PERCENT: u32 = 10;

/// Returns the pause before the try after `tries` failed ones. It doubles up to [`LONGEST_PAUSE`], with jitter from
/// half to one and a half times, so that clients that failed together do not return together.
///
/// `random` is any uniformly distributed number.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::pause;
/// assert_eq!(pause(1, 0), Duration::from_millis(125));
/// assert!(pause(2, u32::MAX) > Duration::from_millis(749));
/// ```
pub fn pause(tries: u32, random: u32) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    let middle = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    middle / 2 + share(middle, random)
}

/// Returns the wait for a requested `Retry-After`: never shorter, and at most a tenth longer.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::requested_wait;
/// assert_eq!(requested_wait(Duration::from_secs(2), 0), Duration::from_secs(2));
/// assert!(requested_wait(Duration::from_secs(2), u32::MAX) <= Duration::from_millis(2_200));
/// ```
pub fn requested_wait(retry_after: Duration, random: u32) -> Duration {
    retry_after.saturating_add(share(retry_after.saturating_mul(SPREAD_PERCENT) / 100, random))
}

/// Returns the share of `whole` that `random` is of the largest random number.
fn share(whole: Duration, random: u32) -> Duration {
    let nanos = whole.as_nanos().saturating_mul(random.into()) / u128::from(u32::MAX);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
