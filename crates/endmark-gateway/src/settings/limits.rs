//! Bounds in bytes, counts and time.

use std::time::Duration;

/// Bounds in bytes, counts and time. Each has a reason; none is "large enough".
#[derive(Debug, Clone)]
pub struct Limits {
    /// A request's head: agents send long cookies and tracing headers, not more.
    pub header_bytes: usize,
    /// A request's body: a full context window with images in base64.
    pub body_bytes: usize,
    /// A reply that is held in memory because it may still need help; beyond it a reply that is not
    /// streamed is refused, and a stream goes on without the ability to mend it.
    pub reply_bytes: usize,
    /// Connections served at once; the next waits in the kernel's queue.
    pub connections: usize,
    /// For the client to send its whole head.
    pub header: Duration,
    /// For the upstream to begin its answer: models think for minutes before a reply that is not streamed.
    pub first_byte: Duration,
    /// For the first byte of a streamed reply that a fallback can give instead: a long prompt takes seconds.
    pub first_token: Duration,
    /// Silence in mid-body, from client or upstream, after which the sender counts as stalled.
    pub idle: Duration,
    /// For one exchange in all.
    pub total: Duration,
    /// Between two comments that keep a waiting client's stream alive.
    pub heartbeat: Duration,
    /// For an upstream that broke off to come back before a resume attempt is given up.
    pub reconnect: Duration,
    /// For replies under way to end after a request to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 64 * 1024,
            body_bytes: 64 * 1024 * 1024,
            reply_bytes: 16 * 1024 * 1024,
            connections: 1_024,
            header: Duration::from_secs(10),
            first_byte: Duration::from_mins(10),
            first_token: Duration::from_mins(1),
            idle: Duration::from_mins(2),
            total: Duration::from_hours(1),
            heartbeat: Duration::from_secs(10),
            reconnect: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}
