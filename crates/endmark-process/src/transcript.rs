//! Writes the output of a command to a file of limited size: its beginning, its end, and the number of bytes
//! that are omitted between them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::capture::TailBuffer;
use crate::regular::open_to_write;

/// Number of bytes that are kept from the end.
const TAIL_BYTES: usize = 64 << 10;

/// A file that receives output up to a limit.
#[derive(Debug)]
pub struct OutputTranscript {
    file: File,
    /// Number of bytes that may still be written to the file.
    remaining: u64,
    tail: TailBuffer,
    omitted_bytes: u64,
    /// Why writing has failed. `None` if it has not failed.
    failure: Option<io::Error>,
}

impl OutputTranscript {
    /// Creates a file that only its owner can read. `limit_bytes` is the maximum size of the output's
    /// beginning.
    pub fn create(path: &Path, limit_bytes: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = open_to_write(&mut options, path)?;
        Ok(Self {
            file,
            remaining: limit_bytes,
            tail: TailBuffer::new(TAIL_BYTES),
            omitted_bytes: 0,
            failure: None,
        })
    }

    /// Adds the next bytes. If the disk is full, only the transcript is incomplete, and the run continues.
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

    /// Completes the file. Fails if a part of it could not be written.
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
        let mut transcript = OutputTranscript::create(&path, 10).unwrap();
        transcript.push(b"beginning|");
        for _ in 0..3 {
            transcript.push(&vec![b'x'; TAIL_BYTES]);
        }
        transcript.push(b"end");
        transcript.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let middle = format!("beginning|\n[… {} bytes left out …]\nxxx", 2 * TAIL_BYTES + 3);
        assert!(text.starts_with(&middle) && text.ends_with("xend"), "{}", &text[..80]);
        let mut short = OutputTranscript::create(&path, 10).unwrap();
        short.push(b"beginning|end");
        short.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"beginning|end");
    }
}
