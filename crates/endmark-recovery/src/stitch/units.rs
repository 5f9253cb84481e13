//! Reads a text as a sequence of units. Units are equal if their meaning is equal.
//!
//! In JSON, a repeated part may have different whitespace between its tokens, or different escapes in its
//! strings. Comparing units ignores such differences. A unit records whether it is in a string, so a brace in
//! a string never matches a structural brace.

use std::cell::OnceCell;
use std::rc::Rc;

/// Marks a unit that is content of a string.
const CONTENT_FLAG: u32 = 1 << 24;
/// Mask for the character of a unit.
pub(super) const CHARACTER_MASK: u32 = !CONTENT_FLAG;

/// The state in which a reading of units begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Text without a grammar. Every character is a unit.
    Plain,
    /// JSON, between tokens.
    Structure,
    /// JSON, inside a string.
    Content,
}

/// Number of units between two positions from which a text can be read again.
const MARK_INTERVAL_UNITS: usize = 256;

/// The units of a text. The position of each unit in the text can be found again.
#[derive(Debug, Default, Clone)]
pub(super) struct Units<'a> {
    text: &'a str,
    pub(super) codes: Codes,
    /// Positions in the text, each with the number of units before it. Units in between are read again on
    /// demand, which is rare.
    marks: Vec<(usize, ReadState)>,
    /// Where the reading ended.
    pub(super) end: ReadState,
    /// Whether the reading ended inside a string.
    pub(super) ends_in_content: bool,
}

/// The codes of units. They may be the beginning of a sequence that a longer text shares.
#[derive(Debug, Default, Clone)]
pub(super) struct Codes {
    all: Rc<AllCodes>,
    count: usize,
}

#[derive(Debug, Default)]
struct AllCodes {
    codes: Vec<u32>,
    /// The lowest byte of each code, computed on demand.
    lowest: OnceCell<Vec<u8>>,
}

impl Codes {
    fn new(codes: Vec<u32>) -> Self {
        let count = codes.len();
        Self { all: Rc::new(AllCodes { codes, lowest: OnceCell::new() }), count }
    }

    /// Returns the lowest byte of each code. A byte search is much faster than a search of `u32` values.
    pub(super) fn lowest_bytes(&self) -> &[u8] {
        let low = |code: &u32| code.to_le_bytes()[0];
        &self.all.lowest.get_or_init(|| self.all.codes.iter().map(low).collect())[..self.count]
    }
}

impl std::ops::Deref for Codes {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.all.codes[..self.count]
    }
}

/// The state while units are read.
#[derive(Default)]
struct UnitReader {
    codes: Vec<u32>,
    marks: Vec<(usize, ReadState)>,
    end: ReadState,
}

impl UnitReader {
    fn new(reading: Reading) -> Self {
        Self { end: ReadState::new(reading), ..Self::default() }
    }

    /// Reads up to `most` units in total, or slightly more. The text must begin with the text that was read
    /// before.
    fn read_further(&mut self, text: &str, most: usize) {
        self.codes.reserve(text.len().min(most).saturating_sub(self.codes.len()));
        while self.end.position < text.len() && self.codes.len() < most {
            self.marks.push((self.codes.len(), self.end));
            let enough = most.min(self.codes.len() + MARK_INTERVAL_UNITS);
            while self.codes.len() < enough {
                let most = enough - self.codes.len();
                let letters = self.end.plain_letters(&text.as_bytes()[self.end.position..], most);
                self.codes.extend(letters.iter().map(|letter| u32::from(*letter) | CONTENT_FLAG));
                self.end.position += letters.len();
                if letters.len() == most || !self.end.step(text, |code, _, _| self.codes.push(code)) {
                    break;
                }
            }
        }
    }

    fn units(self, text: &str) -> Units<'_> {
        let Self { codes, marks, end } = self;
        Units { text, codes: Codes::new(codes), marks, end, ends_in_content: end.content }
    }
}

impl<'a> Units<'a> {
    /// Reads the units of a text.
    pub(super) fn read(text: &'a str, reading: Reading) -> Self {
        Self::read_up_to(text, reading, usize::MAX)
    }

    /// Reads up to `most` units of a text, or slightly more.
    pub(super) fn read_up_to(text: &'a str, reading: Reading, most: usize) -> Self {
        let mut reader = UnitReader::new(reading);
        reader.read_further(text, most);
        reader.units(text)
    }

    /// Reads the first `beginning` bytes of a text, and all of it. If both are the same, the second result is
    /// empty.
    pub(super) fn read_both(text: &'a str, beginning: usize, reading: Reading) -> (Self, Self) {
        let mut reader = UnitReader::new(reading);
        let first = &text[..beginning];
        reader.read_further(first, usize::MAX);
        if beginning == text.len() {
            return (reader.units(first), Self::default());
        }
        if reader.end.is_in_word() {
            // If a word or number continues after the beginning, its units differ, so the text is read
            // separately.
            return (reader.units(first), Self::read(text, reading));
        }
        let (count, marks, end) = (reader.codes.len(), reader.marks.clone(), reader.end);
        reader.read_further(text, usize::MAX);
        let all = reader.units(text);
        let codes = Codes { count, ..all.codes.clone() };
        (Self { text: first, codes, marks, end, ends_in_content: end.content }, all)
    }

    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// Returns the byte offset after the first `count` units.
    pub(super) fn units_end(&self, count: usize) -> usize {
        count.checked_sub(1).and_then(|last| self.unit_range(last)).map_or(0, |(_, end)| end)
    }

    /// Returns the byte offset of the unit with this index, or the end of the text.
    pub(super) fn unit_start(&self, index: usize) -> usize {
        self.unit_range(index).map_or_else(|| self.units_end(self.len()), |(start, _)| start)
    }

    /// Returns the start and the end of a unit.
    fn unit_range(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.len() {
            return None;
        }
        let mark = self.marks.partition_point(|(before, _)| *before <= index).checked_sub(1)?;
        let (mut count, mut walk) = self.marks[mark];
        let mut found = None;
        while found.is_none()
            && walk.step(self.text, |_, start, end| {
                if count == index {
                    found = Some((start, end));
                }
                count += 1;
            })
        {}
        found
    }

    /// Returns the characters of these units, inside and outside strings.
    pub(super) fn chars(&self, range: std::ops::Range<usize>) -> impl DoubleEndedIterator<Item = char> + '_ {
        self.codes.get(range).unwrap_or_default().iter().map(|code| character(*code))
    }
}

/// Returns the character of a unit.
pub(super) fn character(code: u32) -> char {
    char::from_u32(code & CHARACTER_MASK).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the unit of a character in a string, or in text without a grammar.
pub(super) fn content_unit(character: char) -> u32 {
    u32::from(character) | CONTENT_FLAG
}

/// Whether a unit is in a string, or in text without a grammar.
pub(super) fn is_content(code: u32) -> bool {
    code & CONTENT_FLAG != 0
}

/// How far a text was read, and the state that is needed to continue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ReadState {
    /// Byte offset of the next character.
    pub(super) position: usize,
    plain: bool,
    /// Whether the position is in a string.
    content: bool,
    /// End of the last token, if it was a word.
    word_end: Option<usize>,
}

impl ReadState {
    pub(super) fn new(reading: Reading) -> Self {
        Self { plain: reading == Reading::Plain, content: reading != Reading::Structure, ..Self::default() }
    }

    /// Whether the last token is a word that may continue.
    pub(super) fn is_in_word(&self) -> bool {
        self.word_end == Some(self.position)
    }

    /// Moves this reading to another position, as if the text before it had another length.
    pub(super) fn move_to(self, position: usize) -> Self {
        // For a word, only one fact matters: whether it ends exactly here.
        let word_end = if self.is_in_word() { Some(position) } else { self.word_end.map(|_| usize::MAX) };
        Self { position, word_end, ..self }
    }

    /// Returns the leading letters that are units by themselves, at most `most`. Most of a text consists of
    /// them.
    #[inline]
    fn plain_letters<'t>(&self, rest: &'t [u8], most: usize) -> &'t [u8] {
        if !self.content {
            return &[];
        }
        let is_letter = |byte: &u8| byte.is_ascii() && (self.plain || !matches!(byte, b'"' | b'\\'));
        let rest = &rest[..rest.len().min(most)];
        &rest[..rest.iter().position(|byte| !is_letter(byte)).unwrap_or(rest.len())]
    }

    /// Reads the next token, and calls `unit` with the code, start and end of each of its units. Returns
    /// false at the end of the text.
    #[inline]
    pub(super) fn step(&mut self, text: &str, mut unit: impl FnMut(u32, usize, usize)) -> bool {
        let position = self.position;
        let Some(&byte) = text.as_bytes().get(position) else { return false };
        let letter = if byte.is_ascii() {
            char::from(byte)
        } else {
            text.get(position..).and_then(|rest| rest.chars().next()).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        let mut end = position + letter.len_utf8();
        match (self.content, letter) {
            (true, _) if self.plain => unit(u32::from(letter) | CONTENT_FLAG, position, end),
            (true, '\\') => {
                let (code, length) = read_escape(text.get(position..).unwrap_or_default());
                end = position + length;
                unit(code | CONTENT_FLAG, position, end);
            }
            (_, '"') => {
                self.content = !self.content;
                unit(u32::from('"'), position, end);
            }
            (true, _) => unit(u32::from(letter) | CONTENT_FLAG, position, end),
            (false, ' ' | '\t' | '\r' | '\n' | '\u{feff}') => {}
            (false, '0'..='9') if !self.is_in_word() => {
                if self.word_end.is_some() {
                    unit(u32::from(' '), position, position);
                }
                end = read_number(text, position, &mut unit);
                self.word_end = Some(end);
            }
            (false, _) => {
                let in_word = letter.is_alphanumeric() || matches!(letter, '.' | '+' | '-');
                // Whitespace between two words has a meaning: `1 2` is not `12`.
                if in_word && self.word_end.is_some() && !self.is_in_word() {
                    unit(u32::from(' '), position, position);
                }
                unit(u32::from(letter), position, end);
                self.word_end = in_word.then_some(end);
            }
        }
        if self.content {
            self.word_end = None;
        }
        self.position = end;
        true
    }
}

/// Reads a number without the trailing zeros of its fraction, because `1.50` equals `1.5`. Returns its end.
fn read_number(text: &str, start: usize, unit: &mut impl FnMut(u32, usize, usize)) -> usize {
    let bytes = &text.as_bytes()[start..];
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let fraction = if bytes.get(whole) == Some(&b'.') { digits(whole + 1) } else { 0 };
    let mut length = whole;
    let mut compared = whole;
    if fraction > 0 {
        length = whole + 1 + fraction;
        compared = length;
        // A number at the end of the text may continue.
        let continues = bytes.get(length).is_none_or(|next| matches!(next, b'e' | b'E'));
        while !continues && compared > whole + 2 && bytes[compared - 1] == b'0' {
            compared -= 1;
        }
    }
    for (index, digit) in bytes[..compared].iter().enumerate() {
        let end = if index + 1 == compared { length } else { index + 1 };
        unit(u32::from(*digit), start + index, start + end);
    }
    start + length
}

/// Reads an escape sequence. Returns its unit, and its length in bytes, which is at least 1.
fn read_escape(rest: &str) -> (u32, usize) {
    let simple = |letter: char| (u32::from(letter), 2);
    match rest.as_bytes().get(1) {
        Some(b'n') => simple('\n'),
        Some(b't') => simple('\t'),
        Some(b'r') => simple('\r'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(sign @ (b'"' | b'\\' | b'/')) => simple(char::from(*sign)),
        Some(b'u') => match (hexadecimal_value(rest, 2), hexadecimal_value(rest, 8)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) if rest.get(6..8) == Some("\\u") => {
                (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
            }
            (Some(code), _) => (code, 6),
            (None, _) => (u32::from('\\'), 1),
        },
        _ => (u32::from('\\'), 1),
    }
}

/// Returns the value of the four hexadecimal digits at `at`, or `None` for other text.
fn hexadecimal_value(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 4)?;
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{ReadState, Reading, Units};

    #[test]
    fn every_unit_is_found_again_in_every_reading() {
        let text = r#"{"a": [1.50, 2 3, true], "é\n\u00e9": "中\ud83d\ude00 \"x\""}, "#.repeat(40);
        for reading in [Reading::Plain, Reading::Structure, Reading::Content] {
            let mut expected = Vec::new();
            let mut walk = ReadState::new(reading);
            while walk.step(&text, |code, start, end| expected.push((code, start, end))) {}
            let units = Units::read(&text, reading);
            assert_eq!(*units.codes, expected.iter().map(|(code, ..)| *code).collect::<Vec<_>>());
            for (index, (_, start, end)) in expected.iter().enumerate() {
                assert_eq!((units.unit_start(index), units.units_end(index + 1)), (*start, *end), "{index}");
            }
            assert_eq!(units.unit_start(units.len()), units.units_end(units.len()));
            let some = Units::read_up_to(&text, reading, 300);
            assert!((300..320).contains(&some.len()));
            assert_eq!(*some.codes, units.codes[..some.len()]);
            for beginning in
                (0..text.len()).step_by(7).filter(|at| text.is_char_boundary(*at)).chain([text.len()])
            {
                let (first, all) = Units::read_both(&text, beginning, reading);
                let alone = Units::read(&text[..beginning], reading);
                assert_eq!(
                    (&*first.codes, first.end, first.ends_in_content),
                    (&*alone.codes, alone.end, alone.ends_in_content)
                );
                assert_eq!(first.codes.lowest_bytes().len(), first.len());
                assert_eq!(first.unit_start(first.len() / 2), alone.unit_start(first.len() / 2));
                // If the beginning ends within an escape, the text is read separately.
                let continues = units.codes.starts_with(&first.codes);
                assert!(beginning == text.len() || !continues || *all.codes == *units.codes, "{beginning}");
            }
        }
    }
}
