//! Decodes one UTF-8 character that may be cut anywhere.

use serde::{Deserialize, Serialize};

/// The bytes that may still follow in a character. Only sequences that RFC 3629 allows are accepted: no
/// overlong forms, no surrogates, and nothing above U+10FFFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartialCharacter {
    missing: u8,
    lowest: u8,
    highest: u8,
}

/// The effect of a byte on an incomplete character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Utf8Step {
    /// The byte completes the character.
    Complete,
    /// More bytes must follow.
    Incomplete(PartialCharacter),
    /// The byte is invalid.
    Invalid,
}

impl PartialCharacter {
    /// Begins a multi-byte character. Returns `None` if `lead` does not begin one.
    pub(super) fn begin(lead: u8) -> Option<Self> {
        let (missing, lowest, highest) = match lead {
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xE1..=0xEC | 0xEE | 0xEF => (2, 0x80, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xF0 => (3, 0x90, 0xBF),
            0xF1..=0xF3 => (3, 0x80, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => return None,
        };
        Some(Self { missing, lowest, highest })
    }

    /// Whether this state can occur. Used to check restored states.
    pub(super) fn is_consistent(self) -> bool {
        (1..=3).contains(&self.missing)
    }

    /// Processes the next byte of the character.
    pub(super) fn next(self, byte: u8) -> Utf8Step {
        if byte < self.lowest || byte > self.highest {
            return Utf8Step::Invalid;
        }
        if self.missing == 1 {
            return Utf8Step::Complete;
        }
        Utf8Step::Incomplete(Self { missing: self.missing - 1, lowest: 0x80, highest: 0xBF })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the machine accepts `bytes` as exactly one character.
    fn is_character(bytes: &[u8]) -> bool {
        let Some(mut character) = PartialCharacter::begin(bytes[0]) else { return false };
        for (index, &byte) in bytes[1..].iter().enumerate() {
            match character.next(byte) {
                Utf8Step::Complete => return index + 2 == bytes.len(),
                Utf8Step::Incomplete(next) => character = next,
                Utf8Step::Invalid => return false,
            }
        }
        false
    }

    #[test]
    fn short_sequences_are_accepted_like_by_the_standard_library() {
        for lead in 0x80..=0xFF_u8 {
            for second in 0..=0xFF_u8 {
                let two = [lead, second];
                assert_eq!(is_character(&two), std::str::from_utf8(&two).is_ok(), "{two:x?}");
                for third in [0x00, 0x41, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF] {
                    let three = [lead, second, third];
                    let expected = std::str::from_utf8(&three).is_ok_and(|text| text.chars().count() == 1);
                    assert_eq!(is_character(&three), expected, "{three:x?}");
                    let four = [lead, second, third, 0x80];
                    let expected = std::str::from_utf8(&four).is_ok_and(|text| text.chars().count() == 1);
                    assert_eq!(is_character(&four), expected, "{four:x?}");
                }
            }
        }
    }
}
