//! How often and how long a request is tried again that got no reply.

use std::time::Duration;

/// How often and how long a request is tried again that got no reply.
#[derive(Debug, Clone)]
pub struct RetrySettings {
    /// Further tries of one request at one upstream.
    pub max_retries: u32,
    /// The longest `Retry-After` that is waited for.
    pub max_wait: Duration,
    /// Further tries that one upstream may get, in percent of its requests.
    pub budget_percent: u32,
    /// Further tries a second that it may get however few its requests are.
    pub budget_per_second: u32,
    /// How long an upstream with a fallback is left alone after it failed again and again.
    pub cooldown: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            // As OpenAI's own clients do.
            max_retries: 2,
            // A client waits about as long before its user looks for another way.
            max_wait: Duration::from_secs(10),
            // Envoy's defaults: enough for single faults, and an upstream that is down gets a fifth more.
            budget_percent: 20,
            budget_per_second: 3,
            // A server process is back within seconds, or not for minutes; in either case a probe is cheap.
            cooldown: Duration::from_secs(5),
        }
    }
}
