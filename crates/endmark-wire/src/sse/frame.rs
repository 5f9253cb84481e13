//! One frame of an event stream: its original bytes and its fields.

use super::encode::append_data;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One frame: everything up to and including a blank line.
///
/// ```
/// use endmark_wire::sse::Frame;
/// let frame = Frame::read(b"event: delta\r\ndata:one\r\ndata: two\r\n\r\n".to_vec());
/// assert_eq!(frame.event.as_deref(), Some("delta"));
/// assert_eq!(frame.data.as_deref(), Some("one\ntwo"));
/// assert_eq!(frame.with_data(b"{}"), b"event: delta\r\ndata: {}\r\n\r\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The original bytes, including the blank line.
    pub raw: Vec<u8>,
    /// The event's name, or `None` if the frame names no event.
    pub event: Option<String>,
    /// The data lines, joined by line feeds. `None` if the frame has no data, for example a comment.
    pub data: Option<String>,
    /// The event's id.
    pub id: Option<String>,
    /// The time to wait before reconnecting, in milliseconds.
    pub retry: Option<u64>,
    /// Whether the fields above contain U+FFFD instead of invalid UTF-8. `raw` has the original bytes.
    pub damaged: bool,
    /// The length of the byte order mark at the start of `raw`, in bytes.
    mark: usize,
}

impl Frame {
    /// Parses the bytes of one frame. A missing blank line is allowed.
    pub fn read(raw: Vec<u8>) -> Self {
        Self::parse(raw, false)
    }

    /// Parses a frame. Skips a byte order mark if the frame begins the stream.
    pub(super) fn parse(raw: Vec<u8>, beginning: bool) -> Self {
        let mark = if beginning && raw.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut frame =
            Self { raw: Vec::new(), event: None, data: None, id: None, retry: None, damaged: false, mark };
        for line in lines(raw.get(mark..).unwrap_or_default()) {
            frame.read_line(line.content);
        }
        frame.raw = raw;
        frame
    }

    /// Returns the frame with other data. The byte order mark, the other lines and the line endings do not change.
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.raw.len() + data.len());
        let mut written = false;
        let (mark, text) = self.raw.split_at_checked(self.mark).unwrap_or((&[], &self.raw));
        bytes.extend_from_slice(mark);
        for line in lines(text) {
            if field(line.content).0 != b"data" {
                // A data line between a CR and this LF was removed. Without it, the two would become one line
                // ending.
                if line.content.is_empty() && line.end == b"\n" && bytes.ends_with(b"\r") {
                    bytes.push(b'\n');
                }
                bytes.extend_from_slice(line.content);
                bytes.extend_from_slice(line.end);
            } else if !written {
                append_data(&mut bytes, data, if line.end.is_empty() { b"\n" } else { line.end });
                written = true;
            }
        }
        bytes
    }

    fn read_line(&mut self, content: &[u8]) {
        let (name, value) = field(content);
        match name {
            b"data" => {
                let value = self.decode_text(value);
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&value);
                    }
                    None => self.data = Some(value),
                }
            }
            b"event" => self.event = Some(self.decode_text(value)),
            b"id" if !value.contains(&0) => self.id = Some(self.decode_text(value)),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = self.decode_text(value).parse().ok();
            }
            _ => {}
        }
    }

    fn decode_text(&mut self, value: &[u8]) -> String {
        if let Ok(text) = std::str::from_utf8(value) {
            return text.to_owned();
        }
        self.damaged = true;
        value.utf8_chunks().fold(String::new(), |mut text, chunk| {
            text.push_str(chunk.valid());
            text.push_str(if chunk.invalid().is_empty() { "" } else { "\u{FFFD}" });
            text
        })
    }
}

/// Splits a line into name and value at its first colon. One space after the colon is removed.
fn field(content: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', content) {
        Some(colon) => {
            let value = content.get(colon + 1..).unwrap_or_default();
            (content.get(..colon).unwrap_or_default(), value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (content, b""),
    }
}

struct Line<'a> {
    content: &'a [u8],
    /// The line ending: LF, CRLF or CR. Empty if the bytes end within the line.
    end: &'a [u8],
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (content, after) = rest.split_at(length);
        let end = if after.starts_with(b"\r\n") { 2 } else { after.len().min(1) };
        let (end, after) = after.split_at(end);
        rest = after;
        Some(Line { content, end })
    })
}
