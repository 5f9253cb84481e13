//! Settings for how often and how long a request without a reply is retried.

use std::time::Duration;

use endmark_setting::{AtLeast, settings};

settings! {
    /// How often and how long a request without a reply is retried.
    #[derive(Debug, Clone)]
    pub struct RetrySettings {
        // OpenAI's own clients use the same number.
        /// Retries of a request without a reply, at one upstream.
        max_retries: u32 = 2, AtLeast(0);
        // Users of interactive clients accept a wait of about this length.
        /// Longest `Retry-After` that the gateway waits for.
        max_wait as "max_wait_seconds": Duration = Duration::from_secs(10), AtLeast(0);
        // Envoy has the same defaults. They suffice for isolated failures, and add at most 20 % load to an upstream
        // that is down.
        /// Retries that an upstream may get, in percent of its requests.
        budget_percent: u32 = 20, AtLeast(0);
        /// Retries per second that an upstream may always get, even if it gets few requests.
        budget_per_second: u32 = 3, AtLeast(0);
        // A server process either restarts within seconds or stays down for minutes. A probe is cheap in both cases.
        /// How long an upstream that is down is replaced by its fallback before it is tried again.
        cooldown as "cooldown_seconds": Duration = Duration::from_secs(5), AtLeast(1);
    }
}
