//! Settings for how often and how long a request without a reply is retried.

use std::time::Duration;

use endmark_setting::{AtLeast, settings};

settings! {
    /// How often and how long a request without a reply is retried.
    #[derive(Debug, Clone)]
    pub struct RetrySettings {
        // OpenAI's own clients use the same number.
        /// Further tries of a request without a reply, at one upstream.
        max_retries: u32 = 2, AtLeast(0);
        // Users of a client wait about this long.
        /// Longest Retry-After to wait for.
        max_wait as "max_wait_seconds": Duration = Duration::from_secs(10), AtLeast(0);
        // Envoy has the same defaults. They suffice for isolated failures, and add at most 20 % load to an upstream
        // that is down.
        /// Further tries that an upstream may get, in percent of its requests.
        budget_percent: u32 = 20, AtLeast(0);
        /// Further tries a second that it may get, however few its requests are.
        budget_per_second: u32 = 3, AtLeast(0);
        // A server process either restarts within seconds or stays down for minutes. A probe is cheap in both cases.
        /// How long an upstream that is down is replaced by its fallback before it is tried again.
        cooldown as "cooldown_seconds": Duration = Duration::from_secs(5), AtLeast(1);
    }
}
