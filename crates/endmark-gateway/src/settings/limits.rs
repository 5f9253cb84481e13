//! Bounds in bytes, counts and time.

use std::time::Duration;

/// Bounds in bytes, counts and time. Each has a reason; none is "large enough".
#[derive(Debug, Clone)]
pub struct Limits {
    /// A request's head: agents send long credentials and tracing headers, not more.
    pub header_bytes: usize,
    /// Fields in a request's head; agents send about thirty.
    pub header_fields: usize,
    /// The body of a request that Endmark reads: a full context window with images in base64.
    pub body_bytes: usize,
    /// The body of a request that only passes through: the largest file that providers take is half of it.
    pub upload_bytes: u64,
    /// A reply that is held in memory because it may still need help; beyond it the reply goes on
    /// without the ability to mend it.
    pub reply_bytes: usize,
    /// Bytes of a stream on their way to a client that does not read: enough that a fast one never waits for the
    /// next event, and so few that a thousand slow ones slow their upstreams and not the memory.
    pub stream_bytes: usize,
    /// Bodies and replies held in memory for all requests together; beyond it requests have to come again, and
    /// replies pass without help.
    pub held_bytes: usize,
    /// Connections at once; where all of them are busy the next is sent away.
    pub connections: usize,
    /// Requests served at once, each with one call to an upstream at a time, from the end of a body that is read; further
    /// ones wait.
    pub requests: usize,
    /// Requests that wait for another to end; further ones are sent away.
    pub queue: usize,
    /// For a request that waits to be served: as long as clients wait before they try again by themselves.
    pub queue_wait: Duration,
    /// For the client to send its whole head.
    pub header: Duration,
    /// For the client to send its body, beside a second for every kilobyte of it.
    pub body: Duration,
    /// For a client to send its next request on a connection that it keeps: longer than the minute in which most
    /// clients give up an idle one themselves, so that no request meets a connection that is being closed.
    pub keep_alive: Duration,
    /// For a client to take some of what is there for it, after which it counts as gone: one that reads a kilobyte a
    /// second takes up to a minute to be heard of through the buffers of both systems.
    pub unread: Duration,
    /// For the upstream to begin its answer: models think for minutes before a reply that is not streamed.
    pub first_byte: Duration,
    /// For the first byte of a streamed reply that a fallback can give instead: a long prompt takes seconds.
    pub first_token: Duration,
    /// Silence in mid-body, from client or upstream, after which the sender counts as stalled.
    pub idle: Duration,
    /// For one exchange in all, from the request's head to the last byte of its reply.
    pub total: Duration,
    /// Between two comments that keep a waiting client's stream alive.
    pub heartbeat: Duration,
    /// For an upstream that broke off to come back: all waits for the rest of one reply together.
    pub reconnect: Duration,
    /// For replies under way to end after a request to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 32 * 1024,
            header_fields: 100,
            body_bytes: 64 * 1024 * 1024,
            upload_bytes: 1024 * 1024 * 1024,
            reply_bytes: 16 * 1024 * 1024,
            stream_bytes: 4 * 1024,
            held_bytes: 512 * 1024 * 1024,
            connections: 4_096,
            requests: 1_024,
            queue: 1_024,
            queue_wait: Duration::from_secs(30),
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            unread: Duration::from_mins(5),
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
