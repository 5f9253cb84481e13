//! Computes the wait before another attempt.

use std::time::Duration;

/// Mean of the first pause. It gives a connection time to recover after a reset, and is short compared with
/// the time that a reply needs.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Mean of the longest pause, and so roughly the delay until an upstream is found to be available again.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Maximum jitter, in percent of a wait that the upstream requested. It spreads the retries of clients that
/// were rejected together. The wait never becomes shorter.
const JITTER_PERCENT: u32 = 10;

/// Returns the pause after `tries` failed attempts. The mean doubles with each attempt, up to
/// [`LONGEST_PAUSE`]. The pause is between half and one and a half times the mean, to spread clients that
/// failed together.
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
    middle / 2 + fraction(middle, random)
}

/// Returns the wait for a `Retry-After` value. It is at least this value, and at most a tenth longer.
///
/// ```
/// use std::time::Duration;
/// use endmark_recovery::failover::requested_wait;
/// assert_eq!(requested_wait(Duration::from_secs(2), 0), Duration::from_secs(2));
/// assert!(requested_wait(Duration::from_secs(2), u32::MAX) <= Duration::from_millis(2_200));
/// ```
pub fn requested_wait(retry_after: Duration, random: u32) -> Duration {
    retry_after.saturating_add(fraction(retry_after.saturating_mul(JITTER_PERCENT) / 100, random))
}

/// Returns the fraction `random / u32::MAX` of `whole`.
fn fraction(whole: Duration, random: u32) -> Duration {
    let nanos = whole.as_nanos().saturating_mul(random.into()) / u128::from(u32::MAX);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
