//! Tracks the inline constructs of a paragraph, as far as needed to detect a link with an open
//! destination.

use serde::{Deserialize, Serialize};

use crate::detect::MAX_POSITION;

/// Maximum number of open brackets that are stored. Links that begin with an outer bracket are not detected.
const MAX_REMEMBERED_BRACKETS: usize = 32;

/// The position within a link at the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
enum LinkPosition {
    /// Not in a link.
    #[default]
    None,
    /// After `](` and any whitespace.
    Begin,
    /// In a destination without angle brackets, with this many open parentheses.
    Bare { depth: usize },
    /// In a destination after `<`.
    Angle,
    /// After the destination or the title, and whitespace.
    After { title: bool },
    /// In a title that ends with this character.
    Title { end: u8 },
}

/// Tracks the brackets, code spans and links of one paragraph, heading or row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is about the last byte, and they do not exclude each other"
)]
pub(super) struct InlineState {
    /// Positions of the open brackets, innermost last, and whether each one begins an image.
    brackets: Vec<(usize, bool)>,
    /// Start of the bracket that the last byte closed, if it can begin a link.
    closed_at: Option<usize>,
    /// Whether the last byte was an exclamation mark.
    exclamation: bool,
    /// Whether the last byte opened a bracket, so that the bracket is still empty.
    empty: bool,
    /// Whether a backslash escapes the next byte.
    escape: bool,
    /// Number of backticks directly before the next byte.
    run: usize,
    /// Number of backticks that may have begun the current code span.
    code: Option<usize>,
    link: LinkPosition,
    /// Start of the open link.
    start: usize,
    /// Whether a complete link was found.
    pub(super) complete: bool,
}

impl InlineState {
    /// Resets the state after a paragraph.
    pub(super) fn reset(&mut self) {
        self.brackets.clear();
        let brackets = std::mem::take(&mut self.brackets);
        *self = Self { brackets, complete: self.complete, ..Self::default() };
    }

    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(&self) -> bool {
        let depth = if let LinkPosition::Bare { depth } = self.link { depth } else { 0 };
        self.brackets.len() <= MAX_REMEMBERED_BRACKETS && depth.max(self.run) <= MAX_POSITION
    }

    /// Returns the start of the link with an open destination, if any.
    pub(super) fn open_link(&self) -> Option<usize> {
        (self.link != LinkPosition::None).then_some(self.start)
    }

    /// Processes one byte at `offset` in the text. A line feed ends a line.
    pub(super) fn step(&mut self, byte: u8, offset: usize) {
        if byte == b'`' && !self.escape && self.link == LinkPosition::None {
            self.run += 1;
            (self.closed_at, self.exclamation, self.empty) = (None, false, false);
            return;
        }
        if self.run > 0 {
            self.code = match self.code {
                None => Some(self.run),
                Some(length) if length == self.run => None,
                length => length,
            };
            self.run = 0;
        }
        if self.code.is_some() {
            return;
        }
        if std::mem::take(&mut self.escape) && byte.is_ascii_punctuation() {
            (self.closed_at, self.exclamation, self.empty) = (None, false, false);
            if self.link == LinkPosition::Begin {
                self.link = LinkPosition::Bare { depth: 0 };
            }
            return;
        }
        if byte == b'\\' {
            self.escape = true;
        }
        if self.link == LinkPosition::None { self.step_text(byte, offset) } else { self.step_link(byte) }
    }

    fn step_text(&mut self, byte: u8, offset: usize) {
        let closed = self.closed_at.take();
        let empty = std::mem::take(&mut self.empty);
        let exclamation = std::mem::replace(&mut self.exclamation, byte == b'!');
        match byte {
            b'[' => {
                if self.brackets.len() == MAX_REMEMBERED_BRACKETS {
                    self.brackets.remove(0);
                }
                self.brackets.push((offset, exclamation));
                self.empty = true;
            }
            b']' => {
                // Without text between the brackets, only an image counts, because `[](` begins functions in
                // some languages.
                self.closed_at =
                    self.brackets.pop().filter(|(_, image)| *image || !empty).map(|(start, _)| start);
            }
            b'(' => {
                if let Some(start) = closed {
                    self.start = start;
                    self.link = LinkPosition::Begin;
                }
            }
            _ => {}
        }
    }

    #[expect(clippy::match_same_arms, reason = "the arms are in the order of the grammar")]
    fn step_link(&mut self, byte: u8) {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n');
        self.link = match (self.link, byte) {
            (LinkPosition::Begin, _) if is_space => LinkPosition::Begin,
            (LinkPosition::Begin, b'<') => LinkPosition::Angle,
            (LinkPosition::Begin | LinkPosition::Bare { depth: 0 } | LinkPosition::After { .. }, b')') => {
                self.complete_link()
            }
            (LinkPosition::Begin, b'(') => LinkPosition::Bare { depth: 1 },
            (LinkPosition::Begin, _) => LinkPosition::Bare { depth: 0 },
            (LinkPosition::Bare { depth: 0 }, _) if is_space => LinkPosition::After { title: false },
            (LinkPosition::Bare { .. }, _) if is_space => LinkPosition::None,
            (LinkPosition::Bare { depth }, b'(') => LinkPosition::Bare { depth: depth + 1 },
            (LinkPosition::Bare { depth }, b')') => LinkPosition::Bare { depth: depth - 1 },
            (LinkPosition::Angle, b'>') => LinkPosition::After { title: false },
            (LinkPosition::Angle, b'<' | b'\n') => LinkPosition::None,
            (LinkPosition::After { .. }, _) if is_space => self.link,
            (LinkPosition::After { title: false }, b'"' | b'\'') => LinkPosition::Title { end: byte },
            (LinkPosition::After { title: false }, b'(') => LinkPosition::Title { end: b')' },
            (LinkPosition::After { .. }, _) => LinkPosition::None,
            (LinkPosition::Title { end }, _) if byte == end => LinkPosition::After { title: true },
            (LinkPosition::Bare { .. } | LinkPosition::Angle | LinkPosition::Title { .. }, _) => self.link,
            (LinkPosition::None, _) => LinkPosition::None,
        };
    }

    fn complete_link(&mut self) -> LinkPosition {
        self.complete = true;
        LinkPosition::None
    }
}
