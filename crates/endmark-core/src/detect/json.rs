//! Strict RFC 8259 as a push machine: one value, or one after the other.

mod nesting;
mod number;
mod string;

use nesting::Nesting;
use number::{Number, NumberScan};
use string::{StringScan, StringScanner};

use super::settled_tail::SettledTail;
use crate::{InToken, Open, Truncation, Verdict};

/// How many values a text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Exactly one.
    One,
    /// One or more: JSON Lines, or concatenated.
    Many,
}

/// What may come next, or what token the text ends in.
#[derive(Debug, Clone)]
enum State {
    /// The beginning of the text: a byte order mark, whitespace or a value.
    Start,
    /// That many bytes of a byte order mark.
    ByteOrderMark(u8),
    /// A value, after a whole byte order mark.
    Marked,
    /// A value.
    Value,
    /// A value, or the end of the array.
    FirstElement,
    /// A key, or the end of the object.
    FirstKey,
    /// A key.
    Key,
    /// The colon after a key.
    Colon,
    /// A comma, or the end of what is open.
    AfterValue,
    /// The end of the text, or another value if there may be many. After a `scalar` that is no string
    /// it must stand apart.
    Done { scalar: bool },
    /// Inside a string.
    String { scanner: StringScanner, key: bool },
    /// Inside a number, or right after one.
    Number(Number),
    /// Inside `true`, `false` or `null`, of which `left` is missing.
    Literal { left: &'static [u8] },
    /// Beyond repair.
    Malformed { index: usize, reason: &'static str },
}

/// Which source was settled last.
#[derive(Debug, Clone, Copy, Default)]
struct Settled {
    /// The last settled token.
    token: usize,
    /// Its end: inside a string the end of what is settled of it. 0 if there is none.
    end: usize,
    /// The last settled token that is no comma or colon, or the string the text ends in.
    speaking: usize,
    /// The token of that kind before it.
    speaking_before: usize,
}

/// The machine. Its size is that of the nesting, and of the last token's last characters.
#[derive(Debug, Clone)]
pub(super) struct JsonMachine {
    values: Values,
    state: State,
    nesting: Nesting,
    /// Bytes seen.
    position: usize,
    /// Where the number or literal begins that is not settled.
    pending: usize,
    /// Where every bracket was closed last.
    balanced: usize,
    settled: Settled,
    tail: SettledTail,
    /// Whether an object's member was seen, as far as its colon.
    member: bool,
}

impl JsonMachine {
    /// A machine before the text's first byte.
    pub(super) fn new(values: Values) -> Self {
        Self {
            values,
            state: State::Start,
            nesting: Nesting::default(),
            position: 0,
            pending: 0,
            balanced: 0,
            settled: Settled::default(),
            tail: SettledTail::default(),
            member: false,
        }
    }

    /// Takes the text's next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let base = self.position;
        let mut at = 0;
        while at < chunk.len() {
            at = match &mut self.state {
                State::String { scanner, key } => {
                    let key = *key;
                    match scanner.scan(chunk, at, base) {
                        StringScan::Open => chunk.len(),
                        StringScan::Closed(after) => {
                            self.end_string(key, base + after);
                            after
                        }
                        StringScan::Invalid(index, reason) => self.fail(base + index, reason, chunk),
                    }
                }
                State::Number(number) => match number.scan(chunk, at) {
                    NumberScan::Open(number) => {
                        self.state = State::Number(number);
                        chunk.len()
                    }
                    NumberScan::Ended(after) => {
                        self.end_scalar(base + after);
                        after
                    }
                    NumberScan::Invalid(index) => self.fail(base + index, "not a number", chunk),
                },
                State::Literal { left } => match left {
                    [expected, rest @ ..] if *expected == chunk[at] => {
                        *left = rest;
                        if rest.is_empty() {
                            self.end_scalar(base + at + 1);
                        }
                        at + 1
                    }
                    _ => self.fail(base + at, "neither `true`, `false` nor `null`", chunk),
                },
                State::Malformed { .. } => chunk.len(),
                _ => match self.between(chunk[at], base + at) {
                    Ok(()) => at + 1,
                    Err(reason) => self.fail(base + at, reason, chunk),
                },
            };
        }
        self.position += chunk.len();
        if let State::String { scanner, .. } = &self.state {
            self.settled.end = scanner.settled(self.position);
        }
        self.tail.advance(chunk, base, self.kept_from(), self.settled.end);
    }

    /// Takes a byte between two tokens: whitespace, or the beginning of the next one.
    fn between(&mut self, byte: u8, offset: usize) -> Result<(), &'static str> {
        match (&self.state, byte) {
            (State::Start, 0xEF) => self.state = State::ByteOrderMark(1),
            (State::ByteOrderMark(1), 0xBB) => self.state = State::ByteOrderMark(2),
            (State::ByteOrderMark(2), 0xBF) => self.state = State::Marked,
            (State::ByteOrderMark(_), _) => return Err("not a byte order mark"),
            (_, b' ' | b'\n' | b'\r' | b'\t') => self.whitespace(),
            (State::FirstKey | State::Key, b'"') => self.begin_string(offset, true),
            (State::FirstKey, b'}') | (State::FirstElement, b']') => self.close(offset),
            (State::FirstKey, _) => return Err("neither a key nor `}`"),
            (State::Key, _) => return Err("not a key"),
            (State::Colon, b':') => {
                self.settle_sign(offset);
                self.member = true;
                self.state = State::Value;
            }
            (State::Colon, _) => return Err("not the colon after a key"),
            (State::AfterValue, b',') => {
                self.settle_sign(offset);
                self.state = if self.nesting.in_object() { State::Key } else { State::Value };
            }
            (State::AfterValue, b'}') if self.nesting.in_object() => self.close(offset),
            (State::AfterValue, b']') if !self.nesting.in_object() => self.close(offset),
            (State::AfterValue, _) if self.nesting.in_object() => return Err("neither a comma nor `}`"),
            (State::AfterValue, _) => return Err("neither a comma nor `]`"),
            (State::Done { .. }, _) if self.values == Values::One => return Err("text after the value"),
            (State::Done { scalar: true }, byte) if !matches!(byte, b'"' | b'[' | b'{') => {
                return Err("not apart from the value before it");
            }
            (State::FirstElement, byte) => self.begin_value(byte, offset, "neither a value nor `]`")?,
            (_, byte) => self.begin_value(byte, offset, "not a value")?,
        }
        Ok(())
    }

    fn begin_value(&mut self, byte: u8, offset: usize, otherwise: &'static str) -> Result<(), &'static str> {
        match byte {
            b'"' => self.begin_string(offset, false),
            b'{' => {
                self.settle_speaking(offset, offset + 1);
                self.nesting.enter(true);
                self.state = State::FirstKey;
            }
            b'[' => {
                self.settle_speaking(offset, offset + 1);
                self.nesting.enter(false);
                self.state = State::FirstElement;
            }
            b't' => self.begin_literal(offset, b"rue"),
            b'f' => self.begin_literal(offset, b"alse"),
            b'n' => self.begin_literal(offset, b"ull"),
            _ => {
                self.state = State::Number(Number::begin(byte).ok_or(otherwise)?);
                self.pending = offset;
            }
        }
        Ok(())
    }

    fn begin_literal(&mut self, offset: usize, left: &'static [u8]) {
        self.pending = offset;
        self.state = State::Literal { left };
    }

    fn begin_string(&mut self, offset: usize, key: bool) {
        let before = if self.settled.end == 0 { offset } else { self.settled.speaking };
        self.settle_speaking(offset, offset + 1);
        self.settled.speaking_before = before;
        self.state = State::String { scanner: StringScanner::new(), key };
    }

    fn end_string(&mut self, key: bool, end: usize) {
        self.settled.end = end;
        if key {
            self.state = State::Colon;
        } else {
            self.end_value(end, false);
        }
    }

    fn end_scalar(&mut self, end: usize) {
        self.settle_speaking(self.pending, end);
        self.end_value(end, true);
    }

    fn close(&mut self, offset: usize) {
        self.settle_speaking(offset, offset + 1);
        self.nesting.leave();
        self.end_value(offset + 1, false);
    }

    fn end_value(&mut self, end: usize, scalar: bool) {
        if self.nesting.depth() > 0 {
            self.state = State::AfterValue;
        } else {
            self.balanced = end;
            self.state = State::Done { scalar };
        }
    }

    fn settle_sign(&mut self, offset: usize) {
        self.settled.token = offset;
        self.settled.end = offset + 1;
    }

    fn settle_speaking(&mut self, start: usize, end: usize) {
        self.settled.token = start;
        self.settled.end = end;
        self.settled.speaking = start;
    }

    /// Whitespace sets values apart, and ends the place of a byte order mark.
    fn whitespace(&mut self) {
        match &mut self.state {
            State::Done { scalar } => *scalar = false,
            State::Start | State::Marked => self.state = State::Value,
            _ => {}
        }
    }

    fn fail(&mut self, index: usize, reason: &'static str, chunk: &[u8]) -> usize {
        self.state = State::Malformed { index, reason };
        chunk.len()
    }

    /// Whether the text ends inside a string of which nothing but the quote is settled.
    fn only_quote(&self) -> bool {
        matches!(self.state, State::String { .. }) && self.settled.end == self.settled.speaking + 1
    }

    /// Where the source begins that a later answer may have to show.
    fn kept_from(&self) -> usize {
        if self.only_quote() { self.settled.speaking_before } else { self.settled.speaking }
    }

    /// Bytes seen.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Whether no continuation could make it valid.
    pub(super) fn is_malformed(&self) -> bool {
        self.malformed().is_some()
    }

    /// The first byte that cannot stand where it stands, and why.
    pub(super) fn malformed(&self) -> Option<(usize, &'static str)> {
        match self.state {
            State::Malformed { index, reason } => Some((index, reason)),
            _ => None,
        }
    }

    /// Where the last value ended, also in a text that is malformed after it.
    pub(super) fn value_end(&self) -> Option<usize> {
        (self.balanced > 0).then_some(self.balanced)
    }

    /// Whether the text, should it end here, is whole.
    pub(super) fn is_whole(&self) -> bool {
        match &self.state {
            State::Done { .. } => true,
            State::Number(number) => self.nesting.depth() == 0 && number.is_whole(),
            _ => false,
        }
    }

    /// Whether an object's member was seen, as far as its colon: hardly anything but JSON has one.
    pub(super) fn has_member(&self) -> bool {
        self.member
    }

    /// What the text is, should it end here.
    pub(super) fn verdict(&self) -> Verdict {
        if let Some((index, reason)) = self.malformed() {
            return Verdict::Malformed { index, reason: reason.to_owned() };
        }
        if let State::Marked = self.state {
            // By the grammar a mark is no beginning of a JSON text; it is only tolerated before one.
            return Verdict::Malformed { index: 0, reason: "a byte order mark and nothing else".to_owned() };
        }
        if self.is_whole() {
            return Verdict::Whole;
        }
        let mut open = self.nesting.open();
        if matches!(self.state, State::String { .. }) {
            open.push(Open::String);
        }
        Verdict::Truncated(Truncation {
            truncation_index: self.truncation_index(),
            balanced_index: if self.values == Values::One { 0 } else { self.balanced },
            last_valid_token: self.last_valid_token(),
            open,
            in_token: self.in_token(),
        })
    }

    fn truncation_index(&self) -> usize {
        match &self.state {
            State::String { .. } => self.settled.end,
            State::Number(_) | State::Literal { .. } => self.pending,
            _ if self.settled.end == 0 => 0,
            _ => self.position,
        }
    }

    fn last_valid_token(&self) -> String {
        if self.settled.end == 0 {
            self.tail.unsettled()
        } else if self.only_quote() {
            self.tail.settled_from(self.settled.speaking_before)
        } else {
            self.tail.settled_from(self.settled.token)
        }
    }

    fn in_token(&self) -> Option<InToken> {
        match &self.state {
            State::String { scanner, .. } if scanner.in_escape() => Some(InToken::Escape),
            State::String { scanner, .. } if scanner.in_character() => Some(InToken::Utf8),
            State::String { .. } => Some(InToken::String),
            State::Number(_) => Some(InToken::Number),
            State::Literal { .. } => Some(InToken::Literal),
            State::ByteOrderMark(_) => Some(InToken::Utf8),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
