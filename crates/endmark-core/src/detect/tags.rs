//! Tags as in XML, with any text in and around them: whole when every tag is closed.

use super::text::TextMachine;
use crate::{InToken, Open, Verdict};

/// The longest name of a tag, in bytes.
const NAME_BYTES: usize = 100;

/// Where in a tag the text stands.
#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Text,
    /// After `<` or `</`, and a name that may go on.
    Name { name: String, closing: bool },
    /// After the name.
    Inside { name: String, closing: bool, slash: bool },
    /// In a value behind this quote.
    Value { name: String, quote: u8 },
}

/// The machine for tags.
#[derive(Debug, Clone, Default)]
pub(super) struct TagsMachine {
    text: TextMachine,
    state: State,
    open: Vec<String>,
    /// Whether a tag was seen.
    seen: bool,
    /// Where nothing was open last.
    balanced: usize,
}

impl TagsMachine {
    /// Takes the text's next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let base = self.text.position();
        self.text.push(chunk);
        for (at, &byte) in chunk.iter().enumerate() {
            let state = std::mem::take(&mut self.state);
            self.state = self.step(state, byte, base + at + 1);
        }
    }

    #[expect(clippy::match_same_arms, reason = "the arms stand in the order of the states")]
    fn step(&mut self, state: State, byte: u8, end: usize) -> State {
        match (state, byte) {
            (State::Text, b'<') => State::Name { name: String::new(), closing: false },
            (State::Text, _) => State::Text,
            (State::Name { name, closing: false }, b'/') if name.is_empty() => {
                State::Name { name, closing: true }
            }
            (State::Name { mut name, closing }, _)
                if is_name(byte, name.is_empty()) && name.len() < NAME_BYTES =>
            {
                name.push(char::from(byte));
                State::Name { name, closing }
            }
            (State::Name { name, .. }, b'<') if name.is_empty() => State::Name { name, closing: false },
            (State::Name { name, .. }, _) if name.is_empty() => State::Text,
            (State::Name { name, closing } | State::Inside { name, closing, .. }, b'>') if closing => {
                if let Some(place) = self.open.iter().rposition(|open| *open == name) {
                    self.open.truncate(place);
                    self.balance(end);
                }
                State::Text
            }
            (State::Inside { slash: true, .. }, b'>') => {
                self.seen = true;
                self.balance(end);
                State::Text
            }
            (State::Name { name, .. } | State::Inside { name, .. }, b'>') => {
                self.seen = true;
                self.open.push(name);
                State::Text
            }
            (State::Name { name, closing } | State::Inside { name, closing, .. }, b'/') => {
                State::Inside { name, closing, slash: true }
            }
            (State::Inside { name, closing: false, .. }, b'"' | b'\'') => State::Value { name, quote: byte },
            (State::Inside { .. }, b'<') => State::Name { name: String::new(), closing: false },
            (State::Inside { name, closing, .. }, _) => State::Inside { name, closing, slash: false },
            (State::Name { name, closing }, b' ' | b'\t' | b'\r' | b'\n') => {
                State::Inside { name, closing, slash: false }
            }
            (State::Name { .. }, _) => State::Text,
            (State::Value { name, quote }, _) if byte == quote => {
                State::Inside { name, closing: false, slash: false }
            }
            (value @ State::Value { .. }, _) => value,
        }
    }

    fn balance(&mut self, end: usize) {
        if self.open.is_empty() {
            self.balanced = end;
        }
    }

    /// Bytes seen.
    pub(super) fn position(&self) -> usize {
        self.text.position()
    }

    /// Whether it is no UTF-8.
    pub(super) fn is_malformed(&self) -> bool {
        self.text.is_malformed()
    }

    /// Whether there is a tag, and all are closed.
    pub(super) fn is_whole(&self) -> bool {
        self.text.is_whole() && self.seen && self.open.is_empty() && matches!(self.state, State::Text)
    }

    /// What the text is, should it end here.
    pub(super) fn verdict(&self) -> Verdict {
        if self.text.is_malformed() || self.is_whole() {
            return self.text.verdict();
        }
        let mut truncation = self.text.truncation();
        truncation.balanced_index = self.balanced;
        truncation.open = self.open.iter().cloned().map(Open::Tag).collect();
        truncation.in_token = truncation.in_token.or(match self.state {
            State::Text => None,
            State::Name { .. } | State::Inside { .. } => Some(InToken::Tag),
            State::Value { .. } => Some(InToken::Attribute),
        });
        Verdict::Truncated(truncation)
    }
}

fn is_name(byte: u8, first: bool) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !first && (byte.is_ascii_digit() || b"-.:".contains(&byte))
}
