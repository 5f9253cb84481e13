//! An envelope that is ready to be written: detected and capped, so that only its bytes remain. (EN-1)

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::cap::cap;
use crate::envelope::Meta;
use crate::error::ErrorBody;
use crate::warning::{Size, Warning, WarningKind};

/// An envelope that is ready to be written.
///
/// It has the same members as an [`crate::Envelope`]. `ok` and `meta.truncated` are derived from the other
/// members, so that they cannot contradict them.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The result of the command.
    pub data: Value,
    /// Why it failed.
    pub error: Option<ErrorBody>,
    /// Information for the reader of a successful answer.
    pub warnings: Vec<Warning>,
    /// The duration of the command, in milliseconds.
    pub duration_ms: u64,
}

#[derive(Serialize)]
struct EnvelopeMembers<'a> {
    ok: bool,
    data: &'a Value,
    error: Option<&'a ErrorBody>,
    warnings: &'a [Warning],
    meta: Meta,
}

impl Document {
    /// Returns the exit code of the process. It is 0 only if there is no error.
    pub fn exit_code(&self) -> u8 {
        self.error.as_ref().map_or(0, |error| ErrorBody::non_zero(error.exit_code))
    }

    /// Returns the facts about the whole answer.
    pub fn meta(&self) -> Meta {
        let truncated = self.warnings.iter().any(|warning| warning.kind == WarningKind::Truncation);
        Meta { truncated, duration_ms: self.duration_ms }
    }

    /// Returns the document shortened to this many bytes, including its newline (EN-5); see [`cap`].
    #[must_use]
    pub fn within(self, max_response_bytes: usize) -> Self {
        cap(self, max_response_bytes)
    }

    /// Returns the document on one line, without a newline.
    pub fn to_json(&self) -> String {
        // A tree of JSON values can always be serialised.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Writes the document on one line.
    ///
    /// It is serialised completely before the first byte is written. If writing fails, the error reports how much was
    /// written, so that a partial document is not mistaken for an answer (EN-1).
    pub fn write_to(&self, writer: &mut dyn Write) -> Result<(), WriteError> {
        let mut document = self.to_json();
        document.push('\n');
        let mut written = 0;
        while written < document.len() {
            match writer.write(&document.as_bytes()[written..]) {
                Ok(0) => return Err(WriteError { written, source: io::ErrorKind::WriteZero.into() }),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(WriteError { written, source }),
            }
        }
        writer.flush().map_err(|source| WriteError { written, source })
    }

    /// Returns the size of the document in bytes, including its newline.
    pub(crate) fn bytes(&self) -> usize {
        let mut count = ByteCounter::default();
        // Counting cannot fail.
        let _ = serde_json::to_writer(&mut count, self);
        count.bytes + 1
    }
}

impl Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = |error| ErrorBody { exit_code: self.exit_code(), ..ErrorBody::clone(error) };
        let error = self.error.as_ref().map(written);
        let members = EnvelopeMembers {
            ok: self.error.is_none(),
            data: &self.data,
            error: error.as_ref(),
            warnings: &self.warnings,
            meta: self.meta(),
        };
        members.serialize(serializer)
    }
}

/// Error of a document that was not written completely.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the answer after {written} bytes: {source}")]
pub struct WriteError {
    /// The number of bytes that were written before the error.
    pub written: usize,
    /// The writer's error.
    pub source: io::Error,
}

impl WriteError {
    /// Returns whether the reader closed its input before anything was written. Such a reader has no partial
    /// answer.
    pub fn is_unread(&self) -> bool {
        self.written == 0 && self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Counts the bytes and characters that are written to it.
#[derive(Default)]
struct ByteCounter {
    bytes: usize,
    chars: usize,
}

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        // Count the bytes that begin a character.
        self.chars += bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the size of a value as JSON on one line.
pub(crate) fn measure_json(value: &impl Serialize) -> Size {
    let mut count = ByteCounter::default();
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    Size { bytes: count.bytes as u64, chars: count.chars as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_never_has_exit_code_0() {
        let none = ErrorBody::new("odd", 0, "it is odd");
        assert_eq!(none.exit_code, 70);
        let document = Document {
            data: Value::Null,
            error: Some(ErrorBody { exit_code: 0, ..none }),
            warnings: Vec::new(),
            duration_ms: 0,
        };
        assert_eq!(document.exit_code(), 70);
        let read: Value = serde_json::from_str(&document.to_json()).unwrap();
        assert_eq!((&read["ok"], &read["error"]["exit_code"]), (&false.into(), &70.into()));
    }
}
