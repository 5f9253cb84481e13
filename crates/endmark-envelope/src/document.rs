//! An envelope that is ready to be written: detected, capped, and only numbers of bytes from here on. (EN-1)

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::cap::cap;
use crate::envelope::Meta;
use crate::error::ErrorBody;
use crate::warning::{Size, Warning, WarningKind};

/// An envelope that is ready to be written.
///
/// Its members are what [`crate::Envelope`] came to; `ok` and `meta.truncated` follow from them, so that they cannot
/// contradict them.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What the command found or did.
    pub data: Value,
    /// Why it did not end well.
    pub error: Option<ErrorBody>,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
    /// How long the command took, in milliseconds.
    pub duration_ms: u64,
}

#[derive(Serialize)]
struct Members<'a> {
    ok: bool,
    data: &'a Value,
    error: Option<&'a ErrorBody>,
    warnings: &'a [Warning],
    meta: Meta,
}

impl Document {
    /// How the process that answers with it ends: 0 exactly when there is no error.
    pub fn exit_code(&self) -> u8 {
        self.error.as_ref().map_or(0, |error| ErrorBody::failing(error.exit_code))
    }

    /// What is known about the answer as a whole.
    pub fn meta(&self) -> Meta {
        let truncated = self.warnings.iter().any(|warning| warning.kind == WarningKind::Truncation);
        Meta { truncated, duration_ms: self.duration_ms }
    }

    /// The same document within so many bytes, its newline included (EN-5): see [`cap`].
    #[must_use]
    pub fn within(self, max_response_bytes: usize) -> Self {
        cap(self, max_response_bytes)
    }

    /// The document on one line, without a newline.
    pub fn to_json(&self) -> String {
        // A tree of JSON values can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Writes the document on one line.
    ///
    /// It is serialised whole before the first byte is written. Where writing breaks off, the error says how much of
    /// it is out, so that nobody takes a beginning for an answer (EN-1).
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

    /// How many bytes it takes with its newline.
    pub(crate) fn bytes(&self) -> usize {
        let mut count = Count::default();
        // Counting cannot fail.
        let _ = serde_json::to_writer(&mut count, self);
        count.bytes + 1
    }
}

impl Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = |error| ErrorBody { exit_code: self.exit_code(), ..ErrorBody::clone(error) };
        let error = self.error.as_ref().map(written);
        let members = Members {
            ok: self.error.is_none(),
            data: &self.data,
            error: error.as_ref(),
            warnings: &self.warnings,
            meta: self.meta(),
        };
        members.serialize(serializer)
    }
}

/// Why a document is not out.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the answer after {written} bytes: {source}")]
pub struct WriteError {
    /// How many bytes were taken before.
    pub written: usize,
    /// What the writer said.
    pub source: io::Error,
}

impl WriteError {
    /// Whether the reader went away before anything was written: nobody was told half of anything.
    pub fn is_unread(&self) -> bool {
        self.written == 0 && self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Counts what is written.
#[derive(Default)]
struct Count {
    bytes: usize,
    chars: usize,
}

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        // Every character has one byte that is no continuation.
        self.chars += bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The size of anything as JSON on one line.
pub(crate) fn counted(value: &impl Serialize) -> Size {
    let mut count = Count::default();
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    Size { bytes: count.bytes as u64, chars: count.chars as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_never_ends_in_exit_code_0() {
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
