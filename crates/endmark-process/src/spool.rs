//! Reads standard input completely, within its limit, before a tool is started. (EN-4)

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// At most this many bytes are in memory at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The result of reading standard input.
#[derive(Debug)]
pub enum SpooledInput {
    /// The complete input in an unnamed file, positioned at its start.
    Within(File),
    /// The input exceeds the limit.
    TooLarge {
        /// Number of bytes that were read.
        actual: u64,
    },
}

/// Error of [`spool`].
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The input cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// The temporary file cannot be written.
    #[error("standard input cannot be kept in a temporary file: {0}")]
    Keep(io::Error),
}

/// Copies the input into an unnamed file. Stops soon after the input exceeds `limit` bytes.
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
    fn reading_stops_when_the_input_exceeds_the_limit() {
        assert!(matches!(spool(&b"abc"[..], 2).unwrap(), SpooledInput::TooLarge { actual: 3 }));
        let SpooledInput::TooLarge { actual } = spool(io::repeat(1), 1_000_000).unwrap() else {
            panic!("it is too large")
        };
        assert!((1_000_001..1_100_000).contains(&actual));
    }
}
