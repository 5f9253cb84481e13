//! The comparison of what was received with what an answer repeats of it.

/// A proof compares this many signs at most, and a few times the answer's length. No text whose places differ needs as many;
/// one that repeats itself would need the square of its length.
const MAX_COMPARED_SIGNS: usize = 1 << 19;

#[cfg(test)]
thread_local! {
    /// How many signs this thread has compared, for tests of the work that a text costs.
    pub(in crate::resume) static COMPARED_SIGNS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How far an answer goes along with what was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerExtent {
    /// To its end, up to this byte of the answer.
    Complete(usize),
    /// As far as the answer goes.
    Partial,
    No,
    /// Too many signs were compared already.
    Unknown,
}

/// What is compared alike, besides white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Only equal signs.
    Exact,
    /// Quotation marks, dashes and signs of emphasis.
    Prose,
    /// An escape of JSON and the character that it means: a model escapes the line feed that was received raw.
    Json,
}

/// Compares an answer with the received text from one place after the other, for a bounded number of signs.
#[derive(Debug)]
pub(super) struct Walker {
    reading: Reading,
    signs_left: usize,
}

impl Walker {
    pub(super) fn new(reading: Reading, answer: &str) -> Self {
        Self { reading, signs_left: MAX_COMPARED_SIGNS.saturating_add(answer.len().saturating_mul(4)) }
    }

    /// How far `answer` goes along with `expected`. In prose, signs of emphasis may be missing or added in the first `loose` bytes.
    pub(super) fn walk(&mut self, expected: &str, loose: usize, answer: &str) -> AnswerExtent {
        let (mut at, mut to) = (0, 0);
        let is_prose = self.reading == Reading::Prose;
        loop {
            let Some(signs_left) = self.signs_left.checked_sub(1) else { return AnswerExtent::Unknown };
            self.signs_left = signs_left;
            #[cfg(test)]
            COMPARED_SIGNS.set(COMPARED_SIGNS.get() + 1);
            let (left, right) = (&expected[at..], &answer[to..]);
            if left.is_empty() {
                return AnswerExtent::Complete(to);
            }
            if right.is_empty() {
                return AnswerExtent::Partial;
            }
            let (Some(wanted), Some(given)) = (self.sign(left), self.sign(right)) else {
                // An escape that the cut goes through is compared by its bytes.
                return match () {
                    () if right.starts_with(left) => AnswerExtent::Complete(to + left.len()),
                    () if left.starts_with(right) || self.sign(right).is_none() => AnswerExtent::Partial,
                    () => AnswerExtent::No,
                };
            };
            let may_differ = is_prose && at < loose;
            if wanted.means(given)
                || is_prose && canonical_sign(wanted.meaning) == canonical_sign(given.meaning)
            {
                (at, to) = (at + wanted.length, to + given.length);
            } else if wanted.meaning.is_whitespace() || may_differ && is_emphasis(wanted.meaning) {
                at += wanted.length;
            } else if given.meaning.is_whitespace() || may_differ && is_emphasis(given.meaning) {
                to += given.length;
            } else {
                return AnswerExtent::No;
            }
        }
    }

    /// How far an answer goes along with white space, each sign of which it has to write.
    pub(super) fn walk_blank(&self, blank: &str, answer: &str) -> AnswerExtent {
        let (mut at, mut to) = (0, 0);
        while let Some(wanted) = self.sign(&blank[at..]) {
            match self.sign(&answer[to..]) {
                Some(given) if wanted.means(given) => {
                    (at, to) = (at + wanted.length, to + given.length);
                }
                Some(_) => return AnswerExtent::No,
                None => return AnswerExtent::Partial,
            }
        }
        AnswerExtent::Complete(to)
    }

    /// The first sign of a text. `None` if the text is empty, or in JSON a beginning of an escape.
    fn sign(&self, text: &str) -> Option<Sign> {
        if self.reading == Reading::Json && text.starts_with('\\') {
            return decode_escape(text);
        }
        let sign = text.chars().next()?;
        Some(Sign { meaning: sign, is_quoted: false, length: sign.len_utf8() })
    }
}

/// A character of a text.
#[derive(Debug, Clone, Copy)]
struct Sign {
    meaning: char,
    /// Whether it is a quotation mark or a backslash that an escape makes a part of a string.
    is_quoted: bool,
    /// How many bytes of the text it takes.
    length: usize,
}

impl Sign {
    fn means(self, other: Self) -> bool {
        (self.meaning, self.is_quoted) == (other.meaning, other.is_quoted)
    }
}

/// The character of the escape that a text begins with; `None` while more bytes of it may follow. An invalid escape is its
/// backslash.
fn decode_escape(text: &str) -> Option<Sign> {
    let invalid = Sign { meaning: '\\', is_quoted: false, length: 1 };
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
    Some(Sign { meaning: sign, is_quoted: matches!(sign, '"' | '\\'), length })
}

/// Signs that models write one for the other.
fn canonical_sign(sign: char) -> char {
    match sign {
        '‘' | '’' | '‚' | '′' => '\'',
        '“' | '”' | '„' | '″' => '"',
        '‐' | '‑' | '–' | '—' | '−' => '-',
        '\u{a0}' => ' ',
        other => other,
    }
}

pub(super) fn is_emphasis(sign: char) -> bool {
    matches!(sign, '*' | '_' | '`' | '#' | '>')
}
