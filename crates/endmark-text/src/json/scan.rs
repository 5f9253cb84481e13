//! Scans JSON bytes: strictly checks a whole document, and steps quickly through bytes that were checked
//! before.

use std::ops::Range;

use super::{JsonError, Kind};

/// Receives the values of a document during the check, in document order.
pub trait Visit {
    /// An array or object begins at `at`.
    fn begin_container(&mut self, kind: Kind, at: usize);
    /// The innermost array or object ends before `at`.
    fn end_container(&mut self, at: usize);
    /// A field has its name, with quotes, at this span.
    fn push_name(&mut self, span: Range<usize>);
    /// A value other than an array or object is at this span.
    fn push_scalar(&mut self, kind: Kind, span: Range<usize>);
}

/// Ignores all values.
struct IgnoreValues;

impl Visit for IgnoreValues {
    fn begin_container(&mut self, _: Kind, _: usize) {}
    fn end_container(&mut self, _: usize) {}
    fn push_name(&mut self, _: Range<usize>) {}
    fn push_scalar(&mut self, _: Kind, _: Range<usize>) {}
}

/// Checks that the bytes are one JSON value, with only whitespace around it. Returns the span of the value.
pub(super) fn check(bytes: &[u8]) -> Result<Range<usize>, JsonError> {
    visit(bytes, &mut IgnoreValues)
}

/// Checks bytes like [`super::Value::parse`], and passes each value to a visitor. The bytes need not be UTF-8.
///
/// The nesting is stored in a vector with one byte per level, so only memory limits the depth.
pub fn visit(bytes: &[u8], visitor: &mut impl Visit) -> Result<Range<usize>, JsonError> {
    let start = skip_space(bytes, 0);
    let mut at = start;
    let mut open: Vec<u8> = Vec::new();
    'value: loop {
        if let Some(sign @ (b'{' | b'[')) = bytes.get(at).copied() {
            visitor.begin_container(if sign == b'{' { Kind::Object } else { Kind::Array }, at);
            let inside = skip_space(bytes, at + 1);
            if bytes.get(inside).copied() != Some(sign + 2) {
                open.push(sign);
                at = if sign == b'{' { scan_key(bytes, inside, visitor)? } else { inside };
                continue 'value;
            }
            at = inside + 1;
            visitor.end_container(at);
        } else {
            let (kind, end) = scan_scalar(bytes, at)?;
            visitor.push_scalar(kind, at..end);
            at = end;
        }
        // A value ends at `at`. Close the containers that end here, or continue with the next value.
        loop {
            let Some(&container) = open.last() else {
                let rest = skip_space(bytes, at);
                let span = start..at;
                return if rest == bytes.len() {
                    Ok(span)
                } else {
                    Err(error(bytes, rest, "the document has ended before"))
                };
            };
            at = skip_space(bytes, at);
            match bytes.get(at).copied() {
                Some(b',') => {
                    at = skip_space(bytes, at + 1);
                    if container == b'{' {
                        at = scan_key(bytes, at, visitor)?;
                    }
                    continue 'value;
                }
                // In ASCII, `}` and `]` are two code points after their opening brackets.
                Some(sign) if sign == container + 2 => {
                    open.pop();
                    at += 1;
                    visitor.end_container(at);
                }
                _ if container == b'{' => return Err(error(bytes, at, "`,` or `}` was expected")),
                _ => return Err(error(bytes, at, "`,` or `]` was expected")),
            }
        }
    }
}

/// Returns the start of the next field or item after an opening bracket or a value. Returns `None` at the
/// closing bracket.
///
/// The bytes must have passed [`check`].
pub(super) fn next_start(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = skip_space(bytes, at);
    if bytes.get(at) == Some(&b',') {
        at = skip_space(bytes, at + 1);
    }
    match bytes.get(at)? {
        b'}' | b']' => None,
        _ => Some(at),
    }
}

/// Returns the end of the value that begins at `start`. The bytes must have passed [`check`].
pub(super) fn value_end(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start) {
        Some(b'"') => string_end(bytes, start).unwrap_or(bytes.len()),
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            let mut at = start;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    b'"' => {
                        at = string_end(bytes, at).unwrap_or(bytes.len());
                        continue;
                    }
                    _ => {}
                }
                at += 1;
            }
            bytes.len()
        }
        _ => bytes[start.min(bytes.len())..]
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
            .map_or(bytes.len(), |length| start + length),
    }
}

/// Returns the position after the closing quote of a string, or `None` if it has none. The opening quote is
/// at `start`. The content is not checked.
pub fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let rest = bytes.get(at..)?;
        // Keys and most values are short. Starting a search that is optimised for long texts would cost more
        // than it saves.
        let close = count_plain(&rest[..rest.len().min(SHORT_STRING_BYTES)]);
        let found = match rest.get(close) {
            Some(b'"' | b'\\') => Some(close),
            _ => memchr::memchr2(b'"', b'\\', &rest[close..]).map(|length| close + length),
        };
        at += found?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Number of bytes of a string that are examined one by one, before a search for long texts starts.
const SHORT_STRING_BYTES: usize = 32;

/// Number of bytes after an escape that are examined one by one.
const BYTES_AFTER_ESCAPE: usize = 16;

/// Returns the first matching byte. The first bytes are examined one by one: escapes are often close
/// together, and starting a search for long texts costs more than it saves.
pub(super) fn find_near(
    bytes: &[u8],
    is_it: impl Fn(u8) -> bool,
    far: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    let (close, behind) = bytes.split_at(bytes.len().min(BYTES_AFTER_ESCAPE));
    let found = close.iter().position(|byte| is_it(*byte));
    found.or_else(|| far(behind).map(|length| close.len() + length))
}

pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Checks a value other than an array or object. Returns its kind and its end.
fn scan_scalar(bytes: &[u8], at: usize) -> Result<(Kind, usize), JsonError> {
    Ok(match bytes.get(at).copied() {
        Some(b'"') => (Kind::String, scan_string(bytes, at)?),
        Some(b'-' | b'0'..=b'9') => (Kind::Number, scan_number(bytes, at)?),
        Some(b't') => (Kind::Bool, scan_literal(bytes, at, b"true")?),
        Some(b'f') => (Kind::Bool, scan_literal(bytes, at, b"false")?),
        Some(b'n') => (Kind::Null, scan_literal(bytes, at, b"null")?),
        _ => return Err(error(bytes, at, "a value was expected")),
    })
}

/// Checks a key and its colon. Returns the start of the value.
fn scan_key(bytes: &[u8], at: usize, visitor: &mut impl Visit) -> Result<usize, JsonError> {
    if bytes.get(at) != Some(&b'"') {
        return Err(error(bytes, at, "a field's name was expected"));
    }
    let end = scan_string(bytes, at)?;
    visitor.push_name(at..end);
    let colon = skip_space(bytes, end);
    if bytes.get(colon) != Some(&b':') {
        return Err(error(bytes, colon, "`:` was expected"));
    }
    Ok(skip_space(bytes, colon + 1))
}

fn scan_string(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start + 1;
    loop {
        at += count_plain(bytes.get(at..).unwrap_or_default());
        match bytes.get(at).copied() {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match bytes.get(at + 1).copied() {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let digits =
                        bytes.iter().skip(at + 2).take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
                    if digits < 4 {
                        return Err(error(bytes, at + 2 + digits, "four hexadecimal digits were expected"));
                    }
                    at += 6;
                }
                _ => return Err(error(bytes, at + 1, "no such escape")),
            },
            Some(0x20..) => at += 1,
            Some(_) => return Err(error(bytes, at, "a control character inside a string")),
            None => return Err(error(bytes, at, "")),
        }
    }
}

/// Returns the number of bytes before the first one that is not a plain character of a string. It examines
/// eight bytes at a time, so the result may be up to seven too small.
fn count_plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The highest bit is set in the first zero byte, and in no byte before it.
    let nothing_in = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut length = 0;
    for eight in bytes.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*eight);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let quote = nothing_in(word ^ (ONES * u64::from(b'"')));
        let escape = nothing_in(word ^ (ONES * u64::from(b'\\')));
        let found = control | quote | escape;
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length
}

fn scan_number(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { scan_digits(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = scan_digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at = scan_digits(bytes, at)?;
    }
    Ok(at)
}

fn scan_digits(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let count = bytes.iter().skip(start).take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 { Err(error(bytes, start, "a digit was expected")) } else { Ok(start + count) }
}

fn scan_literal(bytes: &[u8], start: usize, word: &[u8]) -> Result<usize, JsonError> {
    let same = bytes.iter().skip(start).zip(word).take_while(|(byte, wanted)| byte == wanted).count();
    if same == word.len() { Ok(start + same) } else { Err(error(bytes, start + same, "no such literal")) }
}

fn error(bytes: &[u8], offset: usize, reason: &'static str) -> JsonError {
    if offset >= bytes.len() {
        JsonError { offset: bytes.len(), reason: "the text ends too early" }
    } else {
        JsonError { offset, reason }
    }
}
