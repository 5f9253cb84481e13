//! Compares the received text with the part of an answer that repeats it.

/// Maximum number of signs that a proof compares, in addition to a few times the answer's length. Only a repetitive
/// text reaches the limit. Without it the work would grow with the square of its length.
const MAX_COMPARED_SIGNS: usize = 1 << 19;

#[cfg(test)]
thread_local! {
    /// Number of signs that this thread has compared. Tests use it to measure the cost of a text.
    pub(in crate::resume) static COMPARED_SIGNS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How far an answer agrees with the received text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerExtent {
    /// The answer agrees up to the end of the received text, which is at this byte of the answer.
    Complete(usize),
    /// The answer agrees up to its own end.
    Partial,
    No,
    /// The limit of compared signs is reached.
    Unknown,
}

/// Which signs count as equal, in addition to white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Only identical signs.
    Exact,
    /// Quotation marks, dashes and signs of emphasis.
    Prose,
    /// A JSON escape and its character. A model may escape a line feed that was received raw.
    Json,
}

/// Compares an answer with the received text from several positions. The number of compared signs is limited.
#[derive(Debug)]
pub(super) struct Walker {
    reading: Reading,
    signs_left: usize,
}

impl Walker {
    pub(super) fn new(reading: Reading, answer: &str) -> Self {
        Self { reading, signs_left: MAX_COMPARED_SIGNS.saturating_add(answer.len().saturating_mul(4)) }
    }

    /// Returns how far `answer` agrees with `expected`. In prose, signs of emphasis may differ in the first `loose`
    /// bytes.
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
                // An escape at the cut is incomplete, so compare its bytes.
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

    /// Returns how far an answer agrees with white space, in which each sign must be equal.
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

    /// Returns the first sign of a text, or `None` if the text is empty or, in JSON, an incomplete escape.
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
    /// Whether it is an escaped quotation mark or backslash.
    is_quoted: bool,
    /// Number of bytes in the text.
    length: usize,
}

impl Sign {
    fn means(self, other: Self) -> bool {
        (self.meaning, self.is_quoted) == (other.meaning, other.is_quoted)
    }
}

/// Decodes the escape at the beginning of a text. Returns `None` if it is incomplete. An invalid escape yields its
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

/// Maps interchangeable signs to one of them.
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
