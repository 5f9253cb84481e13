//! Scripted responses of the upstream, with their faults.

use std::time::Duration;

use serde_json::{Value, json};

/// A scripted response: status, header, body, timing and fault.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) parts: Vec<Vec<u8>>,
    pub(crate) framing: Framing,
    pub(crate) delay_before_head: Duration,
    pub(crate) delay_between_parts: Duration,
    pub(crate) delay_after_head: Duration,
    pub(crate) split_bytes: Option<usize>,
    pub(crate) fault: Option<(FaultAt, Fault)>,
}

/// The fault of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset (RST).
    Reset,
    /// The connection is closed normally (FIN), although the body is incomplete.
    Close,
    /// Nothing more is sent, and the connection stays open.
    Stall,
    /// The size of the next chunk is not a number. In a body with a `content-length`, the same bytes replace
    /// the rest.
    MalformedChunk,
}

/// When a fault occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultAt {
    /// Before the status line, which is never sent.
    Head,
    /// After this many bytes of the body, or at its end if it is shorter.
    Body(usize),
}

/// How the end of the body is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    UntilClose,
}

impl Answer {
    /// Creates a response with this status, content type and body.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            parts: vec![body.into()],
            framing: Framing::Length,
            delay_before_head: Duration::ZERO,
            delay_between_parts: Duration::ZERO,
            delay_after_head: Duration::ZERO,
            split_bytes: None,
            fault: None,
        }
    }

    /// Creates a response with a JSON body and a `content-length`.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// Creates a stream of server-sent events. Each frame includes its blank line and is sent as one chunk.
    pub fn sse<I>(frames: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let mut answer = Self::new(200, "text/event-stream; charset=utf-8", "");
        answer.parts = frames.into_iter().map(|frame| frame.into().into_bytes()).collect();
        answer.framing = Framing::Chunked;
        answer
    }

    /// Creates an HTML page like that of a proxy in front of the provider.
    pub fn html(status: u16) -> Self {
        let body = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>");
        Self::new(status, "text/html", body)
    }

    /// Creates a 401 error in OpenAI's format.
    pub fn unauthorized() -> Self {
        Self::error(401, "invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided")
    }

    /// Creates a 429 error with `retry-after` in seconds.
    pub fn rate_limited(retry_after: u32) -> Self {
        Self::error(429, "rate_limit_error", Some("rate_limit_exceeded"), "Rate limit reached")
            .header("retry-after", &retry_after.to_string())
    }

    /// Creates a 500 error in OpenAI's format.
    pub fn server_error() -> Self {
        Self::error(500, "server_error", None, "The server had an error while processing your request")
    }

    /// Creates an error response in OpenAI's format.
    pub fn error(status: u16, kind: &str, code: Option<&str>, message: &str) -> Self {
        let error = json!({ "message": message, "type": kind, "param": null, "code": code });
        Self::json(status, &json!({ "error": error }))
    }

    /// Creates a response without a status line. The fault occurs after the request was read.
    pub fn without_status(fault: Fault) -> Self {
        let mut answer = Self::new(200, "text/plain", "");
        answer.fault = Some((FaultAt::Head, fault));
        answer
    }

    /// Adds a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before the status line.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.delay_before_head = wait;
        self
    }

    /// Waits between the head and the body.
    #[must_use]
    pub fn wait_after_head(mut self, wait: Duration) -> Self {
        self.delay_after_head = wait;
        self
    }

    /// Waits before each part of the body: a frame, or a piece of a split body.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.delay_between_parts = pause;
        self
    }

    /// Sends the body in writes and chunks of this many bytes. 1 splits it at every byte.
    #[must_use]
    pub fn split(mut self, bytes: usize) -> Self {
        self.split_bytes = Some(bytes.max(1));
        self
    }

    /// Removes the content type field.
    #[must_use]
    pub fn without_type(mut self) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self
    }

    /// Sends the body in chunks, without a `content-length`.
    #[must_use]
    pub fn chunked(mut self) -> Self {
        self.framing = Framing::Chunked;
        self
    }

    /// Sends the body without a `content-length`, and closes the connection at its end, as old servers do.
    #[must_use]
    pub fn until_close(mut self) -> Self {
        self.framing = Framing::UntilClose;
        self
    }

    /// Causes a fault after this many bytes of the body, not counting chunk sizes. If the body is shorter,
    /// the fault occurs after its last byte, but before the mark of its end.
    #[must_use]
    pub fn fault(mut self, after: usize, fault: Fault) -> Self {
        self.fault = Some((FaultAt::Body(after), fault));
        self
    }

    /// Resets the connection after this many bytes of the body.
    #[must_use]
    pub fn reset_after(self, bytes: usize) -> Self {
        self.fault(bytes, Fault::Reset)
    }

    /// Closes the connection after this many bytes of the body.
    #[must_use]
    pub fn close_after(self, bytes: usize) -> Self {
        self.fault(bytes, Fault::Close)
    }

    /// Stops sending after this many bytes of the body.
    #[must_use]
    pub fn stall_after(self, bytes: usize) -> Self {
        self.fault(bytes, Fault::Stall)
    }

    /// Omits the frame `data: [DONE]`. The HTTP body still ends normally.
    #[must_use]
    pub fn without_done(mut self) -> Self {
        self.parts.retain(|part| part.as_slice() != crate::chat::DONE.as_bytes());
        self
    }

    /// Keeps only the first `parts` parts (frames) of the body. The HTTP body still ends normally.
    #[must_use]
    pub fn only_first(mut self, parts: usize) -> Self {
        self.parts.truncate(parts);
        self
    }

    /// Appends a frame or another part to the body.
    #[must_use]
    pub fn add_part(mut self, part: impl Into<Vec<u8>>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// Returns the complete body, as it is sent without a fault.
    pub fn body(&self) -> Vec<u8> {
        self.parts.concat()
    }
}
