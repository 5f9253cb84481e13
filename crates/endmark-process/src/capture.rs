//! Keeps the head, the tail and exact counts of a stream of any length. (EN-2, EN-5)

mod characters;

use characters::Characters;

/// The tail's share of the kept bytes, as a divisor.
const TAIL_SHARE: usize = 4;

/// The head and the tail of a stream in bounded memory, with counts of all of it.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    tail: Ring,
    bytes: u64,
    newlines: u64,
    characters: Characters,
}

/// The kept part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// All of it, or the head.
    pub head: Vec<u8>,
    /// The tail, if anything between it and the head is missing.
    pub tail: Option<Vec<u8>>,
    /// Bytes of the whole stream.
    pub bytes: u64,
    /// Unicode characters of the whole stream. A sequence that is not UTF-8 counts as one.
    pub characters: u64,
    /// Newlines of the whole stream.
    pub newlines: u64,
    /// Sequences of the whole stream that are not UTF-8, including an incomplete one at the end.
    pub invalid_sequences: u64,
}

impl Capture {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let tail = limit / TAIL_SHARE;
        Self {
            head: Vec::new(),
            head_limit: limit - tail,
            tail: Ring::new(tail),
            bytes: 0,
            newlines: 0,
            characters: Characters::default(),
        }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += count(bytes.len());
        self.newlines += count(memchr::memchr_iter(b'\n', bytes).count());
        self.characters.push(bytes);
        let for_head = bytes.len().min(self.head_limit - self.head.len());
        let (head, rest) = bytes.split_at(for_head);
        self.head.extend_from_slice(head);
        self.tail.push(rest);
    }

    /// Ends the stream.
    pub fn finish(self) -> Captured {
        let (characters, invalid_sequences) = self.characters.finish();
        let mut head = self.head;
        let tail = self.tail.into_bytes();
        let is_whole = count(head.len() + tail.len()) == self.bytes;
        let tail = if is_whole {
            head.extend(tail);
            None
        } else {
            Some(tail)
        };
        Captured { head, tail, bytes: self.bytes, characters, newlines: self.newlines, invalid_sequences }
    }
}

impl Captured {
    /// Whether every byte is kept.
    pub fn is_whole(&self) -> bool {
        self.tail.is_none()
    }
}

/// The last bytes of a stream.
#[derive(Debug)]
pub(crate) struct Ring {
    kept_bytes: Vec<u8>,
    limit: usize,
    /// The index of the oldest byte, once it is full.
    oldest: usize,
}

impl Ring {
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

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
