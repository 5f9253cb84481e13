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
        // Models may reason for minutes before a reply without a stream begins.
        /// Time for an upstream to begin its response.
        first_byte as "first_byte_seconds": Duration = Duration::from_mins(10), AtLeast(1);
        // Processing a long prompt takes seconds.
        /// Time for an upstream with a fallback to begin a stream.
        first_token as "first_token_seconds": Duration = Duration::from_mins(1), AtLeast(1);
        /// Silence in a response after which it counts as stalled.
        idle as "idle_seconds": Duration = Duration::from_mins(2), AtLeast(1);
        /// Time for a whole request.
        total as "total_seconds": Duration = Duration::from_hours(1), AtLeast(1);
        /// Silence towards a client after which a comment is sent.
        heartbeat as "heartbeat_seconds": Duration = Duration::from_secs(10), AtLeast(1);
        // This limits the sum of all waits for the rest of one reply.
        /// Time for an upstream that broke off to return before a resume attempt is given up.
        reconnect as "reconnect_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Time for replies in progress to end after a request to stop.
        drain as "drain_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Client connections at the same time.
        connections: usize = 4_096, AtLeast(1);
        // Agents send about thirty fields.
        /// Most fields in a request header.
        header_fields: usize = 100, AtLeast(1);
        // Providers accept files up to half this size.
        /// Largest request body on a path that is only passed on.
        upload_bytes: u64 = 1024 * 1024 * 1024, AtLeast(1024);
        // A fast client never waits for the next event. A thousand slow clients slow down their upstreams without
        // filling the memory.
        /// Bytes of a stream that wait for a client that does not read.
        stream_bytes: usize = 4 * 1024, AtLeast(1024);
        // Above this limit, requests must be repeated, and replies are forwarded without recovery.
        /// Bodies and replies held in memory for all requests together.
        held_bytes: usize = 512 * 1024 * 1024, AtLeast(1024);
        // From the end of its body on, each request has at most one upstream call at a time.
        /// Requests served at the same time; further ones wait.
        requests: usize = 1_024, AtLeast(1);
        /// Requests that wait to be served; further ones are answered 429.
        queue: usize = 1_024, AtLeast(0);
        // Clients wait about this long before they retry by themselves.
        /// Time for a request to wait to be served.
        queue_wait as "queue_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Time for a client to send its body, in addition to a second for every kilobyte.
        body as "body_seconds": Duration = Duration::from_secs(30), AtLeast(1);
        // Most clients close an idle connection within a minute, which is before the server closes it.
        /// Time between two requests on a connection that is kept.
        keep_alive as "keep_alive_seconds": Duration = Duration::from_secs(75), AtLeast(1);
        // A client that reads a kilobyte per second shows activity within a minute, despite the buffers of both
        // systems.
        /// Time in which a client must read a part of its reply.
        unread as "unread_seconds": Duration = Duration::from_mins(5), AtLeast(1);
    }
}
