//! Finds the special bytes of a string, which must be examined. This is the innermost step of detection.
//!
//! Quotes, backslashes, control characters and all non-ASCII bytes are special. One function examines the
//! bytes of a word at once. The other is a loop that compilers can vectorise.

/// A word with the lowest bit of each byte set.
const ONES: u64 = u64::MAX / 255;

/// Returns the index of the first special byte in eight bytes, or `None`.
#[inline]
pub(super) fn first_special(block: [u8; 8]) -> Option<usize> {
    let special = special_high_bits(u64::from_le_bytes(block));
    (special != 0).then_some(special.trailing_zeros() as usize / 8)
}

/// Returns a word with the high bits of all special bytes. Only the lowest of these bits is reliable.
#[inline]
fn special_high_bits(word: u64) -> u64 {
    let quotes = word ^ (ONES * u64::from(b'"'));
    let backslashes = word ^ (ONES * u64::from(b'\\'));
    let below = word.wrapping_sub(ONES * 0x20) | quotes.wrapping_sub(ONES) | backslashes.wrapping_sub(ONES);
    // A borrow may set high bits above the lowest one, but never one below it.
    (below | word) & (ONES << 7)
}

/// Returns one bit for each of 64 bytes, set if the byte is special. The lowest bit is for the first byte.
#[inline]
pub(super) fn special_bits(block: &[u8; 64]) -> u64 {
    /// Multiplication by this moves the lowest bits of eight bytes into the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut flags = [0; 64];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(is_special(*byte));
    }
    let mut bits = 0;
    for (index, word) in flags.as_chunks().0.iter().enumerate() {
        bits |= (u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56) << (8 * index);
    }
    bits
}

/// Whether a byte in a string must be examined.
#[inline]
pub(super) fn is_special(byte: u8) -> bool {
    // As signed numbers, control characters and non-ASCII bytes are less than a space.
    byte.cast_signed() < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_classified_as_special_or_plain() {
        for byte in 0..=0xFF_u8 {
            assert_eq!(is_special(byte), !(0x20..0x80).contains(&byte) || byte == b'"' || byte == b'\\');
        }
    }

    #[test]
    fn special_bytes_are_found_at_every_position() {
        let neighbours = [0x00, 0x1F, 0x20, b'"', b'"' ^ 1, b'a', b'\\', b'\\' ^ 1, 0x7F, 0x80, 0xFF];
        for place in 0..64 {
            for byte in 0..=0xFF {
                for neighbour in neighbours {
                    let mut block = [neighbour; 64];
                    block[place] = byte;
                    let expected = (0..64).fold(0, |bits, at| bits | u64::from(is_special(block[at])) << at);
                    assert_eq!(special_bits(&block), expected, "{block:x?}");
                    let first = (expected & 0xFF != 0).then_some(expected.trailing_zeros() as usize);
                    assert_eq!(first_special(*block.first_chunk().unwrap()), first, "{block:x?}");
                }
            }
        }
    }
}
