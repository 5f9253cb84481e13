//! Splits arriving text into lines. Long lines are split between graphemes.

use endmark_envelope::grapheme_boundary;

use super::CapError;

/// How many bytes after a cut are examined to find the end of the grapheme there.
const GRAPHEME_LOOKAHEAD_BYTES: usize = 256;

/// How bytes that are not UTF-8 are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InvalidUtf8 {
    /// An invalid byte is an error.
    Reject,
    /// Each invalid sequence is replaced by U+FFFD and counted.
    Replace,
}

/// Splits bytes that arrive in chunks of any size into lines. The result does not depend on the chunks.
#[derive(Debug)]
pub(super) struct Lines {
    waiting: Vec<u8>,
    longest: usize,
    invalid_utf8: InvalidUtf8,
    /// Number of bytes in the lines that were passed on.
    passed_bytes: u64,
    /// Number of invalid sequences that were replaced.
    pub(super) replaced_bytes: u64,
}

impl Lines {
    /// Returns a splitter. Lines of more than `longest` bytes are split into parts, or never if it is
    /// `usize::MAX`.
    pub(super) fn new(longest: usize, foreign: InvalidUtf8) -> Self {
        Self { waiting: Vec::new(), longest, invalid_utf8: foreign, passed_bytes: 0, replaced_bytes: 0 }
    }

    /// Reads the next chunk, and passes each complete line to `take`.
    pub(super) fn push(&mut self, bytes: &[u8], take: impl FnMut(&str)) -> Result<(), CapError> {
        self.waiting.extend_from_slice(bytes);
        self.flush_lines(false, take)
    }

    /// Passes the last line to `take`, if it has no line break.
    pub(super) fn finish(&mut self, take: impl FnMut(&str)) -> Result<(), CapError> {
        self.flush_lines(true, take)
    }

    /// Returns the number of bytes in the current incomplete line.
    pub(super) fn pending_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Discards the beginning of a line that is too long to buffer. Returns the number of discarded
    /// characters.
    pub(super) fn discard_incomplete_line(&mut self) -> u64 {
        let chars = self.waiting.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        self.passed_bytes += self.waiting.len() as u64;
        self.waiting.clear();
        chars as u64
    }

    fn flush_lines(&mut self, is_end: bool, mut take: impl FnMut(&str)) -> Result<(), CapError> {
        let mut begin = 0;
        while let Some(length) = self.next_length(begin, is_end) {
            let part = &self.waiting[begin..begin + length];
            match str::from_utf8(part) {
                Ok(text) => take(text),
                Err(error) if self.invalid_utf8 == InvalidUtf8::Reject => {
                    return Err(CapError::NotUtf8 { at: self.passed_bytes + error.valid_up_to() as u64 });
                }
                Err(_) => {
                    let text = String::from_utf8_lossy(part);
                    self.replaced_bytes +=
                        part.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count() as u64;
                    take(&text);
                }
            }
            begin += length;
            self.passed_bytes += length as u64;
        }
        self.waiting.drain(..begin);
        Ok(())
    }

    /// Returns the length of the next line or part. Returns `None` if it is incomplete.
    fn next_length(&self, begin: usize, is_end: bool) -> Option<usize> {
        let rest = &self.waiting[begin..];
        let window = &rest[..rest.len().min(self.longest.saturating_add(GRAPHEME_LOOKAHEAD_BYTES))];
        if let Some(end) = memchr::memchr(b'\n', window) {
            return Some(end + 1);
        }
        if window.len() > self.longest && (window.len() - self.longest == GRAPHEME_LOOKAHEAD_BYTES || is_end)
        {
            return Some(cut_position(window, self.longest));
        }
        (is_end && !rest.is_empty()).then_some(rest.len())
    }
}

/// Returns where to cut a long line: between graphemes if possible, otherwise between characters, otherwise
/// between bytes.
fn cut_position(window: &[u8], longest: usize) -> usize {
    // The window may end inside a character.
    let text = match str::from_utf8(window) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&window[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => "",
    };
    match grapheme_boundary(text, longest) {
        0 => (1..=longest).rev().find(|at| window[*at] & 0xC0 != 0x80).unwrap_or(longest),
        at => at,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(bytes: &[u8], chunk: usize, longest: usize) -> Vec<String> {
        let mut lines = Lines::new(longest, InvalidUtf8::Replace);
        let mut parts = Vec::new();
        for chunk in bytes.chunks(chunk) {
            lines.push(chunk, |part| parts.push(part.to_owned())).unwrap();
        }
        lines.finish(|part| parts.push(part.to_owned())).unwrap();
        parts
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunk_sizes(text in "(\\PC|\n|e\u{301}|👩‍👧){0,300}", chunk in 1_usize..40, longest in 16_usize..64) {
            let whole = parts(text.as_bytes(), usize::MAX, longest);
            prop_assert_eq!(whole.concat(), text.clone());
            prop_assert_eq!(parts(text.as_bytes(), chunk, longest), whole);
        }
    }

    #[test]
    fn invalid_utf8_is_rejected_with_its_position_or_replaced() {
        let mut lines = Lines::new(64, InvalidUtf8::Reject);
        let refused = lines.push(b"abc\nd\xFFe\n", |_| ());
        assert_eq!(refused, Err(CapError::NotUtf8 { at: 5 }));
        assert_eq!(parts(b"abc\nd\xFFe\n", 3, 64), ["abc\n", "d\u{FFFD}e\n"]);
    }
}
