//! Escapes control characters and line ends, which are never written unchanged. (AR-1, AR-6)

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character controls a terminal or ends a line. A tab does neither.
pub(super) fn is_control(sign: char) -> bool {
    sign.is_control() && sign != '\t'
}

/// Escapes the control characters of a text for people.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    replace_characters(text, |shown, sign| shown.extend(sign.escape_unicode()))
}

/// Escapes the control characters that JSON strings may contain unescaped.
pub(super) fn visible_json(json: &str) -> Cow<'_, str> {
    replace_characters(json, |shown, sign| {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\\u{:04x}", u32::from(sign));
    })
}

fn replace_characters(text: &str, replace: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let is_safe = |sign: char| !is_control(sign) || sign == '\n';
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        if is_safe(sign) {
            shown.push(sign);
        } else {
            replace(&mut shown, sign);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::{visible, visible_json};

    #[test]
    fn terminal_controls_are_escaped() {
        assert_eq!(visible("\u{1b}]0;x\u{7}\n\ta"), "\\u{1b}]0;x\\u{7}\n\ta");
        assert_eq!(visible_json("\"\u{9b}31m\""), "\"\\u009b31m\"");
    }
}
