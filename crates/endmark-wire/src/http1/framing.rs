//! Splits a connection's bytes into requests.

use memchr::memchr;

use super::chunks::ChunkReader;
use super::fault::Fault;
use super::head::{BodyLength, Head, HeadLimits};

/// The first bytes that an HTTP/2 client sends.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// The first byte of a TLS handshake. No method begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// The part of a request that a connection is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// Before the first byte of a request.
    Between,
    /// In a head.
    Head,
    /// In a body.
    Body,
}

/// How many bytes of a connection may pass to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassableBytes {
    /// The number of leading bytes to drop. If it is not 0, the other fields are 0 and false: call `pass`
    /// again with the remaining bytes.
    /// remaining bytes.
    pub skipped: usize,
    /// The number of leading bytes that may pass.
    pub bytes: usize,
    /// Whether the passed bytes are a complete head, which begins a request.
    pub begins_request: bool,
}

/// Splits one client's connection into requests.
///
/// It stores no bytes. The caller repeats all bytes that have not passed yet, and gets the number that may
/// pass. A head passes only when it is complete and valid. A body passes as it arrives.
///
/// ```
/// use endmark_wire::http1::{Framing, HeadLimits, RequestPart};
/// let mut framing = Framing::new(HeadLimits { bytes: 1024, fields: 10 });
/// let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n";
/// assert_eq!(framing.pass(&head[..20])?.bytes, 0);
/// assert_eq!(framing.pass(head)?.bytes, head.len());
/// assert_eq!((framing.pass(b"{}GET")?.bytes, framing.part()), (2, RequestPart::Between));
/// # Ok::<(), endmark_wire::http1::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing {
    bounds: HeadLimits,
    state: FramingState,
    /// Whether an empty line was dropped before the next request.
    has_skipped_empty_line: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FramingState {
    /// The number of bytes that were already searched for the end of the head.
    Head {
        seen: usize,
    },
    Sized {
        left: u64,
    },
    Chunked(ChunkReader),
}

impl Framing {
    /// Creates the state of a connection before its first byte.
    pub fn new(bounds: HeadLimits) -> Self {
        Self { bounds, state: FramingState::Head { seen: 0 }, has_skipped_empty_line: false }
    }

    /// Returns the part of a request that the connection is in.
    pub fn part(&self) -> RequestPart {
        match &self.state {
            FramingState::Head { seen: 0 } => RequestPart::Between,
            FramingState::Head { .. } => RequestPart::Head,
            FramingState::Sized { .. } | FramingState::Chunked(_) => RequestPart::Body,
        }
    }

    /// Reads the bytes that have not passed yet and returns how many may pass. No bytes pass while a head is
    /// incomplete. A head and its body pass in separate calls.
    ///
    /// # Errors
    /// The [`Fault`] because of which the rest of this connection cannot be used.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<PassableBytes, Fault> {
        let none = PassableBytes { skipped: 0, bytes: 0, begins_request: false };
        if bytes.is_empty() {
            return Ok(none);
        }
        match &mut self.state {
            FramingState::Head { seen } => {
                if let Some(skipped) = empty_line(bytes).filter(|_| !self.has_skipped_empty_line) {
                    self.has_skipped_empty_line = true;
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
                self.has_skipped_empty_line = false;
                self.state = match head.body {
                    BodyLength::Bytes(0) => FramingState::Head { seen: 0 },
                    BodyLength::Bytes(left) => FramingState::Sized { left },
                    BodyLength::Chunked => FramingState::Chunked(ChunkReader::default()),
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
                if chunks.is_complete() {
                    self.state = FramingState::Head { seen: 0 };
                }
                Ok(PassableBytes { bytes: taken, ..none })
            }
        }
    }
}

/// Returns the length of an empty line at the beginning. Such a line is dropped before a request line, as RFC
/// 9112, section 2.2 recommends, because some clients end a body with an empty line.
fn empty_line(bytes: &[u8]) -> Option<usize> {
    [&b"\r\n"[..], b"\n"].into_iter().find(|line| bytes.starts_with(line)).map(<[u8]>::len)
}

/// Returns the end of a head, which is after its first empty line. Returns an error as soon as the bytes
/// cannot begin a head. A bare line feed is also an error, because some parsers treat it as the end of the
/// head.
fn find_head_end(bytes: &[u8], searched: usize) -> Result<Option<usize>, Fault> {
    if bytes[0] == TLS_HANDSHAKE {
        return Err(Fault::Tls);
    }
    if bytes.starts_with(HTTP2_PREFACE) {
        return Err(Fault::Http2);
    }
    let mut from = searched;
    while let Some(at) = memchr(b'\n', &bytes[from..]) {
        let end = from + at;
        if end == 0 || bytes[end - 1] != b'\r' {
            return Err(Fault::BareLineFeed);
        }
        if end >= 3 && bytes[end - 2] == b'\n' {
            return Ok(Some(end + 1));
        }
        if end == 1 {
            // This is a second empty line before the request line. RFC 9112 recommends to tolerate only one,
            // and attacks use more.
            return Err(Fault::RequestLine);
        }
        from = end + 1;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: HeadLimits = HeadLimits { bytes: 200, fields: 5 };
    const HEAD: &[u8] = b"POST /v1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";

    /// Returns the start of each request on a connection whose bytes arrive in pieces of `piece` bytes.
    fn request_starts(bytes: &[u8], piece: usize) -> Result<Vec<usize>, Fault> {
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
            assert_eq!(request_starts(&requests, piece), Ok(expected.clone()), "in pieces of {piece}");
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
                    request_starts(&requests, piece),
                    Ok(vec![first, second, second + one.len()]),
                    "{empty:?} in pieces of {piece}"
                );
            }
            let mut framing = Framing::new(BOUNDS);
            framing.pass(empty).unwrap();
            assert_eq!(framing.part(), RequestPart::Between);
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
            assert_eq!(request_starts(bytes, 1), Err(fault.clone()));
            assert_eq!(request_starts(bytes, bytes.len()), Err(fault));
        }
        let smuggled = [HEAD, b"0\r\n\r\nGET / HTTP/1.1\r\nhost : b\r\n\r\n"].concat();
        assert_eq!(request_starts(&smuggled, 1), Err(Fault::FieldName));
    }

    #[test]
    fn the_parser_reports_its_position() {
        let mut framing = Framing::new(BOUNDS);
        assert_eq!(framing.part(), RequestPart::Between);
        framing.pass(&HEAD[..5]).unwrap();
        assert_eq!(framing.part(), RequestPart::Head);
        framing.pass(HEAD).unwrap();
        assert_eq!(framing.part(), RequestPart::Body);
        framing.pass(b"0\r\n\r\n").unwrap();
        assert_eq!(framing.part(), RequestPart::Between);
    }
}
