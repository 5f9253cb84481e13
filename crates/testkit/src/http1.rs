//! A strict reader for the part of HTTP/1.1 that the tests need.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// A connection with its read buffer.
pub(crate) struct BufferedConnection {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// A start line and its header fields, unchanged.
pub(crate) struct MessageHead {
    pub(crate) first_line: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// How the end of a body is found, and how many bytes remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(usize),
    Chunked,
    UntilClose,
    Finished,
}

impl MessageHead {
    /// Returns the first field with this name, in upper or lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// Returns the framing of the body according to the header fields, or `otherwise` if they do not
    /// determine it.
    pub(crate) fn body(&self, otherwise: BodyFraming) -> BodyFraming {
        if self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return BodyFraming::Chunked;
        }
        match self.header("content-length").map(str::parse) {
            Some(Ok(length)) => BodyFraming::Length(length),
            Some(Err(error)) => panic!("content-length: {error}"),
            None => otherwise,
        }
    }
}

/// Returns the first field with this name, in upper or lower case.
pub(crate) fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

impl BufferedConnection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        Self { stream, buffer: Vec::new() }
    }

    /// Reads up to the empty line. Returns `None` if the peer closed the connection before the first byte.
    pub(crate) async fn read_head(&mut self) -> io::Result<Option<MessageHead>> {
        loop {
            if let Some(end) = position(&self.buffer, b"\r\n\r\n") {
                let text: Vec<u8> = self.buffer.drain(..end + 4).collect();
                let text = String::from_utf8(text).expect("a head is UTF-8");
                let mut lines = text.trim_end().split("\r\n");
                let first_line = lines.next().unwrap_or_default().to_owned();
                let headers = lines
                    .map(|line| {
                        let (name, value) = line.split_once(':').expect("a field has a colon");
                        (name.to_owned(), value.trim().to_owned())
                    })
                    .collect();
                return Ok(Some(MessageHead { first_line, headers }));
            }
            if self.read_more().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(cut_error("a head")) };
            }
        }
    }

    /// Reads the next part of a body as it arrives. Returns `None` at the announced end, and an error if the
    /// body is cut.
    pub(crate) async fn read_part(&mut self, body: &mut BodyFraming) -> io::Result<Option<Vec<u8>>> {
        match *body {
            BodyFraming::Finished | BodyFraming::Length(0) => {
                *body = BodyFraming::Finished;
                Ok(None)
            }
            BodyFraming::Length(left) => {
                if self.buffer.is_empty() && self.read_more().await? == 0 {
                    return Err(cut_error("a body with a length"));
                }
                let taken = left.min(self.buffer.len());
                *body = BodyFraming::Length(left - taken);
                Ok(Some(self.buffer.drain(..taken).collect()))
            }
            BodyFraming::UntilClose => {
                if self.buffer.is_empty() && self.read_more().await? == 0 {
                    *body = BodyFraming::Finished;
                    return Ok(None);
                }
                Ok(Some(std::mem::take(&mut self.buffer)))
            }
            BodyFraming::Chunked => self.read_chunk(body).await,
        }
    }

    async fn read_chunk(&mut self, body: &mut BodyFraming) -> io::Result<Option<Vec<u8>>> {
        let line = self.read_line().await?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("`{line}` is no chunk size")))?;
        if size == 0 {
            while !self.read_line().await?.is_empty() {}
            *body = BodyFraming::Finished;
            return Ok(None);
        }
        while self.buffer.len() < size + 2 {
            if self.read_more().await? == 0 {
                return Err(cut_error("a chunk"));
            }
        }
        let mut chunk: Vec<u8> = self.buffer.drain(..size + 2).collect();
        if chunk.split_off(size) != b"\r\n" {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk is longer than its size"));
        }
        Ok(Some(chunk))
    }

    async fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = position(&self.buffer, b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).take(end).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if self.read_more().await? == 0 {
                return Err(cut_error("a chunked body"));
            }
        }
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.buffer).await
    }
}

fn cut_error(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the connection closed within {what}"))
}

fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
