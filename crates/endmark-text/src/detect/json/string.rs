//! Scans the content of a JSON string that may be cut anywhere.

use serde::{Deserialize, Serialize};

use super::super::utf8::{PartialCharacter, Utf8Step};
use super::plain_characters::{completes_escape, settled_length};

/// The position within a character or escape of a string.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum StringState {
    /// Between two characters.
    Plain,
    /// After a backslash.
    Escape,
    /// After `\u` and this many hexadecimal digits.
    Unicode { digits: u8, unit: u16 },
    /// After the escape of a high surrogate. The low surrogate may still follow.
    AfterHigh,
    /// Within a multi-byte character.
    Character(PartialCharacter),
}

/// The state of a string after its opening quote. Lone surrogate escapes are accepted (RFC 8259, section
/// 8.2).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StringScanner {
    inside: StringState,
    /// Start of the incomplete character, escape or surrogate pair.
    pending: usize,
    /// Start of the incomplete escape. If it follows a high surrogate, `pending` is the start of the pair.
    escape: usize,
}

/// Where and why a scan of a string stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringScan {
    /// At the end of the chunk, within the string.
    Open,
    /// After the closing quote, at this index.
    Closed(usize),
    /// At this index, a raw control character, which strict JSON does not allow.
    Control(usize),
    /// At this index, an invalid byte.
    Invalid(usize, &'static str),
}

impl StringScanner {
    /// Creates the state after an opening quote.
    #[inline]
    pub(super) fn new() -> Self {
        Self { inside: StringState::Plain, pending: 0, escape: 0 }
    }

    /// Whether this state is possible in a string whose content so far is `start..end`.
    pub(super) fn is_consistent(&self, start: usize, end: usize) -> bool {
        let inside = match self.inside {
            StringState::Plain => return true,
            StringState::Unicode { digits, .. } => digits <= 3,
            StringState::Character(character) => character.is_consistent(),
            StringState::Escape | StringState::AfterHigh => true,
        };
        let escape = matches!(self.inside, StringState::Character(_)) || (start..=end).contains(&self.escape);
        inside && escape && (start..=end).contains(&self.pending)
    }

    /// Returns the end of the settled part of the string. `position` is the end of the text.
    pub(super) fn settled_end(&self, position: usize) -> usize {
        match self.inside {
            StringState::Plain => position,
            _ => self.pending,
        }
    }

    /// Whether no character or escape is incomplete.
    pub(super) fn is_between_characters(&self) -> bool {
        matches!(self.inside, StringState::Plain)
    }

    /// Whether the text ends within an escape, or between the halves of a surrogate pair.
    pub(super) fn is_in_escape(&self) -> bool {
        matches!(self.inside, StringState::Escape | StringState::Unicode { .. } | StringState::AfterHigh)
    }

    /// Whether the text ends within a multi-byte character.
    pub(super) fn is_in_character(&self) -> bool {
        matches!(self.inside, StringState::Character(_))
    }

    /// Continues with the bytes of `chunk` from `at` on. The chunk begins at `base` in the text.
    #[inline]
    pub(super) fn scan(&mut self, chunk: &[u8], mut at: usize, base: usize) -> StringScan {
        loop {
            if matches!(self.inside, StringState::Plain) {
                at += settled_length(&chunk[at..]);
            }
            let Some(&byte) = chunk.get(at) else { return StringScan::Open };
            match self.inside {
                StringState::Plain | StringState::AfterHigh => match byte {
                    b'"' => return StringScan::Closed(at + 1),
                    b'\\' => self.begin_escape(base + at),
                    ..0x20 => {
                        self.inside = StringState::Plain;
                        return StringScan::Control(at);
                    }
                    0x20..0x80 => self.inside = StringState::Plain,
                    0x80.. => match PartialCharacter::begin(byte) {
                        Some(character) => {
                            self.pending = base + at;
                            self.inside = StringState::Character(character);
                        }
                        None => return StringScan::Invalid(at, "invalid UTF-8"),
                    },
                },
                StringState::Character(character) => match character.next(byte) {
                    Utf8Step::Complete => self.inside = StringState::Plain,
                    Utf8Step::Incomplete(next) => self.inside = StringState::Character(next),
                    Utf8Step::Invalid => return StringScan::Invalid(at, "invalid UTF-8"),
                },
                StringState::Escape => match byte {
                    _ if completes_escape(byte) => self.inside = StringState::Plain,
                    b'u' => self.inside = StringState::Unicode { digits: 0, unit: 0 },
                    _ => return StringScan::Invalid(at, "not an escape sequence"),
                },
                StringState::Unicode { digits, unit } => match hexadecimal_value(byte) {
                    Some(digit) => self.push_unicode_digit(digits + 1, unit << 4 | digit),
                    None => return StringScan::Invalid(at, "not a hexadecimal digit"),
                },
            }
            at += 1;
        }
    }

    fn begin_escape(&mut self, offset: usize) {
        if !matches!(self.inside, StringState::AfterHigh) {
            self.pending = offset;
        }
        self.escape = offset;
        self.inside = StringState::Escape;
    }

    /// Processes a hexadecimal digit. The escape now has `digits` digits with the value `unit`.
    fn push_unicode_digit(&mut self, digits: u8, unit: u16) {
        // A high surrogate before this escape is settled once this escape cannot be its low surrogate.
        let may_be_low = match digits {
            1 => unit == 0xD,
            2 => (0xDC..=0xDF).contains(&unit),
            _ => true,
        };
        if !may_be_low {
            self.pending = self.escape;
        }
        self.inside = match digits {
            4 if (0xD800..=0xDBFF).contains(&unit) => StringState::AfterHigh,
            4 => StringState::Plain,
            _ => StringState::Unicode { digits, unit },
        };
    }
}

fn hexadecimal_value(byte: u8) -> Option<u16> {
    char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok())
}
