//! Escapes control characters, so that an agent's text cannot control a terminal. (AR-1, AR-6)

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character controls a terminal or ends a line. A tab does neither.
pub(super) fn is_control(ch: char) -> bool {
    ch.is_control() && ch != '\t'
}

/// Escapes the control characters of a text that people read. Line feeds and tabs stay.
pub(super) fn escape_controls(text: &str) -> Cow<'_, str> {
    replace_characters(text, |shown, ch| shown.extend(ch.escape_unicode()))
}

/// Escapes the control characters that JSON strings may contain unescaped.
pub(super) fn escape_json_controls(json: &str) -> Cow<'_, str> {
    replace_characters(json, |shown, ch| {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\\u{:04x}", u32::from(ch));
    })
}

fn replace_characters(text: &str, replace: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let is_safe = |ch: char| !is_control(ch) || ch == '\n';
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for ch in text.chars() {
        if is_safe(ch) {
            escaped.push(ch);
        } else {
            replace(&mut escaped, ch);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::{escape_controls, escape_json_controls};

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_controls("\u{1b}]0;x\u{7}\n\ta"), "\\u{1b}]0;x\\u{7}\n\ta");
        assert_eq!(escape_json_controls("\"\u{9b}31m\""), "\"\\u009b31m\"");
    }
}
