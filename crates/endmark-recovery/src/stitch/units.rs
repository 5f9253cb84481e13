//! A text as a sequence of units that are equal where the meaning is equal.
//!
//! In JSON, a repeated part may return with other white space between its tokens or other escapes in its strings. A
//! comparison by units ignores that. A unit records whether it is inside a string, so that a brace in a string never
//! matches a structural brace.

use std::cell::OnceCell;
use std::rc::Rc;

/// Marks a unit that is content of a string.
const CONTENT: u32 = 1 << 24;
/// Mask for the character of a unit.
pub(super) const CHARACTER: u32 = !CONTENT;

/// Where a reading of units begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Text without grammar: every character is a unit.
    Plain,
    /// JSON, between tokens.
    Structure,
    /// JSON, inside a string.
    Content,
}

/// Units between two positions from which a text can be read again.
const MARK_INTERVAL_UNITS: usize = 256;

/// The units of a text, with a way back from a unit to its position.
#[derive(Debug, Default, Clone)]
pub(super) struct Units<'a> {
    text: &'a str,
    pub(super) codes: Codes,
    /// Positions in the text, with the number of units before each. What lies between is read again on demand, which
    /// is rare.
    marks: Vec<(usize, Walk)>,
    /// Where the reading ended.
    pub(super) end: Walk,
    /// Whether the reading ended inside a string.
    pub(super) ends_in_content: bool,
}

/// The codes of units. They may be a prefix of an array that a longer text shares.
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

    /// Returns the lowest byte of each code. Bytes can be searched fast.
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

/// State while units are read.
#[derive(Default)]
struct Reader {
    codes: Vec<u32>,
    marks: Vec<(usize, Walk)>,
    end: Walk,
}

impl Reader {
    fn new(reading: Reading) -> Self {
        Self { end: Walk::new(reading), ..Self::default() }
    }

    /// Continues reading, in a text that begins with what was read before, up to `most` units or slightly more.
    fn read_further(&mut self, text: &str, most: usize) {
        self.codes.reserve(text.len().min(most).saturating_sub(self.codes.len()));
        while self.end.position < text.len() && self.codes.len() < most {
            self.marks.push((self.codes.len(), self.end));
            let enough = most.min(self.codes.len() + MARK_INTERVAL_UNITS);
            while self.codes.len() < enough {
                let most = enough - self.codes.len();
                let letters = self.end.letters(&text.as_bytes()[self.end.position..], most);
                self.codes.extend(letters.iter().map(|letter| u32::from(*letter) | CONTENT));
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

    /// Reads a text up to `most` units or slightly more.
    pub(super) fn read_up_to(text: &'a str, reading: Reading, most: usize) -> Self {
        let mut reader = Reader::new(reading);
        reader.read_further(text, most);
        reader.units(text)
    }

    /// Reads the beginning of a text, and all of it. The second result is empty if both are equal.
    pub(super) fn read_both(text: &'a str, beginning: usize, reading: Reading) -> (Self, Self) {
        let mut reader = Reader::new(reading);
        let first = &text[..beginning];
        reader.read_further(first, usize::MAX);
        if beginning == text.len() {
            return (reader.units(first), Self::default());
        }
        if reader.end.is_in_word() {
            // The units of a word or a number depend on how it continues.
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
        count.checked_sub(1).and_then(|last| self.place(last)).map_or(0, |(_, end)| end)
    }

    /// Returns the byte offset at which the unit with this index begins, or the end of the text.
    pub(super) fn unit_start(&self, index: usize) -> usize {
        self.place(index).map_or_else(|| self.units_end(self.len()), |(start, _)| start)
    }

    /// Returns where a unit begins and ends.
    fn place(&self, index: usize) -> Option<(usize, usize)> {
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

    /// Returns the characters of units, of structure and of content.
    pub(super) fn chars(&self, range: std::ops::Range<usize>) -> impl DoubleEndedIterator<Item = char> + '_ {
        self.codes.get(range).unwrap_or_default().iter().map(|code| character(*code))
    }
}

/// Returns the character of a unit.
pub(super) fn character(code: u32) -> char {
    char::from_u32(code & CHARACTER).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the unit of a character in a string or in text without grammar.
pub(super) fn content(character: char) -> u32 {
    u32::from(character) | CONTENT
}

/// Whether a unit is content of a string or of text without grammar.
pub(super) fn is_content(code: u32) -> bool {
    code & CONTENT != 0
}

/// How far a text was read, with the state that is needed to continue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Walk {
    /// The byte offset of the next character.
    pub(super) position: usize,
    plain: bool,
    /// Inside a string.
    content: bool,
    /// The end of the last token, if that was a word.
    word_end: Option<usize>,
}

impl Walk {
    pub(super) fn new(reading: Reading) -> Self {
        Self { plain: reading == Reading::Plain, content: reading != Reading::Structure, ..Self::default() }
    }

    /// Whether the last token is a word, which may continue.
    pub(super) fn is_in_word(&self) -> bool {
        self.word_end == Some(self.position)
    }

    /// Moves this reading to another position, as if the preceding text had another length.
    pub(super) fn move_to(self, position: usize) -> Self {
        // Of a word it only matters whether it ends exactly here.
        let word_end = if self.is_in_word() { Some(position) } else { self.word_end.map(|_| usize::MAX) };
        Self { position, word_end, ..self }
    }

    /// Returns the leading letters that are units by themselves, at most `most`. They are most of a text.
    #[inline]
    fn letters<'t>(&self, rest: &'t [u8], most: usize) -> &'t [u8] {
        if !self.content {
            return &[];
        }
        let is_letter = |byte: &u8| byte.is_ascii() && (self.plain || !matches!(byte, b'"' | b'\\'));
        let rest = &rest[..rest.len().min(most)];
        &rest[..rest.iter().position(|byte| !is_letter(byte)).unwrap_or(rest.len())]
    }

    /// Takes the next step and calls `unit` for each unit with its code, start and end. Returns false at the end.
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
            (true, _) if self.plain => unit(u32::from(letter) | CONTENT, position, end),
            (true, '\\') => {
                let (code, length) = escape(text.get(position..).unwrap_or_default());
                end = position + length;
                unit(code | CONTENT, position, end);
            }
            (_, '"') => {
                self.content = !self.content;
                unit(u32::from('"'), position, end);
            }
            (true, _) => unit(u32::from(letter) | CONTENT, position, end),
            (false, ' ' | '\t' | '\r' | '\n' | '\u{feff}') => {}
            (false, '0'..='9') if !self.is_in_word() => {
                if self.word_end.is_some() {
                    unit(u32::from(' '), position, position);
                }
                end = number(text, position, &mut unit);
                self.word_end = Some(end);
            }
            (false, _) => {
                let in_word = letter.is_alphanumeric() || matches!(letter, '.' | '+' | '-');
                // White space that separates two words has a meaning: `1 2` is not `12`.
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

/// Reads a number without the trailing zeros of its fraction: `1.50` equals `1.5`. Returns where it ends.
fn number(text: &str, start: usize, unit: &mut impl FnMut(u32, usize, usize)) -> usize {
    let bytes = &text.as_bytes()[start..];
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let fraction = if bytes.get(whole) == Some(&b'.') { digits(whole + 1) } else { 0 };
    let mut length = whole;
    let mut compared = whole;
    if fraction > 0 {
        length = whole + 1 + fraction;
        compared = length;
        // A number at the end may still continue.
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

/// Reads an escape sequence. Returns its unit and its length in bytes, at least 1.
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

/// Returns the value of the four hexadecimal digits at this position.
fn hex(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 4)?;
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Reading, Units, Walk};

    #[test]
    fn every_unit_is_found_again_in_every_reading() {
        let text = r#"{"a": [1.50, 2 3, true], "é\n\u00e9": "中\ud83d\ude00 \"x\""}, "#.repeat(40);
        for reading in [Reading::Plain, Reading::Structure, Reading::Content] {
            let mut expected = Vec::new();
            let mut walk = Walk::new(reading);
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
                // A text that continues within an escape is read again.
                let continues = units.codes.starts_with(&first.codes);
                assert!(beginning == text.len() || !continues || *all.codes == *units.codes, "{beginning}");
            }
        }
    }
}
