//! Reads messages as lines up to a limit. Of a longer message it keeps only the facts that are needed to answer it.

use std::io::{self, BufRead, Read};

use endmark_wire::json::{Kind, Value};

/// Maximum length of relevant ids and field names.
const MAX_TOKEN_BYTES: usize = 1024;

/// Result of reading a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// The end of the input.
    End,
    /// A message with its line break.
    Message,
    /// A message that exceeds the limit. It was read to its end.
    TooLong(Outline),
}

/// The facts about a message that exceeds the limit.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Outline {
    /// The message's id, as written.
    pub(super) id: Option<String>,
    /// Whether it is a request or a notification, not a response.
    pub(super) has_method: bool,
}

/// Reads the next message of at most `limit` bytes.
pub(super) fn read(from: &mut impl BufRead, line: &mut Vec<u8>, limit: u64) -> io::Result<Incoming> {
    line.clear();
    let length = from.by_ref().take(limit).read_until(b'\n', line)?;
    if length == 0 {
        return Ok(Incoming::End);
    }
    if (length as u64) < limit || line.last() == Some(&b'\n') {
        return Ok(Incoming::Message);
    }
    let mut outline = OutlineParser::default();
    outline.push(line);
    // Frees the memory of a long message.
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
            return Ok(Incoming::TooLong(outline.outline));
        }
    }
}

/// Returns the outline of a message that cannot be read as JSON.
pub(super) fn outline(line: &[u8]) -> Outline {
    let mut outlining = OutlineParser::default();
    outlining.push(line);
    outlining.outline
}

/// Finds the fields of a message as its bytes arrive, without keeping their values.
#[derive(Debug, Default)]
struct OutlineParser {
    outline: Outline,
    depth: u64,
    is_in_string: bool,
    is_escaped: bool,
    /// The name of the field whose value is being read.
    name: Option<Vec<u8>>,
    /// The name or value, up to the relevant length.
    token: Vec<u8>,
}

impl OutlineParser {
    fn push(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.is_in_string && !self.is_escaped {
                // Most of a long message is usually one long string.
                let plain = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                if plain > 0 {
                    self.keep(&bytes[..plain]);
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
            return self.keep(&[byte]);
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
                self.keep(&[byte]);
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.depth == 1 {
            // One more byte than the limit, so that a too long token is detected.
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
    fn an_oversized_message_is_skipped_but_its_id_is_known() {
        let long = |rest: &str| format!(r#"{{"result":{{"id":7,"a":["{}"]}}{rest}}}"#, "x\\\"}".repeat(99));
        for (text, id, has_method) in [
            (long(r#","id" : 3.0 "#), Some("3.0"), false),
            (long(r#","\u0069d":"a","x":{"id":9}"#), Some("\"a\""), false),
            (long(r#","id":[1]"#), None, false),
            (long(r#","method":"m","id":null"#), Some("null"), true),
            (long(""), None, false),
        ] {
            let input = format!("{text}\nnext\n");
            // The buffer may end at any byte.
            for capacity in [1, 7, 4096] {
                let mut from = io::BufReader::with_capacity(capacity, input.as_bytes());
                let mut line = Vec::new();
                let outline = Outline { id: id.map(str::to_owned), has_method };
                assert_eq!(read(&mut from, &mut line, 100).unwrap(), Incoming::TooLong(outline), "{text}");
                assert_eq!(read(&mut from, &mut line, 100).unwrap(), Incoming::Message);
                assert_eq!(line, b"next\n");
                assert_eq!(read(&mut from, &mut line, 100).unwrap(), Incoming::End);
            }
        }
    }

    #[test]
    fn a_message_exactly_at_the_limit_is_whole() {
        let mut line = Vec::new();
        assert_eq!(read(&mut &b"1234\n"[..], &mut line, 5).unwrap(), Incoming::Message);
        assert!(matches!(read(&mut &b"12345\n"[..], &mut line, 5).unwrap(), Incoming::TooLong(_)));
    }
}
