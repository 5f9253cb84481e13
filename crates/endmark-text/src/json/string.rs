//! Decodes and encodes JSON strings.

use std::borrow::Cow;

use super::DecodedString;
use super::scan::find_near;

/// Decodes the source between the quotes of a checked string.
pub(crate) fn decode(inside: &str) -> DecodedString<'_> {
    let Some(first) = memchr::memchr(b'\\', inside.as_bytes()) else {
        return DecodedString { text: Cow::Borrowed(inside), exact: true };
    };
    let mut text = String::with_capacity(inside.len());
    let mut exact = true;
    let (plain, mut rest) = inside.split_at(first);
    text.push_str(plain);
    while let Some(escape) = rest.strip_prefix('\\') {
        let sign = escape.chars().next().unwrap_or('\\');
        rest = escape.get(sign.len_utf8()..).unwrap_or_default();
        match sign {
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => {
                let (character, after) = decode_unicode_escape(rest);
                rest = after;
                exact &= character.is_some();
                text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => text.push(other),
        }
        let next = find_near(rest.as_bytes(), |byte| byte == b'\\', |rest| memchr::memchr(b'\\', rest));
        let plain = next.unwrap_or(rest.len());
        let (before, after) = rest.split_at(plain);
        text.push_str(before);
        rest = after;
    }
    DecodedString { text: Cow::Owned(text), exact }
}

/// Decodes one chunk of a text. `half` is a high surrogate that ended the previous chunk. Returns a high
/// surrogate at the end of this chunk separately, for the next call.
pub(super) fn decode_chunk(half: Option<u32>, inside: &str) -> (DecodedString<'_>, Option<u32>) {
    let (inside, waiting) = split_high_surrogate(inside);
    let Some(half) = half else { return (decode(inside), waiting) };
    let low = inside
        .strip_prefix("\\u")
        .and_then(parse_code_unit)
        .and_then(|(low, rest)| Some((join_surrogates(half, low)?, rest)));
    let (character, rest) = match low {
        _ if inside.is_empty() && waiting.is_none() => return (decode(inside), Some(half)),
        Some((character, rest)) => (Some(character), rest),
        None => (None, inside),
    };
    let behind = decode(rest);
    let mut text = String::with_capacity(behind.text.len() + 4);
    text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.push_str(&behind.text);
    (DecodedString { text: Cow::Owned(text), exact: behind.exact && character.is_some() }, waiting)
}

/// Splits a high surrogate escape from the end of a text.
fn split_high_surrogate(inside: &str) -> (&str, Option<u32>) {
    let at = inside.len().saturating_sub("\\ud83d".len());
    let half =
        inside.get(at..).and_then(|tail| parse_code_unit(tail.strip_prefix("\\u")?)).map(|(unit, _)| unit);
    let before = inside.get(..at).unwrap_or_default();
    let is_escaped = before.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
    match half.filter(|unit| (0xD800..=0xDBFF).contains(unit) && !is_escaped) {
        Some(half) => (before, Some(half)),
        None => (inside, None),
    }
}

/// Combines the two halves of a surrogate pair. Returns `None` if they do not form a character.
fn join_surrogates(high: u32, low: u32) -> Option<char> {
    let is_low = (0xDC00..=0xDFFF).contains(&low);
    let offset = high.checked_sub(0xD800).filter(|_| is_low)?;
    char::from_u32(0x1_0000 + (offset << 10) + (low - 0xDC00))
}

/// Decodes a `\u` escape after its `\u`. Returns `None` as the character for a lone surrogate, and the
/// remaining text.
fn decode_unicode_escape(rest: &str) -> (Option<char>, &str) {
    let Some((unit, after)) = parse_code_unit(rest) else { return (None, "") };
    if let Some(character) = char::from_u32(unit) {
        return (Some(character), after);
    }
    let low = after.strip_prefix("\\u").and_then(parse_code_unit);
    match low {
        Some((low @ 0xDC00..=0xDFFF, after_both)) if unit < 0xDC00 => {
            (join_surrogates(unit, low), after_both)
        }
        _ => (None, after),
    }
}

fn parse_code_unit(rest: &str) -> Option<(u32, &str)> {
    let (digits, after) = (rest.get(..4)?, rest.get(4..)?);
    Some((u32::from_str_radix(digits, 16).ok()?, after))
}

/// Encodes a text as a JSON string with quotes.
pub fn quote(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    append_escaped(&mut json, text);
    json.push('"');
    json
}

/// Appends a text with the escapes of a JSON string, without quotes.
pub fn append_escaped(json: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            control @ '\0'..='\u{1f}' => {
                json.push_str("\\u00");
                json.push(if control < '\u{10}' { '0' } else { '1' });
                json.push(char::from_digit(u32::from(control) % 16, 16).unwrap_or('0'));
            }
            other => json.push(other),
        }
    }
}
