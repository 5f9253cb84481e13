//! How often and how long a request is tried again that got no reply.

use std::time::Duration;

use endmark_setting::{AtLeast, settings};

settings! {
    /// How often and how long a request is tried again that got no reply.
    #[derive(Debug, Clone)]
    pub struct RetrySettings {
        // As OpenAI's own clients do.
        /// Further tries of a request that got no reply, at one upstream.
        max_retries: u32 = 2, AtLeast(0);
        // A client waits about as long before its user looks for another way.
        /// Longest Retry-After that is waited for.
        max_wait as "max_wait_seconds": Duration = Duration::from_secs(10), AtLeast(0);
        // Envoy's defaults: enough for single faults, and an upstream that is down gets a fifth more.
        /// Further tries that an upstream may get, in percent of its requests.
        budget_percent: u32 = 20, AtLeast(0);
        /// Further tries a second that it may get however few its requests are.
        budget_per_second: u32 = 3, AtLeast(0);
        // A server process is back within seconds, or not for minutes; in either case a probe is cheap.
        /// How long an upstream that is down is left to its fallback before it is tried again.
        cooldown as "cooldown_seconds": Duration = Duration::from_secs(5), AtLeast(1);
    }
}
