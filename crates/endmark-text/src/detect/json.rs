//! A push machine for RFC 8259: one value, or several in sequence. It accepts and records raw control
//! characters in strings.

mod literal;
mod number;
mod plain_characters;
mod results;
mod saved;
mod special_bytes;
mod string;
mod token_runs;
mod whitespace;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use number::{Number, NumberScan};
use string::{StringScan, StringScanner};
use whitespace::is_whitespace;

use super::settled_tail::SettledTail;
use crate::nesting::{Nesting, TOO_MANY_BRACKETS};

/// The number of values that a text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ValueCount {
    /// Exactly one.
    One,
    /// One or more: JSON Lines, or concatenated values.
    Many,
}

/// What must come next, or the token in which the text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// The beginning of the text: a byte order mark, whitespace or a value.
    Start,
    /// Within a byte order mark, after this many of its bytes.
    ByteOrderMark(u8),
    /// After a complete byte order mark, before a value.
    Marked,
    /// Before a value.
    Value,
    /// Before a value or the end of the array.
    FirstElement,
    /// Before a key or the end of the object.
    FirstKey,
    /// Before a key.
    Key,
    /// Before the colon that follows a key.
    Colon,
    /// After a value, before a comma or a closing bracket.
    AfterValue,
    /// After a complete value. If several values are allowed, another one may follow. If `scalar`, whitespace
    /// must separate it.
    Done { scalar: bool },
    /// Inside a string.
    String { key: bool },
    /// Inside a number, or right after one.
    Number(Number),
    /// Inside `true`, `false` or `null`.
    Literal,
    /// The text is malformed.
    Malformed,
}

/// The missing part of a literal. This alias prevents deserialisation from borrowing it from the input.
type MissingLiteralPart = &'static [u8];

/// The bytes of a chunk, and the position of the first one in the text.
#[derive(Clone, Copy)]
struct Chunk<'c> {
    bytes: &'c [u8],
    base: usize,
}

/// The positions of the last settled tokens.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct LastTokens {
    /// End of the last settled token. In an open string, end of its settled part. 0 if nothing is settled.
    end: usize,
    /// Start of the last settled token other than a comma or colon. An open string counts as settled.
    speaking: usize,
    /// Start of the previous token of that kind, while a string is open.
    speaking_before: usize,
}

/// The state of the JSON detection. Its size depends on the nesting and on the end of the last token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JsonMachine {
    values: ValueCount,
    state: State,
    /// State of the open string, if any.
    string: StringScanner,
    /// The missing part of the open literal, if any.
    #[serde(with = "literal")]
    literal: MissingLiteralPart,
    nesting: Nesting,
    /// Bytes read so far.
    position: usize,
    /// Start of the unsettled number or literal.
    pending: usize,
    /// The last position at which all brackets were closed.
    balanced: usize,
    settled: LastTokens,
    tail: SettledTail,
    /// Whether an object's key and its colon were read.
    member: bool,
    /// Position of the first invalid byte, and the reason.
    malformed: Option<(usize, Cow<'static, str>)>,
    /// Position of the first raw control character in a string.
    #[serde(default)]
    control: Option<usize>,
    /// Whether a raw control character makes the text malformed.
    #[serde(default)]
    is_strict: bool,
}

/// Reason for rejecting a raw control character in strict JSON.
pub(super) const CONTROL_CHARACTER_REASON: &str = "an unescaped control character in a string";

impl JsonMachine {
    /// Creates a machine for a new text.
    pub(super) fn new(values: ValueCount) -> Self {
        Self {
            values,
            state: State::Start,
            string: StringScanner::new(),
            literal: b"",
            nesting: Nesting::default(),
            position: 0,
            pending: 0,
            balanced: 0,
            settled: LastTokens::default(),
            tail: SettledTail::default(),
            member: false,
            malformed: None,
            control: None,
            is_strict: false,
        }
    }

    /// Rejects raw control characters from now on.
    pub(super) fn refuse_control_characters(&mut self) {
        self.is_strict = true;
    }
}

/// Tokens are read as a whole. The state within a token is stored only at the end of a chunk.
impl JsonMachine {
    /// Reads the next bytes of the text.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let chunk = Chunk { bytes, base: self.position };
        self.position += bytes.len();
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                State::String { key } => self.read_string(chunk, at, key),
                State::Number(number) => self.read_number(chunk, at, number, self.pending),
                State::Literal => self.read_literal(chunk, at),
                State::ByteOrderMark(seen) => self.read_byte_order_mark(chunk, at, seen),
                State::Malformed => return,
                State::Colon => self.read_token(chunk, at),
                _ if self.nesting.depth() == 0 => self.read_token(chunk, at),
                _ => match self.read_token_run(chunk, at) {
                    reached if reached > at => reached,
                    _ => self.read_token(chunk, at),
                },
            };
        }
        if matches!(self.state, State::String { .. }) {
            self.settled.end = self.string.settled_end(self.position);
        }
        self.tail.advance(bytes, chunk.base, self.kept_start(), self.settled.end);
    }

    /// Reads the token at `at`, up to the end of the chunk. [`Self::read_token_run`] has already read
    /// complete keys, commas, and the closing brackets of empty containers.
    fn read_token(&mut self, chunk: Chunk<'_>, at: usize) -> usize {
        match (self.state, chunk.bytes[at]) {
            (_, byte) if is_whitespace(byte) => return self.read_whitespace(at),
            (State::Start, 0xEF) => return self.read_byte_order_mark(chunk, at, 0),
            (State::FirstKey, _) => return self.fail(chunk, at, "neither a key nor `}`"),
            (State::Key, _) => return self.fail(chunk, at, "not a key"),
            (State::Colon, b':') => self.read_colon(chunk.base + at),
            (State::Colon, _) => return self.fail(chunk, at, "not the colon after a key"),
            (State::AfterValue, b'}') if self.nesting.is_in_object() => return self.close(chunk, at),
            (State::AfterValue, b']') if !self.nesting.is_in_object() => return self.close(chunk, at),
            (State::AfterValue, _) if self.nesting.is_in_object() => {
                return self.fail(chunk, at, "neither a comma nor `}`");
            }
            (State::AfterValue, _) => return self.fail(chunk, at, "neither a comma nor `]`"),
            (State::Done { .. }, _) if self.values == ValueCount::One => {
                return self.fail(chunk, at, "text after the value");
            }
            (State::Done { scalar: true }, byte) if !matches!(byte, b'"' | b'[' | b'{') => {
                return self.fail(chunk, at, "not apart from the value before it");
            }
            _ => return self.begin_value(chunk, at),
        }
        at + 1
    }

    fn begin_value(&mut self, chunk: Chunk<'_>, at: usize) -> usize {
        let offset = chunk.base + at;
        match chunk.bytes[at] {
            b'"' => return self.open_string(chunk, at, 0, false),
            b'{' | b'[' if !self.nesting.has_room() => return self.fail(chunk, at, TOO_MANY_BRACKETS),
            b'{' => {
                self.settle_token(offset, offset + 1);
                self.nesting.enter(true);
                self.state = State::FirstKey;
            }
            b'[' => {
                self.settle_token(offset, offset + 1);
                self.nesting.enter(false);
                self.state = State::FirstElement;
            }
            b't' => return self.begin_literal(chunk, at, b"true"),
            b'f' => return self.begin_literal(chunk, at, b"false"),
            b'n' => return self.begin_literal(chunk, at, b"null"),
            byte => match Number::begin(byte) {
                Some(number) => return self.read_number(chunk, at + 1, number, offset),
                None if self.state == State::FirstElement => {
                    return self.fail(chunk, at, "neither a value nor `]`");
                }
                None => return self.fail(chunk, at, "not a value"),
            },
        }
        at + 1
    }

    /// Begins a string. The first `settled` bytes after the opening quote are already known to be settled.
    fn open_string(&mut self, chunk: Chunk<'_>, at: usize, settled: usize, key: bool) -> usize {
        let offset = chunk.base + at;
        self.settled.speaking_before = if self.settled.end == 0 { offset } else { self.settled.speaking };
        self.settle_token(offset, offset + 1);
        self.string = StringScanner::new();
        self.state = State::String { key };
        at + 1 + settled
    }

    fn read_string(&mut self, chunk: Chunk<'_>, at: usize, key: bool) -> usize {
        match self.string.scan(chunk.bytes, at, chunk.base) {
            StringScan::Open => chunk.bytes.len(),
            StringScan::Closed(end) => self.end_string(chunk, end, key),
            StringScan::Control(index) if self.is_strict => self.fail(chunk, index, CONTROL_CHARACTER_REASON),
            StringScan::Control(index) => {
                self.control.get_or_insert(chunk.base + index);
                index + 1
            }
            StringScan::Invalid(index, reason) => self.fail(chunk, index, reason),
        }
    }

    fn end_string(&mut self, chunk: Chunk<'_>, end: usize, key: bool) -> usize {
        self.settled.end = chunk.base + end;
        if !key {
            return self.end_value(chunk, end, false);
        }
        self.state = State::Colon;
        end
    }

    fn read_number(&mut self, chunk: Chunk<'_>, at: usize, number: Number, start: usize) -> usize {
        match number.scan(chunk.bytes, at) {
            NumberScan::Open(number) => {
                self.pending = start;
                self.state = State::Number(number);
                chunk.bytes.len()
            }
            NumberScan::Ended(end) => self.end_scalar(chunk, end, start),
            NumberScan::Invalid(index) => self.fail(chunk, index, "not a number"),
        }
    }

    fn begin_literal(&mut self, chunk: Chunk<'_>, at: usize, word: &'static [u8]) -> usize {
        if chunk.bytes[at..].starts_with(word) {
            return self.end_scalar(chunk, at + word.len(), chunk.base + at);
        }
        self.pending = chunk.base + at;
        self.literal = &word[1..];
        self.state = State::Literal;
        at + 1
    }

    fn read_literal(&mut self, chunk: Chunk<'_>, at: usize) -> usize {
        match self.literal {
            [expected, left @ ..] if *expected == chunk.bytes[at] => {
                self.literal = left;
                if left.is_empty() { self.end_scalar(chunk, at + 1, self.pending) } else { at + 1 }
            }
            _ => self.fail(chunk, at, "neither `true`, `false` nor `null`"),
        }
    }

    fn read_byte_order_mark(&mut self, chunk: Chunk<'_>, at: usize, matched: u8) -> usize {
        self.state = match (matched, chunk.bytes[at]) {
            (0, 0xEF) => State::ByteOrderMark(1),
            (1, 0xBB) => State::ByteOrderMark(2),
            (2, 0xBF) => State::Marked,
            _ => return self.fail(chunk, at, "not a byte order mark"),
        };
        at + 1
    }

    /// Skips whitespace, which separates values and excludes a byte order mark after it.
    fn read_whitespace(&mut self, at: usize) -> usize {
        match self.state {
            State::Done { .. } => self.state = State::Done { scalar: false },
            State::Start | State::Marked => self.state = State::Value,
            _ => {}
        }
        at + 1
    }

    fn fail(&mut self, chunk: Chunk<'_>, at: usize, reason: &'static str) -> usize {
        self.state = State::Malformed;
        self.malformed = Some((chunk.base + at, Cow::Borrowed(reason)));
        chunk.bytes.len()
    }

    fn end_scalar(&mut self, chunk: Chunk<'_>, end: usize, start: usize) -> usize {
        self.settle_token(start, chunk.base + end);
        self.end_value(chunk, end, true)
    }

    fn close(&mut self, chunk: Chunk<'_>, at: usize) -> usize {
        self.settle_token(chunk.base + at, chunk.base + at + 1);
        self.nesting.leave();
        self.end_value(chunk, at + 1, false)
    }

    fn end_value(&mut self, chunk: Chunk<'_>, end: usize, scalar: bool) -> usize {
        if self.nesting.depth() == 0 {
            self.balanced = chunk.base + end;
            self.state = State::Done { scalar };
        } else {
            self.state = State::AfterValue;
        }
        end
    }

    fn read_colon(&mut self, offset: usize) {
        self.settled.end = offset + 1;
        self.member = true;
        self.state = State::Value;
    }

    fn settle_token(&mut self, start: usize, end: usize) {
        self.settled.end = end;
        self.settled.speaking = start;
    }
}

#[cfg(test)]
mod tests;
