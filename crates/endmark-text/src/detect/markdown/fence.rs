//! Code fences: the signs that open and close them, and the language that they declare.

use serde::{Deserialize, Serialize};

use crate::detect::MAX_POSITION;

/// Number of examined bytes of a fence's info string.
const INFO_BYTES: usize = 8;

/// The language that a fence declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::detect) enum Language {
    /// `json`, `jsonl` or `ndjson`.
    Json,
    /// The info string was not read yet.
    Unsaid,
    Other,
}

/// An open code fence.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(in crate::detect) struct Fence {
    pub(super) sign: u8,
    pub(super) length: usize,
    pub(in crate::detect) language: Language,
    /// Where its signs begin.
    pub(in crate::detect) start: usize,
    /// Where its line begins.
    pub(super) line_start: usize,
    /// Whether the fence contains only white space.
    pub(in crate::detect) empty: bool,
    /// Whether it may as well close another one that ended without its closing line.
    pub(super) doubtful: bool,
}

/// The signs at the beginning of a line, and then the info string.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Opening {
    pub(super) sign: u8,
    pub(super) length: usize,
    start: usize,
    info: [u8; INFO_BYTES],
    info_length: usize,
}

impl Fence {
    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(&self) -> bool {
        self.length <= MAX_POSITION && self.sign.is_ascii()
    }
}

impl Opening {
    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(&self) -> bool {
        self.length <= MAX_POSITION && self.info_length <= INFO_BYTES + 1 && self.sign.is_ascii()
    }

    /// Begins with one sign, at `start`.
    pub(super) fn new(sign: u8, start: usize) -> Self {
        Self { sign, length: 1, start, info: [0; INFO_BYTES], info_length: 0 }
    }

    /// Reads a byte of the info string.
    pub(super) fn push_info(&mut self, byte: u8) {
        if matches!(byte, b' ' | b'\t') && self.info_length == 0 {
            return;
        }
        if let Some(place) = self.info.get_mut(self.info_length) {
            *place = byte;
        }
        if byte != b' ' && byte != b'\t' || self.info_length < INFO_BYTES {
            self.info_length = (self.info_length + 1).min(INFO_BYTES + 1);
        }
    }

    /// Whether nothing follows the signs.
    pub(super) fn is_bare(&self) -> bool {
        self.info_length == 0
    }

    /// The fence that this line opens.
    pub(super) fn fence(&self, line_start: usize) -> Fence {
        let info_text = self.info[..self.info_length.min(INFO_BYTES)].trim_ascii().to_ascii_lowercase();
        let language = match info_text.as_slice() {
            b"" => Language::Unsaid,
            b"json" | b"jsonl" | b"ndjson" if self.info_length <= INFO_BYTES => Language::Json,
            _ => Language::Other,
        };
        let Self { sign, length, start, .. } = *self;
        Fence { sign, length, language, start, line_start, empty: true, doubtful: false }
    }
}

/// A line that opens or closes fenced code, for code that reads Markdown line by line.
///
/// ```
/// use endmark_text::CodeFence;
///
/// let opening = CodeFence::parse("  ```rust").unwrap();
/// assert!(opening.is_closed_by(CodeFence::parse("````").unwrap()));
/// assert!(!opening.is_closed_by(CodeFence::parse("~~~").unwrap()) && CodeFence::parse("```a``` b").is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeFence {
    sign: u8,
    length: usize,
    is_bare: bool,
}

impl CodeFence {
    /// Returns the fence of a line at any indentation: the caller knows the surrounding list.
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let sign = *line.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
        let info = line.trim_start_matches(char::from(sign));
        let length = line.len() - info.len();
        // A backtick after backticks makes them inline code.
        let is_fence = length >= 3 && !(sign == b'`' && info.contains('`'));
        is_fence.then_some(Self { sign, length, is_bare: info.is_empty() })
    }

    /// Whether both have the same sign and length, so that the same line closes either of them.
    pub fn is_like(self, other: Self) -> bool {
        self.sign == other.sign && self.length == other.length
    }

    /// Whether the other fence closes this one.
    pub fn is_closed_by(self, other: Self) -> bool {
        other.is_bare && other.sign == self.sign && other.length >= self.length
    }
}
