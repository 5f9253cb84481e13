//! Limits in bytes, counts and time. Each has a reason; none is "large enough".

use std::time::Duration;

use endmark_setting::{AtLeast, settings};

settings! {
    /// Limits in bytes, counts and time.
    #[derive(Debug, Clone)]
    pub struct Limits {
        // Agents send long credentials and tracing headers, not more.
        /// Largest request header.
        header_bytes: usize = 32 * 1024, AtLeast(1024);
        // A full context window with images in base64.
        /// Largest request body.
        body_bytes: usize = 64 * 1024 * 1024, AtLeast(1024);
        /// Largest reply that can be recovered; a longer one is passed on unchanged.
        reply_bytes: usize = 16 * 1024 * 1024, AtLeast(1024);
        /// Time for a client to send its header.
        header as "header_seconds": Duration = Duration::from_secs(10), AtLeast(1);
        // Models think for minutes before a reply that is not streamed.
        /// Time for an upstream to begin its response.
        first_byte as "first_byte_seconds": Duration = Duration::from_mins(10), AtLeast(1);
        // A long prompt takes seconds.
        /// Time for an upstream with a fallback to begin a stream.
        first_token as "first_token_seconds": Duration = Duration::from_mins(1), AtLeast(1);
        /// Silence in a response after which it counts as stalled.
        idle as "idle_seconds": Duration = Duration::from_mins(2), AtLeast(1);
        /// Time for a whole request.
        total as "total_seconds": Duration = Duration::from_hours(1), AtLeast(1);
        /// Silence towards a client after which a comment is sent.
        heartbeat as "heartbeat_seconds": Duration = Duration::from_secs(10), AtLeast(1);
        // All waits for the rest of one reply together.
        /// Time for an upstream that broke off to return before a resume attempt is given up.
        reconnect as "reconnect_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Time for replies in progress to end after a request to stop.
        drain as "drain_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Client connections at the same time.
        connections: usize = 4_096, AtLeast(1);
        // Agents send about thirty.
        /// Most fields in a request header.
        header_fields: usize = 100, AtLeast(1);
        // The largest file that providers accept is half of it.
        /// Largest request body on a path that is only passed on.
        upload_bytes: u64 = 1024 * 1024 * 1024, AtLeast(1024);
        // A fast client never waits for the next event. A thousand slow ones slow their upstreams without filling
        // memory.
        /// Bytes of a stream that wait for a client that does not read.
        stream_bytes: usize = 4 * 1024, AtLeast(1024);
        // Beyond it requests must be repeated, and replies are passed on without recovery.
        /// Bodies and replies held in memory for all requests together.
        held_bytes: usize = 512 * 1024 * 1024, AtLeast(1024);
        // Each has one upstream call at a time, from the end of its body on.
        /// Requests served at the same time; further ones wait.
        requests: usize = 1_024, AtLeast(1);
        /// Requests that wait to be served; further ones are answered 429.
        queue: usize = 1_024, AtLeast(0);
        // As long as clients wait before they retry by themselves.
        /// Time for a request to wait to be served.
        queue_wait as "queue_seconds": Duration = Duration::from_secs(30), AtLeast(0);
        /// Time for a client to send its body, in addition to a second for every kilobyte.
        body as "body_seconds": Duration = Duration::from_secs(30), AtLeast(1);
        // Most clients give up an idle connection within a minute, so that no request meets one that is being closed.
        /// Time between two requests on a connection that is kept.
        keep_alive as "keep_alive_seconds": Duration = Duration::from_secs(75), AtLeast(1);
        // A client that reads a kilobyte a second shows activity within a minute, through the buffers of both
        // systems.
        /// Time in which a client must read a part of its reply.
        unread as "unread_seconds": Duration = Duration::from_mins(5), AtLeast(1);
    }
}
