//! Finds whitespace between tokens.

/// Whether JSON allows this byte as whitespace between tokens.
#[inline]
pub(super) fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Returns the number of leading whitespace bytes.
#[inline]
pub(super) fn whitespace_length(bytes: &[u8]) -> usize {
    const SPACES: u64 = u64::MAX / 255 * 0x20;
    let mut length = usize::from(matches!(bytes.first(), Some(b'\n')));
    loop {
        // Optimised for the indentation after a line break.
        if let Some(word) = bytes[length..].first_chunk() {
            length += (u64::from_le_bytes(*word) ^ SPACES).trailing_zeros() as usize / 8;
        }
        match bytes.get(length) {
            Some(byte) if is_whitespace(*byte) => length += 1,
            _ => return length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whitespace_scan_ends_after_the_last_space() {
        for length in 0..40_usize {
            for seed in 0..200_usize {
                let space = |at: usize| [b' ', b' ', b' ', b'\n', b'\t', b'\r'][(seed * 7 + at * at) % 6];
                let mut bytes: Vec<u8> = (0..length).map(space).collect();
                assert_eq!(whitespace_length(&bytes), length);
                bytes.push([b'x', 0x0B, 0x0C, 0, 0xA0][seed % 5]);
                assert_eq!(whitespace_length(&bytes), length);
                bytes.extend([b' '; 9]);
                assert_eq!(whitespace_length(&bytes), length);
            }
        }
    }
}
