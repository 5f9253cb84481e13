//! Walks over JSON that detection has accepted, and finds how much of it a closed text can keep.

use std::ops::Range;

use super::pointer::{push_index, push_name};
use super::{UnfinishedKind, UnfinishedPlace};
use crate::json::string_end;

/// What follows the settled part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing, or an unsettled part of a string.
    Settled,
    /// A number that touches the cut.
    Number,
    /// An incomplete literal.
    Literal,
}

/// The last token in the innermost bracket, or at the top level if no bracket is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastToken {
    /// The opening bracket, a complete value, or no token yet.
    Value,
    /// A comma.
    Comma,
    /// A key, with or without its colon.
    Name,
    /// An open string.
    String { name: bool },
}

/// An open bracket.
#[derive(Debug)]
struct Level {
    inside: LevelState,
    /// End of the opening bracket, or of the last complete value in it.
    whole_until: usize,
}

#[derive(Debug)]
enum LevelState {
    /// Index of the last element, or of the next one if none has begun.
    Array { index: usize },
    /// The source of the last key, with its quotes.
    Object { name: Range<usize> },
}

/// The structure of settled JSON, found in one pass without recursion.
#[derive(Debug)]
pub(super) struct Walk<'r> {
    settled_text: &'r [u8],
    /// The open brackets, outermost first.
    levels: Vec<Level>,
    last: LastToken,
    /// Number of complete top-level values.
    values: usize,
}

impl<'r> Walk<'r> {
    /// Walks over settled bytes, which must be a valid beginning of JSON.
    pub(super) fn new(settled: &'r [u8]) -> Self {
        let mut walk = Self { settled_text: settled, levels: Vec::new(), last: LastToken::Value, values: 0 };
        let mut at = 0;
        while let Some(&byte) = settled.get(at) {
            at = walk.read_token(byte, at);
        }
        walk
    }

    /// Returns the number of complete top-level values.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    /// Reads the token that begins with `byte` at `at`. Returns its end.
    fn read_token(&mut self, byte: u8, at: usize) -> usize {
        match byte {
            b'{' => self.enter(LevelState::Object { name: at..at }, at + 1),
            b'[' => self.enter(LevelState::Array { index: 0 }, at + 1),
            b'}' | b']' => {
                self.levels.pop();
                self.end_value(at + 1);
            }
            b',' => {
                if let Some(Level { inside: LevelState::Array { index }, .. }) = self.levels.last_mut() {
                    *index += 1;
                }
                self.last = LastToken::Comma;
            }
            b'"' => return self.read_string(at),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let end = self.scalar_end(at);
                self.end_value(end);
                return end;
            }
            // A colon, whitespace, or a byte order mark.
            _ => {}
        }
        at + 1
    }

    fn enter(&mut self, inside: LevelState, end: usize) {
        self.levels.push(Level { inside, whole_until: end });
        self.last = LastToken::Value;
    }

    fn end_value(&mut self, end: usize) {
        self.last = LastToken::Value;
        match self.levels.last_mut() {
            Some(level) => level.whole_until = end,
            None => self.values += 1,
        }
    }

    fn read_string(&mut self, start: usize) -> usize {
        let is_name = self.expects_name();
        let Some(end) = string_end(self.settled_text, start) else {
            self.last = LastToken::String { name: is_name };
            return self.settled_text.len();
        };
        match self.levels.last_mut() {
            Some(Level { inside: LevelState::Object { name }, .. }) if is_name => {
                *name = start..end;
                self.last = LastToken::Name;
            }
            _ => self.end_value(end),
        }
        end
    }

    /// Whether a string that begins here is a key: in an object, if no key is waiting for its value.
    fn expects_name(&self) -> bool {
        self.last != LastToken::Name && self.in_object()
    }

    fn in_object(&self) -> bool {
        matches!(self.levels.last(), Some(Level { inside: LevelState::Object { .. }, .. }))
    }

    /// Returns the end of the number or literal that begins at `at`.
    fn scalar_end(&self, at: usize) -> usize {
        let may_continue =
            |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.');
        at + self.settled_text[at..].iter().take_while(may_continue).count()
    }

    /// Returns how many settled bytes the closed text keeps, or `None` if it would contain no value.
    pub(super) fn kept_length(&self, ending: Ending) -> Option<usize> {
        let is_left_out = self.innermost_unfinished(ending).is_some_and(|(_, left_out)| left_out);
        match self.levels.last() {
            Some(level) if is_left_out => Some(level.whole_until),
            None if self.values == 0 && !matches!(self.last, LastToken::String { .. }) => None,
            _ => Some(self.settled_text.len()),
        }
    }

    /// Appends the characters that close the open string and all open brackets.
    pub(super) fn close(&self, text: &mut String) {
        if self.last == (LastToken::String { name: false }) {
            text.push('"');
        }
        text.extend(self.levels.iter().rev().map(|level| match level.inside {
            LevelState::Array { .. } => ']',
            LevelState::Object { .. } => '}',
        }));
    }

    /// Returns the unfinished part in the innermost bracket, and whether it is omitted.
    fn innermost_unfinished(&self, ending: Ending) -> Option<(UnfinishedKind, bool)> {
        match (ending, self.last) {
            (Ending::Number, _) => Some((UnfinishedKind::Number, true)),
            (Ending::Literal, _) => Some((UnfinishedKind::Literal, true)),
            (Ending::Settled, LastToken::Value) => None,
            (Ending::Settled, LastToken::Comma) if self.in_object() => Some((UnfinishedKind::Member, true)),
            (Ending::Settled, LastToken::Comma) => Some((UnfinishedKind::Element, true)),
            (Ending::Settled, LastToken::Name) => Some((UnfinishedKind::Key, true)),
            (Ending::Settled, LastToken::String { name: true }) => Some((UnfinishedKind::Member, true)),
            (Ending::Settled, LastToken::String { name: false }) => Some((UnfinishedKind::String, false)),
        }
    }

    /// Returns the unfinished parts, outermost first, and the innermost pointer, from which all others are
    /// cut.
    pub(super) fn unfinished(&self, ending: Ending) -> (String, Vec<UnfinishedPlace>) {
        let mut pointer = String::new();
        let mut places = Vec::new();
        let last = self.innermost_unfinished(ending);
        for (depth, level) in self.levels.iter().enumerate() {
            let kind = match level.inside {
                LevelState::Array { .. } => UnfinishedKind::Array,
                LevelState::Object { .. } => UnfinishedKind::Object,
            };
            places.push(UnfinishedPlace { pointer_length: pointer.len(), kind, is_omitted: false });
            let is_innermost = depth + 1 == self.levels.len();
            // Before a member there is no key to append, and nothing is unfinished after a complete value.
            if is_innermost && matches!(last, None | Some((UnfinishedKind::Member, _))) {
                break;
            }
            match &level.inside {
                LevelState::Array { index } => push_index(&mut pointer, *index),
                LevelState::Object { name } => push_name(&mut pointer, &self.settled_text[name.clone()]),
            }
        }
        if let Some((kind, left_out)) = last {
            places.push(UnfinishedPlace { pointer_length: pointer.len(), kind, is_omitted: left_out });
        }
        (pointer, places)
    }
}
