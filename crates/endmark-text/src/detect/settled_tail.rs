//! Keeps the end of the settled source. The result does not depend on the chunks.

use serde::{Deserialize, Serialize};

/// Maximum number of characters that are kept and reported of a token's source (PC-1).
pub(super) const TOKEN_CHARACTERS: usize = 200;

/// Number of bytes that can hold [`TOKEN_CHARACTERS`] characters. A buffer is cut back to this size only when
/// it has doubled, so that small chunks do not move it each time.
const KEPT_BYTES: usize = 4 * TOKEN_CHARACTERS;

/// The raw source of the last settled token, and the unsettled text after it.
///
/// It is updated after each chunk, not after each byte. Its content does not depend on the chunks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SettledTail {
    /// The last bytes of the settled source, up to `end`.
    settled: Vec<u8>,
    /// End of the settled source in the text.
    end: usize,
    /// The text after `end`: whitespace, and then a token that may continue. If it is too long, only its last
    /// bytes are kept, because earlier ones are never needed.
    rest: Vec<u8>,
}

impl SettledTail {
    /// Processes the next `chunk`, which begins at `position`. The source `start..end` is now settled.
    pub(super) fn advance(&mut self, chunk: &[u8], position: usize, start: usize, end: usize) {
        let mut unsettled = chunk;
        if end > self.end {
            if start >= position {
                self.settled.clear();
                self.rest.clear();
                append(&mut self.settled, &chunk[start - position..end - position]);
            } else {
                if !self.rest.is_empty() {
                    self.settle_rest(position, end);
                }
                append(&mut self.settled, &chunk[..end.saturating_sub(position)]);
            }
            unsettled = &chunk[end.saturating_sub(position)..];
            self.end = end;
        }
        if !unsettled.is_empty() {
            append(&mut self.rest, unsettled);
        }
    }

    /// Whether this state can occur after `position` bytes, of which `settled` are settled.
    pub(super) fn is_consistent(&self, position: usize, settled: usize) -> bool {
        self.end <= settled
            && settled <= position
            && self.settled.len() <= self.end.min(2 * KEPT_BYTES)
            && self.rest.len() <= (position - self.end).min(2 * KEPT_BYTES)
    }

    /// Marks the rest before `end` as settled. The rest ends at `position`.
    fn settle_rest(&mut self, position: usize, end: usize) {
        let rest_start = position - self.rest.len();
        if rest_start > self.end {
            self.settled.clear();
        }
        let length = end.min(position).saturating_sub(rest_start);
        append(&mut self.settled, &self.rest[..length]);
        self.rest.drain(..length);
    }

    /// Returns the last characters of the settled source that begins at `start`.
    pub(super) fn settled_from(&self, start: usize) -> String {
        let length = self.end.saturating_sub(start).min(self.settled.len());
        last_characters(&self.settled[self.settled.len() - length..])
    }

    /// Returns the last characters of the settled source between `start` and `end`. The bytes before `end`
    /// must still be kept.
    pub(super) fn settled_between(&self, start: usize, end: usize) -> String {
        let kept = &self.settled[self.settled.len().saturating_sub(KEPT_BYTES)..];
        let place = |offset: usize| kept.len().saturating_sub(self.end.saturating_sub(offset));
        let source = &kept[place(start).min(place(end))..place(end)];
        // The kept bytes may begin within a character.
        let continuation = source.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
        last_characters(&source[continuation..])
    }

    /// Returns the last characters of the unsettled source, without leading whitespace.
    pub(super) fn unsettled_tail(&self) -> String {
        let token = self.rest.trim_ascii_start();
        last_characters(if token.is_empty() { &self.rest } else { token })
    }
}

fn append(buffer: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() >= KEPT_BYTES {
        buffer.clear();
        buffer.extend_from_slice(&bytes[bytes.len() - KEPT_BYTES..]);
        return;
    }
    buffer.extend_from_slice(bytes);
    if buffer.len() > 2 * KEPT_BYTES {
        buffer.drain(..buffer.len() - KEPT_BYTES);
    }
}

/// Returns the last [`TOKEN_CHARACTERS`] characters of `bytes`. An incomplete character becomes U+FFFD.
fn last_characters(bytes: &[u8]) -> String {
    let first = bytes
        .iter()
        .enumerate()
        .rev()
        .filter(|&(_, byte)| byte & 0xC0 != 0x80)
        .nth(TOKEN_CHARACTERS - 1)
        .map_or(0, |(index, _)| index);
    String::from_utf8_lossy(&bytes[first..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_across_many_chunks_keeps_its_last_characters() {
        let text = "é".repeat(1_000);
        let mut tail = SettledTail::default();
        for (index, byte) in text.bytes().enumerate() {
            tail.advance(&[byte], index, 0, index.next_multiple_of(2));
        }
        assert_eq!(tail.settled_from(0), "é".repeat(TOKEN_CHARACTERS));
        assert_eq!(tail.settled_from(text.len() - 8), "é".repeat(4));
        assert!(tail.settled.len() <= 2 * KEPT_BYTES);
    }

    #[test]
    fn a_long_gap_keeps_the_token_and_bounded_memory() {
        let mut tail = SettledTail::default();
        tail.advance(b"true", 0, 0, 4);
        for position in 4..10_000 {
            tail.advance(b" ", position, 0, 4);
        }
        assert_eq!(tail.settled_from(0), "true");
        assert!(tail.rest.len() <= 2 * KEPT_BYTES);
        tail.advance(b",", 10_000, 0, 10_001);
        assert_eq!(tail.settled_from(0), format!("{},", " ".repeat(TOKEN_CHARACTERS - 1)));
    }
}
