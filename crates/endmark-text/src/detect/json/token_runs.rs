//! Reads runs of complete tokens inside a container in one loop. Almost all JSON consists of such runs,
//! so they determine the speed.
//!
//! A run stops before anything unusual: a cut, a fault, or the end of the top-level value. It leaves the
//! machine in the same state as reading byte by byte. Other code reports faults.

use super::number::digits_length;
use super::plain_characters::settled_length;
use super::special_bytes::first_special;
use super::whitespace::whitespace_length;
use super::{Chunk, JsonMachine, State};

/// The start of a token, and its first byte.
type TokenStart = Option<(usize, u8)>;

impl JsonMachine {
    /// Reads all complete tokens from `from` on. Returns the position after them.
    pub(super) fn read_token_run(&mut self, chunk: Chunk<'_>, from: usize) -> usize {
        let Chunk { bytes, base } = chunk;
        let mut state = self.state;
        // The end of the last token, and the start of the last token other than a comma or colon.
        let mut end = from;
        let mut speaking = None;
        // The open string: its start, the number of settled bytes after its quote, and whether it is a key.
        let mut open_string = None;
        let mut token = match state {
            State::AfterValue => self.read_after_value(bytes, &mut end, &mut speaking, &mut state),
            _ => next_token(bytes, end),
        };
        while let Some((at, byte)) = token {
            let key = matches!(state, State::Key | State::FirstKey);
            if byte == b'"' {
                let (inside, closed) = string_length(&bytes[at + 1..]);
                if !closed {
                    open_string = Some((at, inside, key));
                    break;
                }
                end = at + inside + 2;
                speaking = Some(at);
                if key {
                    state = State::Colon;
                    if bytes.get(end) != Some(&b':') {
                        break;
                    }
                    self.member = true;
                    state = State::Value;
                    token = token_after_punctuation(bytes, end);
                    end += 1;
                    continue;
                }
            } else if key || byte == b']' {
                let closing = if key { State::FirstKey } else { State::FirstElement };
                if state != closing || key && byte != b'}' {
                    break;
                }
                token = self.read_after_value(bytes, &mut end, &mut speaking, &mut state);
                continue;
            } else if matches!(byte, b'{' | b'[') {
                if !self.nesting.has_room() {
                    break;
                }
                self.nesting.enter(byte == b'{');
                state = if byte == b'{' { State::FirstKey } else { State::FirstElement };
                speaking = Some(at);
                token = token_after_punctuation(bytes, at);
                end = at + 1;
                continue;
            } else {
                let Some(length) = scalar_length(&bytes[at..], byte) else { break };
                end = at + length;
                speaking = Some(at);
            }
            if bytes.get(end) == Some(&b',') {
                state = if self.nesting.is_in_object() { State::Key } else { State::Value };
                token = token_after_punctuation(bytes, end);
                end += 1;
            } else {
                token = self.read_after_value(bytes, &mut end, &mut speaking, &mut state);
            }
        }
        self.state = state;
        if end > from {
            self.settled.end = base + end;
        }
        if let Some(at) = speaking {
            self.settled.speaking = base + at;
        }
        match open_string {
            Some((at, settled, key)) => self.open_string(chunk, at, settled, key),
            None => end + whitespace_length(&bytes[end..]),
        }
    }

    /// Reads closing brackets and the comma after them. Returns the next token.
    fn read_after_value(
        &mut self,
        bytes: &[u8],
        end: &mut usize,
        speaking: &mut Option<usize>,
        state: &mut State,
    ) -> TokenStart {
        *state = State::AfterValue;
        loop {
            let (at, sign) = next_token(bytes, *end)?;
            let in_object = self.nesting.is_in_object();
            if sign == b',' {
                *state = if in_object { State::Key } else { State::Value };
                *end = at + 1;
                return token_after_punctuation(bytes, at);
            }
            if sign != (if in_object { b'}' } else { b']' }) || self.nesting.depth() == 1 {
                return None;
            }
            self.nesting.leave();
            *speaking = Some(at);
            *end = at + 1;
        }
    }
}

/// Returns the token after the one-byte token at `at`. It is optimised for at most one space between them.
#[inline(always)]
#[expect(clippy::inline_always, reason = "called between any two tokens")]
fn token_after_punctuation(bytes: &[u8], at: usize) -> TokenStart {
    match bytes[at..].first_chunk() {
        Some([_, byte, _]) if *byte > b' ' => Some((at + 1, *byte)),
        Some([_, b' ', byte]) if *byte > b' ' => Some((at + 2, *byte)),
        _ => next_token(bytes, at + 1),
    }
}

/// Returns the length of a complete number or literal, or `None` for another token.
#[inline(always)]
#[expect(clippy::inline_always, reason = "called for every value")]
fn scalar_length(bytes: &[u8], first: u8) -> Option<usize> {
    match first {
        b'-' | b'0'..=b'9' => whole_number(bytes),
        b't' if bytes.starts_with(b"true") => Some(4),
        b'f' if bytes.starts_with(b"false") => Some(5),
        b'n' if bytes.starts_with(b"null") => Some(4),
        _ => None,
    }
}

/// Skips whitespace, and returns the start of the next token and its first byte.
#[inline(never)]
fn next_token(bytes: &[u8], end: usize) -> TokenStart {
    match bytes.get(end..)? {
        [byte, ..] if *byte > b' ' => Some((end, *byte)),
        [b' ', byte, ..] if *byte > b' ' => Some((end + 1, *byte)),
        rest => {
            let at = end + whitespace_length(rest);
            Some((at, *bytes.get(at)?))
        }
    }
}

/// Returns the number of settled bytes of a string's content, and whether the closing quote follows them.
#[inline(always)]
#[expect(clippy::inline_always, reason = "short strings are read a third faster within the loop (measured)")]
fn string_length(bytes: &[u8]) -> (usize, bool) {
    // Most strings of records are shorter than this.
    if let Some(block) = bytes.first_chunk::<16>() {
        let (words, _) = block.as_chunks();
        if let Some(length) = first_special(words[0]) {
            if block[length] == b'"' {
                return (length, true);
            }
        } else if let Some(length) = first_special(words[1])
            && block[length + 8] == b'"'
        {
            return (length + 8, true);
        }
    }
    long_string_length(bytes)
}

#[inline(never)]
fn long_string_length(bytes: &[u8]) -> (usize, bool) {
    let length = settled_length(bytes);
    (length, bytes.get(length) == Some(&b'"'))
}

/// Returns the length of a number, or `None` if it is invalid or touches the end of the chunk.
#[inline]
fn whole_number(bytes: &[u8]) -> Option<usize> {
    let mut length = usize::from(bytes[0] == b'-');
    let digits = digits_length(&bytes[length..]);
    if digits == 0 || digits > 1 && bytes[length] == b'0' {
        return None;
    }
    length += digits;
    if bytes.get(length) == Some(&b'.') {
        let digits = digits_length(&bytes[length + 1..]);
        if digits == 0 {
            return None;
        }
        length += 1 + digits;
    }
    if let Some(b'e' | b'E') = bytes.get(length) {
        length += 1 + usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let digits = digits_length(&bytes[length..]);
        if digits == 0 {
            return None;
        }
        length += digits;
    }
    (length < bytes.len()).then_some(length)
}
