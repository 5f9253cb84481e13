//! Inline constructs of a paragraph, as far as needed to detect a link with an open destination.

use serde::{Deserialize, Serialize};

use crate::detect::MAX_POSITION;

/// Maximum number of open brackets that are remembered. Outer ones are dropped, and their links are not detected.
const MAX_REMEMBERED_BRACKETS: usize = 32;

/// The position of the text's end within a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
enum Link {
    /// Not in a link.
    #[default]
    None,
    /// After `](`, and perhaps whitespace.
    Begin,
    /// In a bare destination with this many open parentheses.
    Bare { depth: usize },
    /// In a destination after `<`.
    Angle,
    /// After the destination, or its title, and whitespace.
    After { title: bool },
    /// In a title that ends with this sign.
    Title { end: u8 },
}

/// Follows brackets, code spans and links through one paragraph, heading or row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is about the last byte, and they do not exclude each other"
)]
pub(super) struct Inline {
    /// Positions of the open brackets, innermost last, and whether each belongs to an image.
    brackets: Vec<(usize, bool)>,
    /// The bracket that the last byte closed, if it can begin a link.
    closed_at: Option<usize>,
    /// Whether the last byte was an exclamation mark.
    exclamation: bool,
    /// Whether the last byte opened the innermost bracket.
    empty: bool,
    /// Whether a backslash precedes the next byte.
    escape: bool,
    /// Number of backticks at the end of the text.
    run: usize,
    /// Length of the backtick run that may have begun a code span.
    code: Option<usize>,
    link: Link,
    /// Start of the open link.
    start: usize,
    /// Whether a link with a destination was found.
    pub(super) complete: bool,
}

impl Inline {
    /// Resets the state at the end of a paragraph.
    pub(super) fn reset(&mut self) {
        self.brackets.clear();
        let brackets = std::mem::take(&mut self.brackets);
        *self = Self { brackets, complete: self.complete, ..Self::default() };
    }

    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(&self) -> bool {
        let depth = if let Link::Bare { depth } = self.link { depth } else { 0 };
        self.brackets.len() <= MAX_REMEMBERED_BRACKETS && depth.max(self.run) <= MAX_POSITION
    }

    /// Returns the start of the link whose destination is open.
    pub(super) fn open_link(&self) -> Option<usize> {
        (self.link != Link::None).then_some(self.start)
    }

    /// Processes one byte at `offset` in the text. The end of a line is a line feed.
    pub(super) fn step(&mut self, byte: u8, offset: usize) {
        if byte == b'`' && !self.escape && self.link == Link::None {
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
            if self.link == Link::Begin {
                self.link = Link::Bare { depth: 0 };
            }
            return;
        }
        if byte == b'\\' {
            self.escape = true;
        }
        if self.link == Link::None { self.step_text(byte, offset) } else { self.step_link(byte) }
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
                // Without a text only an image counts, because `[](` begins functions in some languages.
                self.closed_at =
                    self.brackets.pop().filter(|(_, image)| *image || !empty).map(|(start, _)| start);
            }
            b'(' => {
                if let Some(start) = closed {
                    self.start = start;
                    self.link = Link::Begin;
                }
            }
            _ => {}
        }
    }

    #[expect(clippy::match_same_arms, reason = "the arms are in the order of the grammar")]
    fn step_link(&mut self, byte: u8) {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n');
        self.link = match (self.link, byte) {
            (Link::Begin, _) if is_space => Link::Begin,
            (Link::Begin, b'<') => Link::Angle,
            (Link::Begin | Link::Bare { depth: 0 } | Link::After { .. }, b')') => self.end(),
            (Link::Begin, b'(') => Link::Bare { depth: 1 },
            (Link::Begin, _) => Link::Bare { depth: 0 },
            (Link::Bare { depth: 0 }, _) if is_space => Link::After { title: false },
            (Link::Bare { .. }, _) if is_space => Link::None,
            (Link::Bare { depth }, b'(') => Link::Bare { depth: depth + 1 },
            (Link::Bare { depth }, b')') => Link::Bare { depth: depth - 1 },
            (Link::Angle, b'>') => Link::After { title: false },
            (Link::Angle, b'<' | b'\n') => Link::None,
            (Link::After { .. }, _) if is_space => self.link,
            (Link::After { title: false }, b'"' | b'\'') => Link::Title { end: byte },
            (Link::After { title: false }, b'(') => Link::Title { end: b')' },
            (Link::After { .. }, _) => Link::None,
            (Link::Title { end }, _) if byte == end => Link::After { title: true },
            (Link::Bare { .. } | Link::Angle | Link::Title { .. }, _) => self.link,
            (Link::None, _) => Link::None,
        };
    }

    fn end(&mut self) -> Link {
        self.complete = true;
        Link::None
    }
}
