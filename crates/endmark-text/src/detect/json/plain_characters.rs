//! Finds how far the content of a string continues, without examining each byte. These are the innermost
//! loops of detection.

use super::special_bytes::{first_special, is_special, special_bits};

/// Returns the number of leading ASCII bytes without quotes, backslashes and control characters.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(block) = bytes[length..].first_chunk() {
        if let Some(place) = first_special(*block) {
            return length + place;
        }
        length += 8;
    }
    length + bytes[length..].iter().take_while(|byte| !is_special(**byte)).count()
}

/// Returns the number of leading bytes that are complete characters and escapes of a string.
///
/// After them, the string or the chunk ends, or a byte needs a closer look.
#[inline]
pub(super) fn settled_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(block) = bytes[length..].first_chunk::<64>() {
        let mut special = special_bits(block);
        let mut next = length + 64;
        while special != 0 {
            let lowest = special & special.wrapping_neg();
            let place = length + special.trailing_zeros() as usize;
            if bytes[place] == b'\\' && bytes.get(place + 1).is_some_and(|byte| completes_escape(*byte)) {
                special &= !(lowest | lowest << 1);
                next = next.max(place + 2);
                continue;
            }
            let wide = multibyte_length(&bytes[place..]);
            if wide == 0 {
                return place;
            }
            let passed = u32::try_from(place + wide - length).unwrap_or(u32::MAX);
            special &= u64::MAX.checked_shl(passed).unwrap_or(0);
            next = next.max(place + wide);
        }
        length = next;
    }
    loop {
        length += plain_length(&bytes[length..]);
        length += match bytes[length..] {
            [b'\\', byte, ..] if completes_escape(byte) => 2,
            _ => match multibyte_length(&bytes[length..]) {
                0 => return length,
                wide => wide,
            },
        };
    }
}

/// Whether a backslash and this byte are a complete escape.
#[inline]
pub(super) fn completes_escape(byte: u8) -> bool {
    const IS_ESCAPE_END: [bool; 256] = {
        let mut ends = [false; 256];
        let all = br#""\/bfnrt"#;
        let mut index = 0;
        while index < all.len() {
            ends[all[index] as usize] = true;
            index += 1;
        }
        ends
    };
    IS_ESCAPE_END[usize::from(byte)]
}

/// Returns the number of leading bytes that are complete, valid multi-byte characters.
#[inline]
pub(super) fn multibyte_length(bytes: &[u8]) -> usize {
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
    fn every_byte_is_classified_at_every_position() {
        for length in 0..50 {
            assert_eq!(plain_length(&vec![b'a'; length]), length);
            for place in 0..length {
                for byte in 0..=0xFF {
                    let mut bytes = vec![b'~'; length];
                    bytes[place] = byte;
                    let expected = if is_special(byte) { place } else { length };
                    assert_eq!(plain_length(&bytes), expected, "{byte:#x} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn the_settled_part_ends_at_a_special_byte() {
        let parts = ["a", "ab \\n", "\\\\", "\\\"", "é", "中文", "😀", "{\\t}", "0123456789abcdef"];
        for end in ["", "\"", "\\", "\\u0041", "\u{1}", "\\x"] {
            for seed in 0..2_000_usize {
                let mut text = String::new();
                let mut number = seed;
                while text.len() < seed % 200 {
                    number = number.wrapping_mul(31) + 7;
                    text.push_str(parts[number / 5 % parts.len()]);
                }
                let settled = text.len();
                text.push_str(end);
                let after = if end == "\"" { "\"\\\\" } else { "" };
                text.push_str(after);
                assert_eq!(settled_length(text.as_bytes()), settled, "{text}");
            }
        }
        assert_eq!(settled_length(&[&[b'a'; 70][..], &[0xC3]].concat()), 70);
    }

    #[test]
    fn wide_characters_are_classified_correctly() {
        for character in
            ['\u{80}', 'é', '\u{7FF}', '中', '\u{D7FF}', '\u{E000}', '\u{FFFF}', '😀', '\u{3FFFF}']
        {
            let text = character.to_string();
            let taken = multibyte_length(text.as_bytes());
            assert!(taken == text.len() || taken == 0, "{character:?}");
            assert_eq!(multibyte_length(&text.as_bytes()[..text.len() - 1]), 0, "{character:?}");
            assert_eq!(multibyte_length(format!("{text}a").as_bytes()), taken, "{character:?}");
        }
        for lead in 0x80..=0xFF_u8 {
            for second in 0..=0xFF_u8 {
                for rest in [[0x80, 0x80], [0xBF, 0xBF], [0x80, 0x41], [0x41, 0x80]] {
                    let bytes = [lead, second, rest[0], rest[1]];
                    let taken = multibyte_length(&bytes);
                    assert!(std::str::from_utf8(&bytes[..taken]).is_ok(), "{bytes:x?}");
                }
            }
        }
        assert_eq!(multibyte_length("中文é😀x".as_bytes()), 12);
    }
}
