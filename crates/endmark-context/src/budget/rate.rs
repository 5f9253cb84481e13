//! Rate limits of keys (CX-7): budgets of the scope [`Scope::Rate`](super::Scope::Rate) with short windows.

use super::{Period, Unit, Zone};
use crate::Moment;

/// Seconds for which a window is kept after its end. The clocks of instances differ by less than this.
const WINDOW_RETENTION_SECONDS: u64 = 600;

/// The rate limits of a key. `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimits {
    /// Maximum requests in one calendar minute.
    pub requests_per_minute: Option<u64>,
    /// Maximum tokens in one calendar minute.
    pub tokens_per_minute: Option<u64>,
    /// Maximum requests in progress at the same time.
    pub parallel: Option<u64>,
}

/// The state of a rate limit after a request was admitted, for response headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingRate {
    /// Its unit.
    pub unit: Unit,
    /// The limit.
    pub limit: u64,
    /// The amount left.
    pub remaining: u64,
}

impl RateLimits {
    /// Returns these limits. Missing ones are copied from `default`.
    ///
    /// ```
    /// use endmark_context::budget::RateLimits;
    /// let (own, default) = (RateLimits { parallel: Some(2), ..RateLimits::default() }, RateLimits {
    ///     requests_per_minute: Some(60),
    ///     tokens_per_minute: None,
    ///     parallel: Some(9),
    /// });
    /// assert_eq!(own.or(default), RateLimits { requests_per_minute: Some(60), ..own });
    /// ```
    #[must_use]
    pub fn or(self, default: Self) -> Self {
        Self {
            requests_per_minute: self.requests_per_minute.or(default.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.or(default.tokens_per_minute),
            parallel: self.parallel.or(default.parallel),
        }
    }

    /// Whether there are no limits.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the period over which a rate limit of this unit counts.
pub fn rate_period(unit: Unit) -> Period {
    if unit == Unit::Parallel { Period::Ever } else { Period::Minute }
}

/// Returns after how many seconds a client should retry a refused request: at the end of the window, or after
/// one second if the limit is about requests in progress.
///
/// ```
/// use endmark_context::Moment;
/// use endmark_context::budget::{Unit, rate_retry_seconds};
/// let at = Moment::parse("2026-11-24 12:00").unwrap().unix_seconds() + 18;
/// assert_eq!(rate_retry_seconds(Unit::Requests, Moment::from_unix_seconds(at)), 42);
/// assert_eq!(rate_retry_seconds(Unit::Parallel, Moment::from_unix_seconds(at)), 1);
/// ```
pub fn rate_retry_seconds(unit: Unit, at: Moment) -> u64 {
    let end = rate_period(unit).reset_seconds(at, &Zone::default());
    end.map_or(1, |end| end - at.unix_seconds())
}

/// Returns the name of the oldest window that is still kept when `window` is in use. Older windows are
/// deleted.
///
/// ```
/// use endmark_context::budget::oldest_kept_window;
/// assert_eq!(oldest_kept_window("2026-11-24T00:03").as_deref(), Some("2026-11-23T23:53"));
/// assert_eq!(oldest_kept_window("ever"), None);
/// ```
pub fn oldest_kept_window(window: &str) -> Option<String> {
    let kept = Moment::parse(window)?.unix_seconds().saturating_sub(WINDOW_RETENTION_SECONDS);
    Some(Period::Minute.window(Moment::from_unix_seconds(kept), &Zone::default()))
}
