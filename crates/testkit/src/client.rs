//! An HTTP client that returns the bytes as they arrive, and reports how the body ended.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::TEST_TIMEOUT;
use crate::http1::{BodyFraming, BufferedConnection, find_header};

/// A request, which is sent over its own connection.
#[derive(Debug, Clone)]
pub struct Request {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A reply whose body has not been read yet. Dropping it disconnects the client.
pub struct OpenReply {
    /// The status code.
    pub status: u16,
    /// The header fields in the order in which they arrived.
    pub headers: Vec<(String, String)>,
    wire: BufferedConnection,
    body: BodyFraming,
    unread_bytes: Vec<u8>,
}

/// A reply that was read to its end. The end may be a cut.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The header fields in the order in which they arrived.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Vec<u8>,
    /// Whether the body reached the end that its header announced.
    pub is_complete: bool,
}

impl Request {
    /// Creates a request without a body.
    pub fn get(address: SocketAddr, path: &str) -> Self {
        Self::new("GET", address, path)
    }

    /// Creates a request to which a body can be added.
    pub fn post(address: SocketAddr, path: &str) -> Self {
        Self::new("POST", address, path)
    }

    /// Creates a request with this method.
    pub fn new(method: &str, address: SocketAddr, path: &str) -> Self {
        Self {
            address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Adds a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Sets the body, which may be invalid.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request and reads the head of the reply.
    pub async fn send(self) -> OpenReply {
        self.try_send().await.expect("the server answers")
    }

    /// Does the same as [`Request::send`], for a server that may not answer.
    pub async fn try_send(self) -> io::Result<OpenReply> {
        with_timeout(async {
            let mut wire = BufferedConnection::new(TcpStream::connect(self.address).await?);
            let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
            if find_header(&self.headers, "host").is_none() {
                head.extend(["host: ", &self.address.to_string(), "\r\n"]);
            }
            for (name, value) in &self.headers {
                head.extend([name, ": ", value, "\r\n"]);
            }
            if !self.body.is_empty() {
                head.extend(["content-length: ", &self.body.len().to_string(), "\r\n"]);
            }
            wire.stream.write_all((head + "\r\n").as_bytes()).await?;
            // A server may answer and close the connection (413) before it has read the whole body.
            let written = wire.stream.write_all(&self.body).await;
            let Some(head) = wire.read_head().await? else {
                return Err(written.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
            };
            let status = head.first_line.split(' ').nth(1).and_then(|word| word.parse().ok());
            let status = status.unwrap_or_else(|| panic!("`{}` is no status line", head.first_line));
            let has_no_body = self.method == "HEAD" || matches!(status, 204 | 304);
            let body = if has_no_body { BodyFraming::Finished } else { head.body(BodyFraming::UntilClose) };
            Ok(OpenReply { status, headers: head.headers, wire, body, unread_bytes: Vec::new() })
        })
        .await
    }
}

impl OpenReply {
    /// Returns the first field with this name, in upper or lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// Returns the next bytes of the body as they arrive. Returns `None` at the announced end, and an error
    /// if the body is cut.
    pub async fn next_bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        if !self.unread_bytes.is_empty() {
            return Ok(Some(std::mem::take(&mut self.unread_bytes)));
        }
        with_timeout(self.wire.read_part(&mut self.body)).await
    }

    /// Returns the next frame of an event stream, including its blank line. Returns `None` at the end.
    pub async fn next_frame(&mut self) -> io::Result<Option<String>> {
        let mut frame = Vec::new();
        while let Some(bytes) = self.next_bytes().await? {
            frame.extend_from_slice(&bytes);
            if let Some(end) = frame.windows(2).position(|window| window == b"\n\n") {
                self.unread_bytes = frame.split_off(end + 2);
                return Ok(Some(utf8_text(frame)));
            }
        }
        Ok((!frame.is_empty()).then(|| utf8_text(frame)))
    }

    /// Reads the rest of the body.
    pub async fn read(mut self) -> Reply {
        let mut body = Vec::new();
        let complete = loop {
            match self.next_bytes().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => break true,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => panic!("{error}"),
                Err(_) => break false,
            }
        };
        Reply { status: self.status, headers: self.headers, body, is_complete: complete }
    }

    /// Resets the connection (RST), so that the client disconnects without notice.
    pub fn reset(self) {
        self.wire.stream.set_zero_linger().expect("SO_LINGER can be set");
    }
}

impl Reply {
    /// Returns the first field with this name, in upper or lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        utf8_text(self.body.clone())
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Returns the data of each event of a stream, including `[DONE]`. Comments and empty events are skipped.
    pub fn events(&self) -> Vec<String> {
        let data_of = |frame: &str| {
            let lines = frame.lines().filter_map(|line| line.strip_prefix("data:"));
            lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
        };
        let text = self.text().replace("\r\n", "\n");
        text.split("\n\n").map(data_of).filter(|data| !data.is_empty()).collect()
    }

    /// Returns the JSON events of a stream, without `[DONE]`.
    pub fn json_events(&self) -> Vec<Value> {
        let events = self.events();
        let json = events.iter().filter(|data| *data != "[DONE]");
        json.map(|data| serde_json::from_str(data).expect("an event is JSON")).collect()
    }
}

fn utf8_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the body is UTF-8")
}

async fn with_timeout<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let too_late = || Err(io::Error::new(io::ErrorKind::TimedOut, "waited in vain for the server"));
    timeout(TEST_TIMEOUT, work).await.unwrap_or_else(|_| too_late())
}
