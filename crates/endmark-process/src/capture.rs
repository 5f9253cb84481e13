//! Captures the head and the tail of a stream of any length, with exact counts of the whole stream. (EN-2,
//! EN-5)

mod characters;

use characters::CharacterCounter;

/// The tail gets the captured bytes divided by this number, and the head gets the rest.
const TAIL_DIVISOR: usize = 4;

/// Captures the head and the tail of a stream in bounded memory, and counts the whole stream.
#[derive(Debug)]
pub struct StreamCapture {
    head: Vec<u8>,
    head_limit: usize,
    tail: TailBuffer,
    bytes: u64,
    newlines: u64,
    characters: CharacterCounter,
}

/// The captured part of a stream, and the counts of the whole stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedStream {
    /// The whole stream, or its head.
    pub head: Vec<u8>,
    /// The tail. `None` if no bytes are missing between head and tail.
    pub tail: Option<Vec<u8>>,
    /// Number of bytes in the whole stream.
    pub bytes: u64,
    /// Number of Unicode characters in the whole stream. An invalid sequence counts as one character.
    pub characters: u64,
    /// Number of newlines in the whole stream.
    pub newlines: u64,
    /// Number of sequences in the whole stream that are not UTF-8. An incomplete character at the end counts.
    pub invalid_sequences: u64,
}

impl StreamCapture {
    /// Returns an empty capture that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let tail = limit / TAIL_DIVISOR;
        Self {
            head: Vec::new(),
            head_limit: limit - tail,
            tail: TailBuffer::new(tail),
            bytes: 0,
            newlines: 0,
            characters: CharacterCounter::default(),
        }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += as_u64(bytes.len());
        self.newlines += as_u64(memchr::memchr_iter(b'\n', bytes).count());
        self.characters.push(bytes);
        let for_head = bytes.len().min(self.head_limit - self.head.len());
        let (head, rest) = bytes.split_at(for_head);
        self.head.extend_from_slice(head);
        self.tail.push(rest);
    }

    /// Ends the stream, and returns what was captured.
    pub fn finish(self) -> CapturedStream {
        let (characters, invalid_sequences) = self.characters.finish();
        let mut head = self.head;
        let tail = self.tail.into_bytes();
        let is_whole = as_u64(head.len() + tail.len()) == self.bytes;
        let tail = if is_whole {
            head.extend(tail);
            None
        } else {
            Some(tail)
        };
        CapturedStream {
            head,
            tail,
            bytes: self.bytes,
            characters,
            newlines: self.newlines,
            invalid_sequences,
        }
    }
}

impl CapturedStream {
    /// Whether all bytes of the stream were captured.
    pub fn is_whole(&self) -> bool {
        self.tail.is_none()
    }
}

/// A ring buffer with the last bytes of a stream.
#[derive(Debug)]
pub(crate) struct TailBuffer {
    kept_bytes: Vec<u8>,
    limit: usize,
    /// Index of the oldest byte, if the buffer is full.
    oldest: usize,
}

impl TailBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { kept_bytes: Vec::new(), limit, oldest: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.len() >= self.limit {
            self.kept_bytes.clear();
            self.kept_bytes.extend_from_slice(&bytes[bytes.len() - self.limit..]);
            self.oldest = 0;
            return;
        }
        let growing = bytes.len().min(self.limit - self.kept_bytes.len());
        let (growing, mut rest) = bytes.split_at(growing);
        self.kept_bytes.extend_from_slice(growing);
        while !rest.is_empty() {
            let fitting = rest.len().min(self.limit - self.oldest);
            let (now, later) = rest.split_at(fitting);
            self.kept_bytes[self.oldest..self.oldest + fitting].copy_from_slice(now);
            self.oldest = (self.oldest + fitting) % self.limit;
            rest = later;
        }
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.kept_bytes.rotate_left(self.oldest);
        self.kept_bytes
    }
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
