//! A text as a sequence of units that compare equal wherever the meaning is equal.
//!
//! In JSON a repeated part may come back with other whitespace between its tokens or other escapes in
//! its strings. Compared unit by unit that difference is gone, and a unit knows whether it stands inside
//! a string, so that a brace in a string never matches a brace of the structure.

/// Marks a unit that is content of a string.
const CONTENT: u32 = 1 << 24;

/// Where a reading of units begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Every character is a unit: text without grammar.
    Plain,
    /// JSON, between tokens.
    Structure,
    /// JSON, inside a string.
    Content,
}

/// The units of a text and where each of them begins and ends, in bytes.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) codes: Vec<u32>,
    starts: Vec<usize>,
    ends: Vec<usize>,
    /// Whether the reading ended inside a string.
    pub(super) ends_in_content: bool,
}

impl Units {
    /// Reads the units of a text.
    pub(super) fn read(text: &str, reading: Reading) -> Self {
        let mut units = Self::default();
        let ends_in_content = walk(text, reading, |code, start, end| {
            units.codes.push(code);
            units.starts.push(start);
            units.ends.push(end);
        });
        units.ends_in_content = ends_in_content;
        units
    }

    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// The byte offset behind the first `count` units.
    pub(super) fn end_of(&self, count: usize) -> usize {
        count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0)
    }

    /// The byte offset where the unit with this index begins; the end of all where there is none.
    pub(super) fn start_of(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or_else(|| self.end_of(self.len()))
    }

    /// The characters the units stand for, structure and content alike.
    pub(super) fn chars(&self, range: std::ops::Range<usize>) -> impl DoubleEndedIterator<Item = char> + '_ {
        self.codes.get(range).unwrap_or_default().iter().map(|code| character(*code))
    }
}

/// The character a unit stands for.
pub(super) fn character(code: u32) -> char {
    char::from_u32(code & !CONTENT).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Whether a unit is content of a string (or of a text without grammar).
pub(super) fn is_content(code: u32) -> bool {
    code & CONTENT != 0
}

/// A number that is equal for two texts exactly when their units are (up to collisions of 128 bits).
pub(super) fn identity(text: &str, reading: Reading) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut sum: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    walk(text, reading, |code, _, _| sum = (sum ^ u128::from(code)).wrapping_mul(PRIME));
    sum
}

/// Calls back for each unit with its code, start and end; answers whether the end is inside a string.
fn walk(text: &str, reading: Reading, mut unit: impl FnMut(u32, usize, usize)) -> bool {
    if reading == Reading::Plain {
        for (start, letter) in text.char_indices() {
            unit(u32::from(letter) | CONTENT, start, start + letter.len_utf8());
        }
        return true;
    }
    let mut content = reading == Reading::Content;
    let mut position = 0;
    let mut last_word_end = usize::MAX;
    while let Some(letter) = text.get(position..).and_then(|rest| rest.chars().next()) {
        let mut end = position + letter.len_utf8();
        match (content, letter) {
            (true, '\\') => {
                let (code, length) = escape(text.get(position..).unwrap_or_default());
                end = position + length;
                unit(code | CONTENT, position, end);
            }
            (_, '"') => {
                content = !content;
                unit(u32::from('"'), position, end);
            }
            (true, _) => unit(u32::from(letter) | CONTENT, position, end),
            (false, ' ' | '\t' | '\r' | '\n' | '\u{feff}') => {}
            (false, '0'..='9') if !last_word_end.eq(&position) => {
                if last_word_end != usize::MAX && last_word_end < position {
                    unit(u32::from(' '), position, position);
                }
                end = number(text, position, &mut unit);
                last_word_end = end;
            }
            (false, _) => {
                let in_word = letter.is_alphanumeric() || matches!(letter, '.' | '+' | '-');
                // Whitespace that keeps two words apart is meaning: `1 2` is not `12`.
                if in_word && last_word_end != usize::MAX && last_word_end < position {
                    unit(u32::from(' '), position, position);
                }
                unit(u32::from(letter), position, end);
                last_word_end = if in_word { end } else { usize::MAX };
            }
        }
        if content {
            last_word_end = usize::MAX;
        }
        position = end;
    }
    content
}

/// Reads a number, without the zeros that end its fraction: `1.50` is `1.5`. Answers where it ends.
fn number(text: &str, start: usize, unit: &mut impl FnMut(u32, usize, usize)) -> usize {
    let bytes = &text.as_bytes()[start..];
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let fraction = if bytes.get(whole) == Some(&b'.') { digits(whole + 1) } else { 0 };
    let mut length = whole;
    let mut told = whole;
    if fraction > 0 {
        length = whole + 1 + fraction;
        told = length;
        // A number that touches the end may still go on.
        let goes_on = bytes.get(length).is_none_or(|next| matches!(next, b'e' | b'E'));
        while !goes_on && told > whole + 2 && bytes[told - 1] == b'0' {
            told -= 1;
        }
    }
    for (index, digit) in bytes[..told].iter().enumerate() {
        let end = if index + 1 == told { length } else { index + 1 };
        unit(u32::from(*digit), start + index, start + end);
    }
    start + length
}

/// Reads an escape sequence: its unit and its length in bytes, at least 1.
fn escape(rest: &str) -> (u32, usize) {
    let simple = |letter: char| (u32::from(letter), 2);
    match rest.as_bytes().get(1) {
        Some(b'n') => simple('\n'),
        Some(b't') => simple('\t'),
        Some(b'r') => simple('\r'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(sign @ (b'"' | b'\\' | b'/')) => simple(char::from(*sign)),
        Some(b'u') => match (hex(rest, 2), hex(rest, 8)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) if rest.get(6..8) == Some("\\u") => {
                (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
            }
            (Some(code), _) => (code, 6),
            (None, _) => (u32::from('\\'), 1),
        },
        _ => (u32::from('\\'), 1),
    }
}

/// The four hexadecimal digits at this place.
fn hex(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 4)?;
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}
