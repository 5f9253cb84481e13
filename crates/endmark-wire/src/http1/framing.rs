//! Splits a connection's bytes into requests.

use memchr::memchr;

use super::chunks::Chunks;
use super::fault::Fault;
use super::head::{BodyLength, Bounds, Head};

/// The first bytes of an HTTP/2 client.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// The first byte of a TLS handshake. No method begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// The position of a connection within a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// Before the first byte of a request.
    Between,
    /// In a head.
    Head,
    /// In a body.
    Body,
}

/// How many bytes of a connection may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassableBytes {
    /// Number of leading bytes to drop. If it is not 0, the other fields are 0 and false: call `pass` again with the
    /// remaining bytes.
    pub skipped: usize,
    /// The number of leading bytes that may pass.
    pub bytes: usize,
    /// Whether they are a complete head, which begins a request.
    pub begins_request: bool,
}

/// Splits one client's connection into requests.
///
/// It stores no bytes. The caller passes all bytes that have not passed yet, and gets the number that may pass. A
/// head passes only when it is complete and valid. A body passes as it arrives.
///
/// ```
/// use endmark_wire::http1::{Bounds, Framing, RequestPart};
/// let mut framing = Framing::new(Bounds { bytes: 1024, fields: 10 });
/// let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n";
/// assert_eq!(framing.pass(&head[..20])?.bytes, 0);
/// assert_eq!(framing.pass(head)?.bytes, head.len());
/// assert_eq!((framing.pass(b"{}GET")?.bytes, framing.place()), (2, RequestPart::Between));
/// # Ok::<(), endmark_wire::http1::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing {
    bounds: Bounds,
    state: FramingState,
    /// Whether an empty line was dropped before the next request.
    is_past_empty_line: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FramingState {
    /// How many bytes of a head were searched for its end.
    Head {
        seen: usize,
    },
    Sized {
        left: u64,
    },
    Chunked(Chunks),
}

impl Framing {
    /// Creates the state of a connection before its first byte.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, state: FramingState::Head { seen: 0 }, is_past_empty_line: false }
    }

    /// Returns the connection's position.
    pub fn place(&self) -> RequestPart {
        match &self.state {
            FramingState::Head { seen: 0 } => RequestPart::Between,
            FramingState::Head { .. } => RequestPart::Head,
            FramingState::Sized { .. } | FramingState::Chunked(_) => RequestPart::Body,
        }
    }

    /// Reads the bytes that have not passed yet, and returns how many may pass. No bytes pass while a head is
    /// incomplete. A head and its body pass in separate calls.
    ///
    /// # Errors
    /// The [`Fault`] that makes the rest of this connection unusable.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<PassableBytes, Fault> {
        let none = PassableBytes { skipped: 0, bytes: 0, begins_request: false };
        if bytes.is_empty() {
            return Ok(none);
        }
        match &mut self.state {
            FramingState::Head { seen } => {
                if let Some(skipped) = empty_line(bytes).filter(|_| !self.is_past_empty_line) {
                    self.is_past_empty_line = true;
                    *seen = 0;
                    return Ok(PassableBytes { skipped, ..none });
                }
                let Some(end) = find_head_end(bytes, *seen)? else {
                    *seen = bytes.len();
                    if *seen > self.bounds.bytes {
                        return Err(Fault::HeadTooLong(self.bounds.bytes));
                    }
                    return Ok(none);
                };
                let head = Head::read(&bytes[..end], self.bounds)?;
                self.is_past_empty_line = false;
                self.state = match head.body {
                    BodyLength::Bytes(0) => FramingState::Head { seen: 0 },
                    BodyLength::Bytes(left) => FramingState::Sized { left },
                    BodyLength::Chunked => FramingState::Chunked(Chunks::default()),
                };
                Ok(PassableBytes { bytes: end, begins_request: true, ..none })
            }
            FramingState::Sized { left } => {
                let available = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                let taken = available.min(*left);
                *left -= taken;
                if *left == 0 {
                    self.state = FramingState::Head { seen: 0 };
                }
                Ok(PassableBytes { bytes: usize::try_from(taken).unwrap_or(bytes.len()), ..none })
            }
            FramingState::Chunked(chunks) => {
                let taken = chunks.read(bytes)?;
                if chunks.is_over() {
                    self.state = FramingState::Head { seen: 0 };
                }
                Ok(PassableBytes { bytes: taken, ..none })
            }
        }
    }
}

/// Returns the length of an empty line at the beginning. It is dropped before a request line, as RFC 9112, section
/// 2.2 recommends, because some clients end a body with an empty line.
fn empty_line(bytes: &[u8]) -> Option<usize> {
    [&b"\r\n"[..], b"\n"].into_iter().find(|line| bytes.starts_with(line)).map(<[u8]>::len)
}

/// Returns the end of a head, which is after its first empty line. Bytes that cannot begin a head are an immediate
/// error. So is a bare line feed, because some parsers treat it as the end of the head.
fn find_head_end(bytes: &[u8], seen: usize) -> Result<Option<usize>, Fault> {
    if bytes[0] == TLS_HANDSHAKE {
        return Err(Fault::Tls);
    }
    if bytes.starts_with(HTTP2_PREFACE) {
        return Err(Fault::Http2);
    }
    let mut from = seen;
    while let Some(at) = memchr(b'\n', &bytes[from..]) {
        let end = from + at;
        if end == 0 || bytes[end - 1] != b'\r' {
            return Err(Fault::BareLineFeed);
        }
        if end >= 3 && bytes[end - 2] == b'\n' {
            return Ok(Some(end + 1));
        }
        if end == 1 {
            // This is a second empty line before the request line. RFC 9112 recommends tolerance for one only, and
            // attacks use more.
            return Err(Fault::RequestLine);
        }
        from = end + 1;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { bytes: 200, fields: 5 };
    const HEAD: &[u8] = b"POST /v1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";

    /// Returns the start of each request of a connection, if the bytes arrive in pieces of `piece` bytes.
    fn begins(bytes: &[u8], piece: usize) -> Result<Vec<usize>, Fault> {
        let mut framing = Framing::new(BOUNDS);
        let (mut passed, mut begins) = (0, Vec::new());
        let mut shown = 0;
        while shown < bytes.len() {
            shown = (shown + piece).min(bytes.len());
            loop {
                let step = framing.pass(&bytes[passed..shown])?;
                if step.begins_request {
                    begins.push(passed);
                }
                passed += step.skipped + step.bytes;
                if step.skipped + step.bytes == 0 {
                    break;
                }
            }
        }
        Ok(begins)
    }

    #[test]
    fn pipelined_requests_are_framed_in_any_chunking() {
        let requests = [HEAD, b"3\r\nabc\r\n0\r\n\r\n", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", HEAD].concat();
        let expected = vec![0, HEAD.len() + 13, HEAD.len() + 13 + 27];
        for piece in 1..=requests.len() {
            assert_eq!(begins(&requests, piece), Ok(expected.clone()), "in pieces of {piece}");
        }
    }

    #[test]
    fn one_empty_line_before_a_request_is_skipped() {
        for empty in [&b"\r\n"[..], b"\n"] {
            let one = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
            let requests = [empty, one, empty, one, one].concat();
            let (first, second) = (empty.len(), 2 * empty.len() + one.len());
            for piece in 1..=requests.len() {
                assert_eq!(
                    begins(&requests, piece),
                    Ok(vec![first, second, second + one.len()]),
                    "{empty:?} in pieces of {piece}"
                );
            }
            let mut framing = Framing::new(BOUNDS);
            framing.pass(empty).unwrap();
            assert_eq!(framing.place(), RequestPart::Between);
        }
    }

    #[test]
    fn a_fault_is_reported_as_soon_as_it_is_certain() {
        for (bytes, fault) in [
            (&b"\x16\x03\x01"[..], Fault::Tls),
            (b"PRI * HTTP/2.0\r\n\r\n", Fault::Http2),
            (b"GET / HTTP/1.1\n", Fault::BareLineFeed),
            (b"\r\n\r\n", Fault::RequestLine),
            (b"\n\n", Fault::BareLineFeed),
            (b"\r\nGET / HTTP/1.1\n", Fault::BareLineFeed),
            (&[b'a'; 201], Fault::HeadTooLong(200)),
        ] {
            assert_eq!(begins(bytes, 1), Err(fault.clone()));
            assert_eq!(begins(bytes, bytes.len()), Err(fault));
        }
        let smuggled = [HEAD, b"0\r\n\r\nGET / HTTP/1.1\r\nhost : b\r\n\r\n"].concat();
        assert_eq!(begins(&smuggled, 1), Err(Fault::FieldName));
    }

    #[test]
    fn the_parser_reports_its_position() {
        let mut framing = Framing::new(BOUNDS);
        assert_eq!(framing.place(), RequestPart::Between);
        framing.pass(&HEAD[..5]).unwrap();
        assert_eq!(framing.place(), RequestPart::Head);
        framing.pass(HEAD).unwrap();
        assert_eq!(framing.place(), RequestPart::Body);
        framing.pass(b"0\r\n\r\n").unwrap();
        assert_eq!(framing.place(), RequestPart::Between);
    }
}
