//! JSON documents on standard output.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};

use endmark_failure::is_terminal_control;

/// Standard output for JSON.
///
/// A pipe or a file receives the bytes unchanged. At a terminal, control characters are written as JSON escapes, so
/// that copied text is still the same document.
pub(crate) struct JsonOutput<W> {
    output: W,
    is_terminal: bool,
}

impl<W: Write> JsonOutput<W> {
    /// Wraps a writer for standard output.
    pub(crate) fn new(output: W) -> Self {
        Self { output, is_terminal: io::stdout().is_terminal() }
    }
}

impl<W: Write> Write for JsonOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = bytes.utf8_chunks().next().map(|chunk| chunk.valid()).filter(|text| !text.is_empty());
        let Some(text) = chunk.filter(|_| self.is_terminal) else { return self.output.write(bytes) };
        self.output.write_all(escape_controls(text).as_bytes())?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Returns equivalent JSON. Control characters up to `' '` occur only between values, the others only in strings.
fn escape_controls(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\r' => shown.push(' '),
            ..' ' => shown.push(character),
            _ if is_terminal_control(character) => {
                let _ = write!(shown, "\\u{:04x}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_at_a_terminal_is_the_same_document_and_escaped() {
        let value = serde_json::json!({"a": "x\u{202e}y\u{9b}2J\u{7f}é\n\t"});
        let mut shown = JsonOutput { output: Vec::new(), is_terminal: true };
        writeln!(shown, "{value}").unwrap();
        let shown = String::from_utf8(shown.output).unwrap();
        assert_eq!(shown, "{\"a\":\"x\\u202ey\\u009b2J\\u007fé\\n\\t\"}\n");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        let mut piped = JsonOutput { output: Vec::new(), is_terminal: false };
        writeln!(piped, "{value}").unwrap();
        assert_eq!(piped.output, format!("{value}\n").into_bytes());
    }
}
