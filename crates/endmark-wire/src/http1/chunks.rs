//! Finds the end of a chunked HTTP body.

use super::fault::Fault;
use super::head::parse_field;

/// Maximum digits of a chunk size. 15 hexadecimal digits always fit into a `u64`.
const MAX_SIZE_DIGITS: u32 = 15;

/// Maximum bytes of all chunk extensions of one body. No known client sends extensions, and reading them is
/// expensive.
const MAX_EXTENSION_BYTES: usize = 4 * 1024;

/// Maximum bytes of the trailers of one body. Trailers are forwarded.
const MAX_TRAILER_BYTES: usize = 8 * 1024;

/// Finds the end of a chunked body that arrives in pieces of any size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkReader {
    state: ChunkState,
    /// Number of extension bytes read.
    extension_bytes: usize,
    /// Number of trailer bytes read.
    trailer_bytes: usize,
    /// The current trailer line.
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    Size { digits: u32, size: u64 },
    Extension { size: u64 },
    SizeEnd { size: u64 },
    Data { left: u64 },
    DataReturn,
    DataEnd,
    Trailer,
    TrailerEnd,
    End,
}

impl Default for ChunkReader {
    fn default() -> Self {
        Self {
            state: ChunkState::Size { digits: 0, size: 0 },
            extension_bytes: 0,
            trailer_bytes: 0,
            line: Vec::new(),
        }
    }
}

impl ChunkReader {
    /// Reads bytes of the body and returns how many of them belong to it. If the body ends within these
    /// bytes, the number is smaller than the input, and [`ChunkReader::is_complete`] returns true.
    ///
    /// ```
    /// use endmark_wire::http1::ChunkReader;
    /// let mut chunks = ChunkReader::default();
    /// assert_eq!(chunks.read(b"3\r\nabc\r\n"), Ok(8));
    /// assert_eq!(chunks.read(b"0\r\n\r\nGET"), Ok(5));
    /// assert!(chunks.is_complete());
    /// ```
    ///
    /// # Errors
    /// [`Fault::Chunk`] if the chunked body is invalid. [`Fault::ChunkOverhead`] if it has too many bytes
    /// that are not content.
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut passed = 0;
        while passed < bytes.len() && self.state != ChunkState::End {
            if let ChunkState::Data { left } = &mut self.state {
                let available = u64::try_from(bytes.len() - passed).unwrap_or(u64::MAX);
                let taken = available.min(*left);
                *left -= taken;
                passed += usize::try_from(taken).unwrap_or(usize::MAX);
                if *left == 0 {
                    self.state = ChunkState::DataReturn;
                }
                continue;
            }
            self.state = self.step(bytes[passed])?;
            passed += 1;
        }
        Ok(passed)
    }

    /// Returns whether the last byte of the body was read.
    pub fn is_complete(&self) -> bool {
        self.state == ChunkState::End
    }

    fn step(&mut self, byte: u8) -> Result<ChunkState, Fault> {
        Ok(match (self.state, byte) {
            (ChunkState::Size { digits, size }, byte)
                if byte.is_ascii_hexdigit() && digits < MAX_SIZE_DIGITS =>
            {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                ChunkState::Size { digits: digits + 1, size: size * 16 + digit }
            }
            (ChunkState::Size { digits: 1.., size }, b';') => ChunkState::Extension { size },
            (ChunkState::Size { digits: 1.., size } | ChunkState::Extension { size }, b'\r') => {
                ChunkState::SizeEnd { size }
            }
            (ChunkState::Extension { size }, byte) if byte == b'\t' || !byte.is_ascii_control() => {
                self.extension_bytes += 1;
                if self.extension_bytes > MAX_EXTENSION_BYTES {
                    return Err(Fault::ChunkOverhead);
                }
                ChunkState::Extension { size }
            }
            (ChunkState::SizeEnd { size: 0 }, b'\n') => ChunkState::Trailer,
            (ChunkState::SizeEnd { size }, b'\n') => ChunkState::Data { left: size },
            (ChunkState::DataReturn, b'\r') => ChunkState::DataEnd,
            (ChunkState::DataEnd, b'\n') => ChunkState::Size { digits: 0, size: 0 },
            (ChunkState::Trailer, b'\r') => ChunkState::TrailerEnd,
            (ChunkState::Trailer, byte) if byte != b'\n' => {
                self.trailer_bytes += 1;
                if self.trailer_bytes > MAX_TRAILER_BYTES {
                    return Err(Fault::ChunkOverhead);
                }
                self.line.push(byte);
                ChunkState::Trailer
            }
            (ChunkState::TrailerEnd, b'\n') if self.line.is_empty() => ChunkState::End,
            (ChunkState::TrailerEnd, b'\n') => {
                self.read_trailer()?;
                ChunkState::Trailer
            }
            _ => return Err(Fault::Chunk),
        })
    }

    /// Checks a trailer line. It must be a field that does not affect the end or the recipient of a request.
    fn read_trailer(&mut self) -> Result<(), Fault> {
        let line = std::mem::take(&mut self.line);
        let (name, _) = parse_field(&line).map_err(|_| Fault::Chunk)?;
        let is_of_the_head = [&b"content-length"[..], b"transfer-encoding", b"host"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        if is_of_the_head { Err(Fault::Chunk) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<Option<usize>, Fault> {
        let mut chunks = ChunkReader::default();
        let passed = chunks.read(body)?;
        Ok(chunks.is_complete().then_some(passed))
    }

    #[test]
    fn a_body_ends_at_its_last_chunk_in_pieces_of_any_size() {
        let body = b"4\r\nWiki\r\nA;name=\"value\"\r\n0123456789\r\n00\r\nx-trailer: 1\r\n\r\nGET /";
        assert_eq!(read(body), Ok(Some(body.len() - 5)));
        let mut chunks = ChunkReader::default();
        let singly: usize = body.chunks(1).map(|byte| chunks.read(byte).unwrap()).sum();
        assert_eq!((singly, chunks.is_complete()), (body.len() - 5, true));
        assert_eq!(read(b"4\r\nWik"), Ok(None));
    }

    #[test]
    fn an_ambiguous_chunk_is_refused() {
        for body in [
            &b"\r\n"[..],
            b"0x4\r\n",
            b"+4\r\n",
            b"-1\r\n",
            b" 4\r\n",
            b"4 \r\n",
            b"4\n",
            b"4\r4",
            b"g\r\n",
            b";a\r\n",
            b"4\r\nWikix\r\n",
            b"4\r\nWiki\n",
            b"4;a\nb\r\n",
            b"4;\0\r\n",
            b"0\r\n\n",
            b"0\r\nx\r\n\r\n",
            b"1000000000000000\r\n",
            b"0\r\n folded: 1\r\n\r\n",
            b"0\r\ncontent-length: 1\r\n\r\n",
            b"0\r\nx: a\rb\r\n\r\n",
        ] {
            assert_eq!(read(body), Err(Fault::Chunk), "{:?}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let extension = format!("1;{}\r\nx\r\n", "a".repeat(1_000));
        assert_eq!(read(extension.repeat(4).as_bytes()), Ok(None));
        assert_eq!(read(extension.repeat(5).as_bytes()), Err(Fault::ChunkOverhead));
        assert_eq!(read(format!("0\r\nx: {}\r\n", "a".repeat(9_000)).as_bytes()), Err(Fault::ChunkOverhead));
    }
}
