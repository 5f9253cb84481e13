//! How far the characters of a string go that stand for themselves: the innermost loop of detection.

/// A one in each byte of a word.
const ONES: u64 = u64::MAX / 255;

/// How many bytes at the beginning are ASCII and neither a quote, nor a backslash, nor a control.
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(word) = bytes[length..].first_chunk() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return length + special.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length + bytes[length..].iter().take_while(|byte| is_plain(**byte)).count()
}

/// The high bit of each byte that is not plain. Only the lowest is exact: a borrow may set those above it.
#[inline]
fn special_bytes(word: u64) -> u64 {
    let quotes = word ^ (ONES * u64::from(b'"'));
    let backslashes = word ^ (ONES * u64::from(b'\\'));
    let below = word.wrapping_sub(ONES * 0x20) | quotes.wrapping_sub(ONES) | backslashes.wrapping_sub(ONES);
    (below | word) & (ONES << 7)
}

#[inline]
fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7F) && byte != b'"' && byte != b'\\'
}

/// How many bytes at the beginning are whole characters of more than one byte; well-formed ones only.
#[inline]
pub(super) fn wide_length(bytes: &[u8]) -> usize {
    let is_continuation = |byte: u8| byte & 0xC0 == 0x80;
    let mut length = 0;
    loop {
        length += match bytes[length..] {
            [0xE1..=0xEC | 0xEE | 0xEF, second, third, ..]
                if is_continuation(second) && is_continuation(third) =>
            {
                3
            }
            [0xC2..=0xDF, second, ..] if is_continuation(second) => 2,
            [0xF0, 0x90..=0xBF, third, fourth, ..] | [0xF1..=0xF3, 0x80..=0xBF, third, fourth, ..]
                if is_continuation(third) && is_continuation(fourth) =>
            {
                4
            }
            _ => return length,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_told_apart() {
        for length in 0..50 {
            assert_eq!(plain_length(&vec![b'a'; length]), length);
            for place in 0..length {
                for byte in 0..=0xFF {
                    let mut bytes = vec![b'~'; length];
                    bytes[place] = byte;
                    let expected = if is_plain(byte) { length } else { place };
                    assert_eq!(plain_length(&bytes), expected, "{byte:#x} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn wide_characters_are_never_taken_for_more_than_they_are() {
        for character in
            ['\u{80}', 'é', '\u{7FF}', '中', '\u{D7FF}', '\u{E000}', '\u{FFFF}', '😀', '\u{3FFFF}']
        {
            let text = character.to_string();
            let taken = wide_length(text.as_bytes());
            assert!(taken == text.len() || taken == 0, "{character:?}");
            assert_eq!(wide_length(&text.as_bytes()[..text.len() - 1]), 0, "{character:?}");
            assert_eq!(wide_length(format!("{text}a").as_bytes()), taken, "{character:?}");
        }
        for lead in 0x80..=0xFF_u8 {
            for second in 0..=0xFF_u8 {
                for rest in [[0x80, 0x80], [0xBF, 0xBF], [0x80, 0x41], [0x41, 0x80]] {
                    let bytes = [lead, second, rest[0], rest[1]];
                    let taken = wide_length(&bytes);
                    assert!(std::str::from_utf8(&bytes[..taken]).is_ok(), "{bytes:x?}");
                }
            }
        }
        assert_eq!(wide_length("中文é😀x".as_bytes()), 12);
    }
}
