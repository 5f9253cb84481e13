//! Code fences: their opening and closing characters, and the declared language.

use serde::{Deserialize, Serialize};

use crate::detect::MAX_POSITION;

/// Number of bytes of a fence's info string that are examined.
const MAX_INFO_BYTES: usize = 8;

/// The language that a fence declares, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::detect) enum FenceLanguage {
    /// `json`, `jsonl` or `ndjson`.
    Json,
    /// The fence declares no language.
    Unsaid,
    Other,
}

/// An open code fence.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(in crate::detect) struct Fence {
    pub(super) sign: u8,
    pub(super) length: usize,
    pub(in crate::detect) language: FenceLanguage,
    /// Position of its first backtick or tilde.
    pub(in crate::detect) start: usize,
    /// Position of the beginning of its line.
    pub(super) line_start: usize,
    /// Whether the fence contains only whitespace so far.
    pub(in crate::detect) empty: bool,
    /// Whether this may instead be the closing line of another fence that ended with its container.
    pub(super) doubtful: bool,
}

/// The backticks or tildes at the beginning of a line, and then the info string.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct FenceOpening {
    pub(super) sign: u8,
    pub(super) length: usize,
    start: usize,
    info: [u8; MAX_INFO_BYTES],
    info_length: usize,
}

impl Fence {
    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        self.length <= MAX_POSITION && self.sign.is_ascii()
    }
}

impl FenceOpening {
    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        self.length <= MAX_POSITION && self.info_length <= MAX_INFO_BYTES + 1 && self.sign.is_ascii()
    }

    /// Creates an opening with one character, at `start`.
    pub(super) fn new(sign: u8, start: usize) -> Self {
        Self { sign, length: 1, start, info: [0; MAX_INFO_BYTES], info_length: 0 }
    }

    /// Reads a byte of the info string.
    pub(super) fn push_info(&mut self, byte: u8) {
        if matches!(byte, b' ' | b'\t') && self.info_length == 0 {
            return;
        }
        if let Some(place) = self.info.get_mut(self.info_length) {
            *place = byte;
        }
        if byte != b' ' && byte != b'\t' || self.info_length < MAX_INFO_BYTES {
            self.info_length = (self.info_length + 1).min(MAX_INFO_BYTES + 1);
        }
    }

    /// Whether the line has no info string.
    pub(super) fn is_bare(&self) -> bool {
        self.info_length == 0
    }

    /// Returns the fence that this line opens.
    pub(super) fn fence(&self, line_start: usize) -> Fence {
        let info_text = self.info[..self.info_length.min(MAX_INFO_BYTES)].trim_ascii().to_ascii_lowercase();
        let language = match info_text.as_slice() {
            b"" => FenceLanguage::Unsaid,
            b"json" | b"jsonl" | b"ndjson" if self.info_length <= MAX_INFO_BYTES => FenceLanguage::Json,
            _ => FenceLanguage::Other,
        };
        let Self { sign, length, start, .. } = *self;
        Fence { sign, length, language, start, line_start, empty: true, doubtful: false }
    }
}

/// A line that opens or closes a code fence, for code that reads Markdown line by line.
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
    /// Parses a fence line with any indentation, because only the caller knows the surrounding list. Returns
    /// `None` for other lines.
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let sign = *line.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
        let info = line.trim_start_matches(char::from(sign));
        let length = line.len() - info.len();
        // Three backticks with another backtick after them are inline code.
        let is_fence = length >= 3 && !(sign == b'`' && info.contains('`'));
        is_fence.then_some(Self { sign, length, is_bare: info.is_empty() })
    }

    /// Whether both fences have the same character and length, so that the same lines close them.
    pub fn has_same_marker(self, other: Self) -> bool {
        self.sign == other.sign && self.length == other.length
    }

    /// Whether `other` closes this fence.
    pub fn is_closed_by(self, other: Self) -> bool {
        other.is_bare && other.sign == self.sign && other.length >= self.length
    }
}
