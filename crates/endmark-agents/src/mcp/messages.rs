//! Reads messages as lines of limited length. For a longer message, only the facts are kept that are needed
//! to answer it.

use std::io::{self, BufRead, Read};

use endmark_wire::json::{Kind, Value};

/// Maximum length in bytes of an id or a field name. Longer ones are not relevant.
const MAX_TOKEN_BYTES: usize = 1024;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadMessage {
    /// The end of the input.
    End,
    /// A message, including its line break.
    Message,
    /// A message above the limit. It was read to its end, but not kept.
    TooLong(MessageOutline),
}

/// The facts that are kept of a message above the limit.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct MessageOutline {
    /// The id of the message as it is written.
    pub(super) id: Option<String>,
    /// Whether it is a request or a notification. Otherwise it is a response.
    pub(super) has_method: bool,
}

/// Reads the next message into `line` if it has at most `limit` bytes.
pub(super) fn read_message(
    from: &mut impl BufRead,
    line: &mut Vec<u8>,
    limit: u64,
) -> io::Result<ReadMessage> {
    line.clear();
    let length = from.by_ref().take(limit).read_until(b'\n', line)?;
    if length == 0 {
        return Ok(ReadMessage::End);
    }
    if (length as u64) < limit || line.last() == Some(&b'\n') {
        return Ok(ReadMessage::Message);
    }
    let mut outline = OutlineParser::default();
    outline.push(line);
    // Free the memory of a long message.
    *line = Vec::new();
    loop {
        let chunk = match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            chunk => chunk?,
        };
        let end = memchr::memchr(b'\n', chunk);
        outline.push(&chunk[..end.unwrap_or(chunk.len())]);
        let read = end.map_or(chunk.len(), |end| end + 1);
        from.consume(read);
        if end.is_some() || read == 0 {
            return Ok(ReadMessage::TooLong(outline.outline));
        }
    }
}

/// Returns the outline of a message that is not valid JSON.
pub(super) fn outline_of(line: &[u8]) -> MessageOutline {
    let mut outlining = OutlineParser::default();
    outlining.push(line);
    outlining.outline
}

/// Finds the top-level fields of a message while its bytes arrive. Does not keep other values.
#[derive(Debug, Default)]
struct OutlineParser {
    outline: MessageOutline,
    depth: u64,
    is_in_string: bool,
    is_escaped: bool,
    /// The name of the field that is being read.
    name: Option<Vec<u8>>,
    /// The current name or value, up to [`MAX_TOKEN_BYTES`] and one more byte.
    token: Vec<u8>,
}

impl OutlineParser {
    fn push(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.is_in_string && !self.is_escaped {
                // Most of a long message is usually one long string, so skip to its next quotation mark or
                // backslash.
                let plain = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                if plain > 0 {
                    self.keep_token_bytes(&bytes[..plain]);
                    bytes = &bytes[plain..];
                    continue;
                }
            }
            self.push_byte(byte);
            bytes = rest;
        }
    }

    fn push_byte(&mut self, byte: u8) {
        if self.is_in_string {
            self.is_in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return self.keep_token_bytes(&[byte]);
        }
        match byte {
            b'{' | b'[' => {
                self.depth += 1;
                self.token.clear();
            }
            b':' if self.depth == 1 => self.name = Some(std::mem::take(&mut self.token)),
            b',' if self.depth == 1 => self.end_field(),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_field();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {
                self.is_in_string = byte == b'"';
                self.keep_token_bytes(&[byte]);
            }
        }
    }

    fn keep_token_bytes(&mut self, bytes: &[u8]) {
        if self.depth == 1 {
            // Keep one byte more than the limit, so that a longer token is detected.
            let room = (MAX_TOKEN_BYTES + 1).saturating_sub(self.token.len());
            self.token.extend(&bytes[..bytes.len().min(room)]);
        }
    }

    fn end_field(&mut self) {
        let token = std::mem::take(&mut self.token);
        let Some(name) = self.name.take() else { return };
        match Value::parse(&name).ok().and_then(Value::text).as_deref() {
            Some("method") => self.outline.has_method = true,
            Some("id") if token.len() <= MAX_TOKEN_BYTES => {
                let value = Value::parse(&token).ok();
                let id = value.filter(|id| matches!(id.kind(), Kind::String | Kind::Number | Kind::Null));
                self.outline.id = id.map(|id| id.raw().to_owned());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oversized_message_is_skipped_but_its_id_is_kept() {
        let long = |rest: &str| format!(r#"{{"result":{{"id":7,"a":["{}"]}}{rest}}}"#, "x\\\"}".repeat(99));
        for (text, id, has_method) in [
            (long(r#","id" : 3.0 "#), Some("3.0"), false),
            (long(r#","\u0069d":"a","x":{"id":9}"#), Some("\"a\""), false),
            (long(r#","id":[1]"#), None, false),
            (long(r#","method":"m","id":null"#), Some("null"), true),
            (long(""), None, false),
        ] {
            let input = format!("{text}\nnext\n");
            // Test buffers that end at any byte of the message.
            for capacity in [1, 7, 4096] {
                let mut from = io::BufReader::with_capacity(capacity, input.as_bytes());
                let mut line = Vec::new();
                let outline = MessageOutline { id: id.map(str::to_owned), has_method };
                assert_eq!(
                    read_message(&mut from, &mut line, 100).unwrap(),
                    ReadMessage::TooLong(outline),
                    "{text}"
                );
                assert_eq!(read_message(&mut from, &mut line, 100).unwrap(), ReadMessage::Message);
                assert_eq!(line, b"next\n");
                assert_eq!(read_message(&mut from, &mut line, 100).unwrap(), ReadMessage::End);
            }
        }
    }

    #[test]
    fn a_message_of_exactly_the_limit_is_kept() {
        let mut line = Vec::new();
        assert_eq!(read_message(&mut &b"1234\n"[..], &mut line, 5).unwrap(), ReadMessage::Message);
        assert!(matches!(read_message(&mut &b"12345\n"[..], &mut line, 5).unwrap(), ReadMessage::TooLong(_)));
    }
}
