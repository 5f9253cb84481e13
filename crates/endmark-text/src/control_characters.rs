//! Escapes raw control characters in JSON strings: models write them, and strict JSON does not allow
//! them.

use std::borrow::Cow;

use crate::json::append_escaped;

/// Escapes the raw control characters in the strings of JSON, and returns their number. All other bytes are
/// unchanged. The last string may be open.
///
/// ```
/// use endmark_text::escape_control_characters;
/// assert_eq!(escape_control_characters("{\n\"a\": \"b\nc\u{1}"), ("{\n\"a\": \"b\\nc\\u0001".into(), 2));
/// assert_eq!(escape_control_characters("[\"a\"]\n"), ("[\"a\"]\n".into(), 0));
/// ```
pub fn escape_control_characters(json: &str) -> (Cow<'_, str>, usize) {
    let (mut escaped, mut count, mut copied) = (String::new(), 0, 0);
    let (mut in_string, mut after_backslash) = (false, false);
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            _ if after_backslash => after_backslash = false,
            b'"' => in_string = !in_string,
            b'\\' => after_backslash = in_string,
            0..0x20 if in_string => {
                escaped.push_str(json.get(copied..at).unwrap_or_default());
                append_escaped(&mut escaped, json.get(at..=at).unwrap_or_default());
                (count, copied) = (count + 1, at + 1);
            }
            _ => {}
        }
    }
    if count == 0 {
        return (Cow::Borrowed(json), 0);
    }
    escaped.push_str(json.get(copied..).unwrap_or_default());
    (Cow::Owned(escaped), count)
}
