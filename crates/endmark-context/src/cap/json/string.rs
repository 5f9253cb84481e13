//! Shortens long JSON strings.

use super::super::limits::{Keep, Limits, Unit};
use super::super::lines::InvalidUtf8;
use super::super::marker;
use super::super::text::{LandmarkKind, TextCapper};
use endmark_envelope::{Size, grapheme_boundary, json_width};
use endmark_text::replace_lone_surrogates;

/// With at least this much room, a string of several lines is capped like a text: head, tail, and lines with
/// errors.
const MIN_ROOM_FOR_LINES: usize = 400;

/// A shortened string.
#[derive(Debug)]
pub(super) struct CutString {
    pub(super) json: String,
    pub(super) returned: Size,
    pub(super) original: Size,
}

/// Decodes a JSON string. Replaces unpaired surrogates by U+FFFD. Returns `None` if it is not a JSON string.
pub(crate) fn decode_json_string(json: &str) -> Option<String> {
    serde_json::from_str(&replace_lone_surrogates(json)).ok()
}

/// Shortens a JSON string to at most `most`, including quotation marks. Returns `None` if there is no room.
/// Replaces unpaired surrogates by U+FFFD.
pub(super) fn shorten(json: &str, most: usize, limits: &Limits) -> Option<CutString> {
    let text = decode_json_string(json)?;
    let is_of_lines = most >= MIN_ROOM_FOR_LINES && text.trim_end().contains('\n');
    let shortened = if is_of_lines { cap_as_text(&text, most, limits) } else { None };
    shortened.or_else(|| shorten_text(&text, most, limits))
}

/// Caps a string of several lines as a text. Escapes are longer than their characters, so the room is reduced
/// in steps until the result fits.
fn cap_as_text(text: &str, most: usize, limits: &Limits) -> Option<CutString> {
    let unit = if matches!(limits.unit, Unit::Bytes) { Unit::Bytes } else { Unit::Chars };
    let mut room = most;
    for _ in 0..4 {
        let own = Limits { most: room, handle: None, unit, ..limits.clone() };
        let mut capper = TextCapper::new(&own, LandmarkKind::Errors, InvalidUtf8::Reject);
        capper.push(text.as_bytes()).ok()?;
        let (shortened, _) = capper.finish().ok()?;
        let json = serde_json::to_string(&shortened.text).ok()?;
        let size = limits.size(&json);
        if size <= most {
            return Some(CutString { json, returned: shortened.returned, original: shortened.original });
        }
        room = room * most / size * 49 / 50;
    }
    None
}

/// Returns the beginning of a text with a marker, or its end for [`Keep::Tail`].
fn shorten_text(text: &str, most: usize, limits: &Limits) -> Option<CutString> {
    let original = Size::of(text);
    let marker = marker::string_marker(original.chars);
    let room = most.checked_sub(marker.len() + 2)?;
    let keeps_end = limits.keep == Keep::Tail;
    let mut left = room;
    let mut fits = |character: char| {
        let rest = left.checked_sub(char_size(character, limits));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let (shown, is_end) = if keeps_end {
        let bytes: usize =
            text.chars().rev().take_while(|character| fits(*character)).map(char::len_utf8).sum();
        // The first grapheme boundary after the omitted bytes.
        let at = text.len() - bytes;
        let at =
            (at..=text.len()).find(|at| text.is_char_boundary(*at) && grapheme_boundary(text, *at) == *at)?;
        (&text[at..], true)
    } else {
        let bytes: usize = text.chars().take_while(|character| fits(*character)).map(char::len_utf8).sum();
        (&text[..grapheme_boundary(text, bytes)], false)
    };
    let returned = Size::of(shown);
    let marker = marker::string_marker(original.chars - returned.chars);
    let cut = if is_end { format!("{marker}{shown}") } else { format!("{shown}{marker}") };
    Some(CutString { json: serde_json::to_string(&cut).ok()?, returned, original })
}

/// Returns the size of a character within a JSON string.
pub(in crate::cap) fn char_size(character: char, limits: &Limits) -> usize {
    // An escape sequence is ASCII, so it has as many characters as bytes.
    if matches!(limits.unit, Unit::Bytes) || character.is_ascii() { json_width(character) } else { 1 }
}
