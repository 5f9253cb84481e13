//! Writes frames of an event stream.

/// Returns a frame with this JSON. Each line of the JSON becomes a line of data.
///
/// ```
/// assert_eq!(endmark_wire::sse::data_frame(b"{\"a\":1}"), b"data: {\"a\":1}\n\n");
/// ```
pub fn data_frame(json: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(json.len() + 8);
    append_data(&mut bytes, json, b"\n");
    bytes.push(b'\n');
    bytes
}

/// Returns a frame with this JSON and an event name. The name must not contain a line break.
///
/// ```
/// assert_eq!(endmark_wire::sse::event_frame("ping", b"{}"), b"event: ping\ndata: {}\n\n");
/// ```
pub fn event_frame(name: &str, json: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + json.len() + 16);
    bytes.extend_from_slice(b"event: ");
    bytes.extend(name.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    bytes.push(b'\n');
    append_data(&mut bytes, json, b"\n");
    bytes.push(b'\n');
    bytes
}

/// Returns a comment. Clients ignore it, but it keeps a silent connection open.
///
/// ```
/// assert_eq!(endmark_wire::sse::comment("endmark: resuming"), b": endmark: resuming\n\n");
/// ```
pub fn comment(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 4);
    for line in split_lines(text.as_bytes()) {
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
    bytes
}

/// Appends the data line by line, each line with this line ending.
pub(super) fn append_data(bytes: &mut Vec<u8>, data: &[u8], end: &[u8]) {
    for line in split_lines(data) {
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(end);
    }
}

/// Returns the lines of a text, split at every LF, CRLF or CR. Returns at least one line.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let length = memchr::memchr2(b'\n', b'\r', text);
        let (line, after) = text.split_at(length.unwrap_or(text.len()));
        let skip = if after.starts_with(b"\r\n") { 2 } else { 1 };
        rest = length.and(after.get(skip..));
        Some(line)
    })
}
