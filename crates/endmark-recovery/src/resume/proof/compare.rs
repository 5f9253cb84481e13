//! Compares the received text with an answer that may repeat it.

/// Maximum number of compared characters for one answer, in addition to four times its length. Only
/// repetitive texts reach it. Without this limit, they would need quadratic time.
const MAX_COMPARED_CHARACTERS: usize = 1 << 19;

#[cfg(test)]
thread_local! {
    /// Number of characters that this thread has compared. Tests use it to measure the cost.
    pub(in crate::resume) static COMPARED_CHARACTERS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How far an answer agrees with the received text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// The answer agrees to the end of the received text, which is at this byte of the answer.
    Complete(usize),
    /// The answer agrees to its own end.
    Partial,
    No,
    /// The limit of compared characters was reached.
    Unknown,
}

/// Which differences are ignored, in addition to whitespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparisonTolerance {
    /// None.
    Exact,
    /// Different kinds of quotation marks and dashes, and emphasis.
    Prose,
    /// Characters may be escaped or not. A model may escape a line feed that was received raw.
    Json,
}

/// Compares an answer with the received text from several positions, with a total limit on compared
/// characters.
#[derive(Debug)]
pub(super) struct TextComparer {
    reading: ComparisonTolerance,
    characters_left: usize,
}

impl TextComparer {
    pub(super) fn new(reading: ComparisonTolerance, answer: &str) -> Self {
        Self {
            reading,
            characters_left: MAX_COMPARED_CHARACTERS.saturating_add(answer.len().saturating_mul(4)),
        }
    }

    /// Returns how far `answer` agrees with `expected`. In prose, emphasis may differ in the first `loose`
    /// bytes of `expected`.
    pub(super) fn compare(&mut self, expected: &str, loose: usize, answer: &str) -> Agreement {
        let (mut at, mut to) = (0, 0);
        let is_prose = self.reading == ComparisonTolerance::Prose;
        loop {
            let Some(signs_left) = self.characters_left.checked_sub(1) else { return Agreement::Unknown };
            self.characters_left = signs_left;
            #[cfg(test)]
            COMPARED_CHARACTERS.set(COMPARED_CHARACTERS.get() + 1);
            let (left, right) = (&expected[at..], &answer[to..]);
            if left.is_empty() {
                return Agreement::Complete(to);
            }
            if right.is_empty() {
                return Agreement::Partial;
            }
            let (Some(wanted), Some(given)) = (self.first_character(left), self.first_character(right))
            else {
                // At the cut, an escape may be incomplete, so compare its bytes.
                return match () {
                    () if right.starts_with(left) => Agreement::Complete(to + left.len()),
                    () if left.starts_with(right) || self.first_character(right).is_none() => {
                        Agreement::Partial
                    }
                    () => Agreement::No,
                };
            };
            let may_differ = is_prose && at < loose;
            if wanted.has_same_meaning(given)
                || is_prose && canonical_character(wanted.meaning) == canonical_character(given.meaning)
            {
                (at, to) = (at + wanted.length, to + given.length);
            } else if wanted.meaning.is_whitespace() || may_differ && is_emphasis(wanted.meaning) {
                at += wanted.length;
            } else if given.meaning.is_whitespace() || may_differ && is_emphasis(given.meaning) {
                to += given.length;
            } else {
                return Agreement::No;
            }
        }
    }

    /// Returns how far an answer agrees with whitespace in which every character counts.
    pub(super) fn compare_whitespace(&self, blank: &str, answer: &str) -> Agreement {
        let (mut at, mut to) = (0, 0);
        while let Some(wanted) = self.first_character(&blank[at..]) {
            match self.first_character(&answer[to..]) {
                Some(given) if wanted.has_same_meaning(given) => {
                    (at, to) = (at + wanted.length, to + given.length);
                }
                Some(_) => return Agreement::No,
                None => return Agreement::Partial,
            }
        }
        Agreement::Complete(to)
    }

    /// Returns the first character of a text. Returns `None` if the text is empty or, in JSON, begins with an
    /// incomplete escape.
    fn first_character(&self, text: &str) -> Option<ComparedCharacter> {
        if self.reading == ComparisonTolerance::Json && text.starts_with('\\') {
            return decode_escape(text);
        }
        let sign = text.chars().next()?;
        Some(ComparedCharacter { meaning: sign, is_quoted: false, length: sign.len_utf8() })
    }
}

/// A character of a text, or a JSON escape for it.
#[derive(Debug, Clone, Copy)]
struct ComparedCharacter {
    meaning: char,
    /// Whether it is an escaped quotation mark or backslash.
    is_quoted: bool,
    /// Its length in the text, in bytes.
    length: usize,
}

impl ComparedCharacter {
    fn has_same_meaning(self, other: Self) -> bool {
        (self.meaning, self.is_quoted) == (other.meaning, other.is_quoted)
    }
}

/// Decodes the JSON escape at the beginning of a text. Returns `None` if it is incomplete. For an invalid
/// escape, returns its backslash.
fn decode_escape(text: &str) -> Option<ComparedCharacter> {
    let invalid = ComparedCharacter { meaning: '\\', is_quoted: false, length: 1 };
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let (sign, length) = match text.as_bytes().get(1)? {
        b'n' => ('\n', 2),
        b't' => ('\t', 2),
        b'r' => ('\r', 2),
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'/' => ('/', 2),
        b'"' => ('"', 2),
        b'\\' => ('\\', 2),
        b'u' if text.len() < 6 => return None,
        b'u' => {
            let Some(first) = unit(text) else { return Some(invalid) };
            let is_half = (0xd800..0xdc00).contains(&first);
            if is_half && text.len() < 12 {
                return None;
            }
            let second = if is_half { text.get(6..).and_then(unit) } else { None };
            match char::decode_utf16([first].into_iter().chain(second)).next() {
                Some(Ok(sign)) => (sign, if is_half { 12 } else { 6 }),
                Some(Err(_)) | None => return Some(invalid),
            }
        }
        _ => return Some(invalid),
    };
    Some(ComparedCharacter { meaning: sign, is_quoted: matches!(sign, '"' | '\\'), length })
}

/// Maps interchangeable characters, such as quotation marks, to one of them.
fn canonical_character(character: char) -> char {
    match character {
        '‘' | '’' | '‚' | '′' => '\'',
        '“' | '”' | '„' | '″' => '"',
        '‐' | '‑' | '–' | '—' | '−' => '-',
        '\u{a0}' => ' ',
        other => other,
    }
}

pub(super) fn is_emphasis(character: char) -> bool {
    matches!(character, '*' | '_' | '`' | '#' | '>')
}
