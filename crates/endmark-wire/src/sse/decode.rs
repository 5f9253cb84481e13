//! Splits the bytes of a stream into frames. The result does not depend on chunking.

use std::collections::VecDeque;

use super::Frame;

/// Buffer capacity in bytes that is kept for the next frames. Most frames fit. Larger bursts are rare, and
/// streams are idle most of the time.
const KEPT_BUFFER_BYTES: usize = 2 * 1024;

/// Error of a frame that exceeds the decoder's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of the event stream is longer than {limit} bytes")]
pub struct FrameTooLong {
    /// The limit, in bytes.
    pub limit: usize,
}

/// What remains when a stream ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    /// The stream ended after a complete frame.
    Clean,
    /// The stream ended with the carriage return that ends this frame. The decoder had held the frame back,
    /// because a line feed could have followed.
    Frame(Frame),
    /// The stream ended inside a frame. The standard says to ignore such a frame, but [`Frame::read`] can
    /// still read it.
    Residue(Vec<u8>),
}

/// Splits a stream into frames (WHATWG HTML, 9.2.6) without I/O, up to a limit in bytes.
///
/// The frames do not depend on chunking. Their [`Frame::raw`] and the [`Tail`] together equal the input.
/// Lines end with LF, CRLF or CR. A byte order mark at the beginning is skipped.
///
/// ```
/// use endmark_wire::sse::{Decoder, Tail};
/// let mut decoder = Decoder::new(1024);
/// decoder.push(b"data: {\"a\"")?;
/// assert_eq!(decoder.next_frame(), None);
/// decoder.push(b":1}\n\n: ping\n\nda")?;
/// assert_eq!(decoder.next_frame().and_then(|frame| frame.data).as_deref(), Some("{\"a\":1}"));
/// assert_eq!(decoder.next_frame().map(|frame| frame.raw).as_deref(), Some(&b": ping\n\n"[..]));
/// assert_eq!(decoder.finish(), Tail::Residue(b"da".to_vec()));
/// # Ok::<(), endmark_wire::sse::FrameTooLong>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    limit: usize,
    buffer: Vec<u8>,
    /// The number of leading bytes of `buffer` that were already returned as frames.
    taken_bytes: usize,
    /// The ends in `buffer` of the finished frames.
    frame_ends: VecDeque<usize>,
    /// The number of leading bytes of `buffer` that were scanned.
    scanned_bytes: usize,
    /// The start of the line that contains the position `scanned`.
    line_start: usize,
    line_end_state: LineEndState,
    /// Whether the next frame is the first, which may begin with a byte order mark.
    first_frame: bool,
    too_long: bool,
}

/// The meaning of the last scanned byte for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEndState {
    /// It does not affect the next byte.
    Other,
    /// A carriage return that ends a line. If a line feed follows, it belongs to the same line end.
    Return,
    /// A carriage return that ends a blank line, and therefore a frame.
    ReturnOfBlankLine,
}

impl Decoder {
    /// Creates a decoder for frames of at most this many bytes, including their blank line.
    pub fn new(max_frame_bytes: usize) -> Self {
        Self {
            limit: max_frame_bytes,
            buffer: Vec::new(),
            taken_bytes: 0,
            frame_ends: VecDeque::new(),
            scanned_bytes: 0,
            line_start: 0,
            line_end_state: LineEndState::Other,
            first_frame: true,
            too_long: false,
        }
    }

    /// Adds the next bytes of the stream.
    ///
    /// # Errors
    /// [`FrameTooLong`] once a frame exceeds the limit. The frames before it can still be read with
    /// [`Decoder::next_frame`]. [`Decoder::finish`] returns all later bytes up to the end of `bytes`, so that
    /// the caller can forward the stream without parsing it. Later calls keep no bytes and return the error
    /// again.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), FrameTooLong> {
        if !self.too_long {
            self.buffer.extend_from_slice(bytes);
            self.scan();
        }
        if self.too_long { Err(FrameTooLong { limit: self.limit }) } else { Ok(()) }
    }

    /// Returns the next finished frame, in order, or `None` if more bytes are needed.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let end = self.frame_ends.pop_front()?;
        let raw = self.buffer.get(self.taken_bytes..end).unwrap_or_default().to_vec();
        self.taken_bytes = end;
        if self.frame_ends.is_empty() {
            // Only the beginning of one frame remains, so moving it is cheap. Returned frames do not stay in
            // memory.
            self.buffer.drain(..end);
            self.scanned_bytes -= end;
            self.line_start -= end;
            self.taken_bytes = 0;
            if self.buffer.capacity() > KEPT_BUFFER_BYTES {
                self.buffer.shrink_to(KEPT_BUFFER_BYTES);
            }
        }
        Some(Frame::parse(raw, std::mem::replace(&mut self.first_frame, false)))
    }

    /// Returns the number of bytes of finished frames that were not returned yet.
    pub fn finished_bytes(&self) -> usize {
        self.frame_start() - self.taken_bytes
    }

    /// Returns the number of bytes in the buffer.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len() - self.taken_bytes
    }

    /// Ends the stream. The residue includes finished frames that were not returned.
    pub fn finish(self) -> Tail {
        let raw = self.buffer.get(self.taken_bytes..).unwrap_or_default().to_vec();
        if raw.is_empty() {
            Tail::Clean
        } else if self.line_end_state == LineEndState::ReturnOfBlankLine
            && self.frame_ends.is_empty()
            && !self.too_long
        {
            Tail::Frame(Frame::parse(raw, self.first_frame))
        } else {
            Tail::Residue(raw)
        }
    }

    fn scan(&mut self) {
        while let Some(rest) =
            self.buffer.get(self.scanned_bytes..).filter(|rest| !rest.is_empty() && !self.too_long)
        {
            if self.line_end_state != LineEndState::Other {
                self.scanned_bytes += usize::from(rest.first() == Some(&b'\n'));
                let before = std::mem::replace(&mut self.line_end_state, LineEndState::Other);
                self.end_line(before == LineEndState::ReturnOfBlankLine);
                continue;
            }
            let Some(length) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.scanned_bytes = self.buffer.len();
                break;
            };
            let at = self.scanned_bytes + length;
            let blank = at == self.line_start;
            self.scanned_bytes = at + 1;
            if self.buffer.get(at) == Some(&b'\r') {
                self.line_end_state =
                    if blank { LineEndState::ReturnOfBlankLine } else { LineEndState::Return };
            } else {
                self.end_line(blank);
            }
        }
        self.too_long |= self.buffer.len() - self.frame_start() > self.limit;
    }

    fn end_line(&mut self, blank: bool) {
        self.line_start = self.scanned_bytes;
        if blank {
            self.too_long |= self.scanned_bytes - self.frame_start() > self.limit;
            if !self.too_long {
                self.frame_ends.push_back(self.scanned_bytes);
            }
        }
    }

    fn frame_start(&self) -> usize {
        self.frame_ends.back().copied().unwrap_or(self.taken_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_for_simultaneous_frames_is_released() -> Result<(), FrameTooLong> {
        let mut decoder = Decoder::new(1 << 20);
        let frame = [b"data: ".as_slice(), &[b'x'; 3_000], b"\n\n"].concat();
        decoder.push(&frame.repeat(10))?;
        decoder.push(b"data: rest")?;
        assert_eq!(decoder.finished_bytes(), 10 * frame.len());
        for left in (0..10).rev() {
            assert!(decoder.next_frame().is_some_and(|taken| taken.raw == frame));
            assert_eq!(decoder.finished_bytes(), left * frame.len());
        }
        assert!(decoder.buffer.capacity() <= KEPT_BUFFER_BYTES, "{}", decoder.buffer.capacity());
        assert_eq!(decoder.finish(), Tail::Residue(b"data: rest".to_vec()));
        Ok(())
    }
}
