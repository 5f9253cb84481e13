//! Reads standard input to its end, within its limit, before a tool is started. (EN-4)

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes that are held in memory at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Standard input as it was read.
#[derive(Debug)]
pub enum SpooledInput {
    /// All of it, in an unnamed file, from its beginning.
    Within(File),
    /// It exceeds the limit.
    TooLarge {
        /// Bytes that were read.
        actual: u64,
    },
}

/// Error of reading standard input.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// It cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// It cannot be kept.
    #[error("standard input cannot be kept in a temporary file: {0}")]
    Keep(io::Error),
}

/// Reads everything, but not much more than `limit` bytes, into an unnamed file.
pub fn spool(mut input: impl Read, limit: u64) -> Result<SpooledInput, SpoolError> {
    let mut file = tempfile::tempfile().map_err(SpoolError::Keep)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut actual = 0_u64;
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(SpoolError::Read(error)),
        };
        actual += u64::try_from(count).unwrap_or(u64::MAX);
        if actual > limit {
            return Ok(SpooledInput::TooLarge { actual });
        }
        file.write_all(&buffer[..count]).map_err(SpoolError::Keep)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(SpoolError::Keep)?;
    Ok(SpooledInput::Within(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_exactly_at_the_limit_is_returned_whole() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let SpooledInput::Within(mut file) = spool(bytes.as_slice(), 200_000).unwrap() else {
            panic!("it is within the limit")
        };
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
    }

    #[test]
    fn input_over_the_limit_is_refused_without_reading_on() {
        assert!(matches!(spool(&b"abc"[..], 2).unwrap(), SpooledInput::TooLarge { actual: 3 }));
        let SpooledInput::TooLarge { actual } = spool(io::repeat(1), 1_000_000).unwrap() else {
            panic!("it is too large")
        };
        assert!((1_000_001..1_100_000).contains(&actual));
    }
}
