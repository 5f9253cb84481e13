//! Computes the wait before another attempt.

use std::time::Duration;

/// Mean of the first pause. It is long enough to reconnect after a reset, and short compared with the seconds of a
/// reply.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Mean of the longest pause. A server that has loaded its model is found soon afterwards.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Jitter in percent that is added to a wait requested by the upstream. It spreads clients that were rejected
/// together, and none of them returns early.
const SPREAD_PERCENT: u32 = 10;

/// Returns the pause before the attempt that follows `tries` failed ones. It doubles up to [`LONGEST_PAUSE`]. Jitter
/// from half to one and a half times spreads clients that failed together.
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

/// Returns the wait for a requested `Retry-After`. It is never shorter than requested, and at most a tenth longer.
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

/// Scales `whole` by the ratio of `random` to the largest random number.
fn share(whole: Duration, random: u32) -> Duration {
    let nanos = whole.as_nanos().saturating_mul(random.into()) / u128::from(u32::MAX);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
