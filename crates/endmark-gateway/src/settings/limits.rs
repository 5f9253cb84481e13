//! Limits on bytes, counts and times, with their reasons.

use std::time::Duration;

use endmark_setting::{AtLeast, settings};

settings! {
    /// Limits in bytes, counts and time.
    #[derive(Debug, Clone)]
    pub struct Limits {
        // Agents send long credentials and tracing headers, and nothing longer.
        /// Largest request header.
        header_bytes: usize = 32 * 1024, AtLeast(1024);
        // A full context window with images in base64 fits.
        /// Largest request body.
        body_bytes: usize = 64 * 1024 * 1024, AtLeast(1024);
        /// Largest reply that can be recovered; a longer one is forwarded unchanged.
        reply_bytes: usize = 16 * 1024 * 1024, AtLeast(1024);
        /// Time for a client to send its header.
        header as "header_seconds": Duration = Duration::from_secs(10), AtLeast(1);
        // Models may reason for minutes before they begin a non-streamed reply.
        /// Time for an upstream to begin its response.
        first_byte as "first_byte_seconds": Duration = Duration::from_mins(10), AtLeast(1);
        // Processing a long prompt takes seconds.
        /// Time for an upstream with a fallback to begin a stream.
        first_token as "first_token_seconds": Duration = Duration::from_mins(1), AtLeast(1);
        /// Silence in a response after which it counts as stalled.
        idle as "idle_seconds": Duration = Duration::from_mins(2), AtLeast(1);
        /// Time for a whole request.
        total as "total_seconds": Duration = Duration::from_hours(1), AtLeast(1);
        /// Time without data to a client after which a comment is sent.
        heartbeat as "heartbeat_seconds": Duration = Duration::from_secs(10), AtLeast(1);
        // This limits the sum of all waits for the rest of one reply.
        /// Time to wait for an upstream that broke off, before an attempt to resume fails.
        reconnect as "reconnect_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Time for replies in progress to end after a request to stop.
        drain as "drain_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Maximum client connections at the same time.
        connections: usize = 4_096, AtLeast(1);
        // Agents send about thirty fields.
        /// Maximum fields in a request header.
        header_fields: usize = 100, AtLeast(1);
        // Providers accept files up to half this size.
        /// Largest request body on a path that is only forwarded.
        upload_bytes: u64 = 1024 * 1024 * 1024, AtLeast(1024);
        // A fast client never waits for the next event. A thousand slow clients slow down their upstreams without
        // filling the memory.
        /// Bytes of a stream that are buffered for a client that does not read.
        stream_bytes: usize = 4 * 1024, AtLeast(1024);
        // Above this limit, requests must be repeated, and replies are forwarded without recovery.
        /// Bytes of bodies and replies in memory, for all requests together.
        held_bytes: usize = 512 * 1024 * 1024, AtLeast(1024);
        // After its body has arrived, each request makes at most one upstream call at a time.
        /// Requests that are served at the same time; more requests wait.
        requests: usize = 1_024, AtLeast(1);
        /// Requests that may wait to be served; more requests get the status 429.
        queue: usize = 1_024, AtLeast(0);
        // Clients wait about this long before they retry by themselves.
        /// Time that a request may wait to be served.
        queue_wait as "queue_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Time for a client to send its body, in addition to a second for every kilobyte.
        body as "body_seconds": Duration = Duration::from_secs(30), AtLeast(1);
        // Most clients close an idle connection within a minute, which is before the server closes it.
        /// Time that a connection may be idle between two requests.
        keep_alive as "keep_alive_seconds": Duration = Duration::from_secs(75), AtLeast(1);
        // A client that reads a kilobyte per second shows activity within a minute, despite the buffers of both
        // systems.
        /// Time within which a client must read a part of its reply.
        unread as "unread_seconds": Duration = Duration::from_mins(5), AtLeast(1);
    }
}
