//! Scans a number (RFC 8259) that may be cut anywhere.

use serde::{Deserialize, Serialize};

/// The part of a number that was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Number {
    /// `-`
    Minus,
    /// `0`, after which no digit may follow
    Zero,
    /// `12`
    Integer,
    /// `12.`
    Point,
    /// `12.5`
    Fraction,
    /// `12e`
    Exponent,
    /// `12e+`
    ExponentSign,
    /// `12e+5`
    ExponentDigits,
}

/// Where and why a scan of a number stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberScan {
    /// At the end of the chunk, so the number may continue.
    Open(Number),
    /// Before the byte at this index, which is not part of the number.
    Ended(usize),
    /// At the byte at this index, which makes the number invalid.
    Invalid(usize),
}

impl Number {
    /// Begins a number. Returns `None` if no number begins with `byte`.
    #[inline]
    pub(super) fn begin(byte: u8) -> Option<Self> {
        match byte {
            b'-' => Some(Self::Minus),
            b'0' => Some(Self::Zero),
            b'1'..=b'9' => Some(Self::Integer),
            _ => None,
        }
    }

    /// Whether the number may end here.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits)
    }

    /// Continues with the bytes of `chunk` from `at` on.
    #[inline]
    pub(super) fn scan(mut self, chunk: &[u8], mut at: usize) -> NumberScan {
        loop {
            if self.accepts_digits() {
                at += digits_length(&chunk[at..]);
            }
            let Some(&byte) = chunk.get(at) else { return NumberScan::Open(self) };
            self = match (self, byte) {
                (Self::Zero | Self::Integer, b'.') => Self::Point,
                (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Self::Exponent,
                (Self::Zero, b'0'..=b'9') => return NumberScan::Invalid(at),
                (Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits, _) => {
                    return NumberScan::Ended(at);
                }
                (Self::Minus, b'0') => Self::Zero,
                (Self::Minus, b'1'..=b'9') => Self::Integer,
                (Self::Point, b'0'..=b'9') => Self::Fraction,
                (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
                (Self::Exponent | Self::ExponentSign, b'0'..=b'9') => Self::ExponentDigits,
                _ => return NumberScan::Invalid(at),
            };
            at += 1;
        }
    }

    /// Whether any number of digits may follow directly.
    #[inline]
    fn accepts_digits(self) -> bool {
        matches!(self, Self::Integer | Self::Fraction | Self::ExponentDigits)
    }
}

/// Returns the number of leading bytes that are digits.
#[inline]
pub(super) fn digits_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let mut length = 0;
    while let Some(word) = bytes[length..].first_chunk() {
        // A digit becomes 0 to 9. If an addition carries, it only sets high bits above the lowest one.
        let digits = u64::from_le_bytes(*word) ^ (ONES * u64::from(b'0'));
        let others = (digits.wrapping_add(ONES * (0x80 - 10)) | digits) & (ONES << 7);
        if others != 0 {
            return length + others.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length + bytes[length..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digit_scan_ends_after_the_last_digit() {
        for length in 0..30 {
            for byte in (0..=0xFF_u8).filter(|byte| !byte.is_ascii_digit()) {
                let mut bytes: Vec<u8> = b"0123456789".iter().copied().cycle().take(length).collect();
                assert_eq!(digits_length(&bytes), length);
                bytes.push(byte);
                bytes.extend(b"12345678");
                assert_eq!(digits_length(&bytes), length, "{byte:#x}");
            }
        }
    }
}
