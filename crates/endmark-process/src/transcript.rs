//! Keeps the output of a command in a file of limited size: its beginning, its end, and the number of bytes left out
//! between.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::capture::Ring;
use crate::regular::open_to_write;

/// Bytes of the end that are kept.
const TAIL_BYTES: usize = 64 << 10;

/// A file that takes output up to a limit.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    /// Bytes that the file may still take.
    remaining: u64,
    tail: Ring,
    omitted_bytes: u64,
    /// Why writing has stopped, if it has.
    failure: Option<io::Error>,
}

impl Transcript {
    /// Creates a file that only its owner can read. Its beginning has at most this many bytes.
    pub fn create(path: &Path, limit_bytes: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = open_to_write(&mut options, path)?;
        Ok(Self {
            file,
            remaining: limit_bytes,
            tail: Ring::new(TAIL_BYTES),
            omitted_bytes: 0,
            failure: None,
        })
    }

    /// Adds the next bytes. A full disk costs the transcript and not the run.
    pub fn push(&mut self, bytes: &[u8]) {
        let fitting = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(bytes.len());
        let (head, rest) = bytes.split_at(fitting);
        if self.failure.is_none() {
            self.failure = self.file.write_all(head).err();
        }
        self.remaining -= u64::try_from(fitting).unwrap_or(u64::MAX).min(self.remaining);
        self.omitted_bytes += u64::try_from(rest.len()).unwrap_or(u64::MAX);
        self.tail.push(rest);
    }

    /// Completes the file. The error is why a part of it is missing.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let tail = self.tail.into_bytes();
        let left_out = self.omitted_bytes
            - u64::try_from(tail.len()).unwrap_or(self.omitted_bytes).min(self.omitted_bytes);
        if left_out > 0 {
            write!(self.file, "\n[… {left_out} bytes left out …]\n")?;
        }
        self.file.write_all(&tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_transcript_keeps_both_ends_and_counts_the_middle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.out");
        let mut transcript = Transcript::create(&path, 10).unwrap();
        transcript.push(b"beginning|");
        for _ in 0..3 {
            transcript.push(&vec![b'x'; TAIL_BYTES]);
        }
        transcript.push(b"end");
        transcript.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let middle = format!("beginning|\n[… {} bytes left out …]\nxxx", 2 * TAIL_BYTES + 3);
        assert!(text.starts_with(&middle) && text.ends_with("xend"), "{}", &text[..80]);
        let mut short = Transcript::create(&path, 10).unwrap();
        short.push(b"beginning|end");
        short.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"beginning|end");
    }
}
