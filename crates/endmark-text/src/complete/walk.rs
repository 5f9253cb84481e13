//! Walks over bytes that detection has accepted, to find where in a document their settled part ends.

use std::ops::Range;

use super::pointer::{push_index, push_name};
use super::{UnfinishedKind, UnfinishedPlace};
use crate::json::string_end;

/// The content after the settled part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing, or the rest of a string.
    Settled,
    /// A number that touches the cut.
    Number,
    /// An incomplete literal.
    Literal,
}

/// The last token in the innermost bracket, or at the end of the text if none is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastToken {
    /// The bracket itself, a complete value, or nothing.
    Value,
    /// A comma.
    Comma,
    /// A name, with its colon or without.
    Name,
    /// The beginning of a string.
    String { name: bool },
}

/// An open bracket.
#[derive(Debug)]
struct Level {
    inside: LevelState,
    /// End of the bracket, or of the last complete value in it.
    whole_until: usize,
}

#[derive(Debug)]
enum LevelState {
    /// The index of the last or next element.
    Array { index: usize },
    /// The source of the last name, with its quotes.
    Object { name: Range<usize> },
}

/// The structure of a settled text, found in one pass without recursion.
#[derive(Debug)]
pub(super) struct Walk<'r> {
    settled_text: &'r [u8],
    /// The open brackets, outermost first.
    levels: Vec<Level>,
    last: LastToken,
    /// The number of values that have ended outside of all brackets.
    values: usize,
}

impl<'r> Walk<'r> {
    /// Walks over settled bytes, which are a valid beginning.
    pub(super) fn new(settled: &'r [u8]) -> Self {
        let mut walk = Self { settled_text: settled, levels: Vec::new(), last: LastToken::Value, values: 0 };
        let mut at = 0;
        while let Some(&byte) = settled.get(at) {
            at = walk.read_token(byte, at);
        }
        walk
    }

    /// Returns the number of values that have ended outside of all brackets.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    /// Processes the token that begins with `byte` at `at`. Returns where it ends.
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

    /// Whether a string that begins here is a name: in an object, where no name waits for its value.
    fn expects_name(&self) -> bool {
        self.last != LastToken::Name && self.in_object()
    }

    fn in_object(&self) -> bool {
        matches!(self.levels.last(), Some(Level { inside: LevelState::Object { .. }, .. }))
    }

    /// Returns where the number or literal ends that begins at `at`.
    fn scalar_end(&self, at: usize) -> usize {
        let may_continue =
            |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.');
        at + self.settled_text[at..].iter().take_while(may_continue).count()
    }

    /// Returns how much of the settled part stays in the closed text, or `None` if that would have no value.
    pub(super) fn kept_length(&self, ending: Ending) -> Option<usize> {
        let is_left_out = self.last_place(ending).is_some_and(|(_, left_out)| left_out);
        match self.levels.last() {
            Some(level) if is_left_out => Some(level.whole_until),
            None if self.values == 0 && !matches!(self.last, LastToken::String { .. }) => None,
            _ => Some(self.settled_text.len()),
        }
    }

    /// Writes the characters that close the open string and brackets.
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
    fn last_place(&self, ending: Ending) -> Option<(UnfinishedKind, bool)> {
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

    /// Returns the unfinished places, outermost first, and the pointer whose prefixes are theirs.
    pub(super) fn unfinished(&self, ending: Ending) -> (String, Vec<UnfinishedPlace>) {
        let mut pointer = String::new();
        let mut places = Vec::new();
        let last = self.last_place(ending);
        for (depth, level) in self.levels.iter().enumerate() {
            let kind = match level.inside {
                LevelState::Array { .. } => UnfinishedKind::Array,
                LevelState::Object { .. } => UnfinishedKind::Object,
            };
            places.push(UnfinishedPlace { end: pointer.len(), kind, is_omitted: false });
            let is_innermost = depth + 1 == self.levels.len();
            // Before a member the path has no name to end in, and after a whole value it has nothing.
            if is_innermost && matches!(last, None | Some((UnfinishedKind::Member, _))) {
                break;
            }
            match &level.inside {
                LevelState::Array { index } => push_index(&mut pointer, *index),
                LevelState::Object { name } => push_name(&mut pointer, &self.settled_text[name.clone()]),
            }
        }
        if let Some((kind, left_out)) = last {
            places.push(UnfinishedPlace { end: pointer.len(), kind, is_omitted: left_out });
        }
        (pointer, places)
    }
}
