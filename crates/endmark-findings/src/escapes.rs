//! Signs that the canonical form cannot hold as they are, written as `\u{1b}`. (AR-1)
//!
//! A result in which that was done says so in its header, so that code in which somebody else has written `\u{1b}` is
//! never taken for it.

use std::borrow::Cow;
use std::fmt::Write;

/// The field of the header that says it, and its value.
pub(super) const FIELD: (&str, &str) = ("escapes", "unicode");

/// How much of a text is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What drives a terminal or ends a line, and what looks like an escape.
    Control,
    /// And the signs that its lines, or the items of a list, begin and end with.
    Ends,
    /// All.
    All,
}

/// Whether a sign drives a terminal or ends a line; a tab does neither.
pub(super) fn is_control(sign: char) -> bool {
    sign.is_control() && sign != '\t'
}

/// The text with so much of it escaped; line feeds are kept where there may be several lines.
pub(super) fn escaped(text: &str, extent: Extent, has_lines: bool) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut is_first = true;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let next = signs.peek().copied();
        if has_lines && sign == '\n' {
            escaped.push(sign);
            is_first = true;
            continue;
        }
        let is_last = next.is_none() || has_lines && next == Some('\n');
        let is_meant = match extent {
            Extent::Control => false,
            Extent::Ends => is_first || is_last || SEPARATORS.contains(&sign),
            Extent::All => true,
        };
        if is_meant || is_control(sign) || sign == '\\' && (is_last || next == Some('u')) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{{{:x}}}", u32::from(sign));
        } else {
            escaped.push(sign);
        }
        is_first = false;
    }
    // Nothing at all would not be there.
    if text.is_empty() { "\\u{}".to_owned() } else { escaped }
}

/// What stands between the items of a list.
const SEPARATORS: [char; 5] = [',', ';', '，', '、', '；'];

/// The text that was escaped; an escape that it stops in the middle of was cut, and is not there.
pub(super) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let digits = behind.strip_prefix("u{");
        let is_cut = behind.is_empty() || behind == "u" || digits.is_some_and(is_hexadecimal);
        if is_cut {
            return plain;
        }
        let escape =
            digits.and_then(|digits| digits.split_once('}')).filter(|(digits, _)| is_hexadecimal(digits));
        rest = if let Some((digits, more)) = escape {
            plain.extend(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
            more
        } else {
            plain.push('\\');
            behind
        };
    }
    plain.push_str(rest);
    plain
}

fn is_hexadecimal(text: &str) -> bool {
    text.chars().all(|sign| sign.is_ascii_hexdigit())
}

/// The text for people, without anything that drives a terminal.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    let is_safe = |sign: char| !is_control(sign) || sign == '\n';
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        if is_safe(sign) {
            shown.push(sign);
        } else {
            shown.extend(sign.escape_unicode());
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_is_the_same_again_and_what_is_cut_is_not_there() {
        for text in ["", "a", "\u{1b}[31m", "\\u{41}", "\\", "\\\\u", "a,b", "\\x \\u", " ", "é\u{85}"] {
            for extent in [Extent::Control, Extent::Ends, Extent::All] {
                let written = escaped(text, extent, false);
                assert_eq!(unescaped(&written), text, "{written}");
                assert!(!written.contains(is_control), "{written}");
                for (cut, _) in written.char_indices() {
                    assert!(text.starts_with(&unescaped(&written[..cut])), "{text:?} as {}", &written[..cut]);
                }
            }
        }
        assert_eq!(escaped("a\\\nb\u{7}", Extent::Control, true), "a\\u{5c}\nb\\u{7}");
        assert_eq!(visible("\u{1b}]0;x\u{7}\n\ta"), "\\u{1b}]0;x\\u{7}\n\ta");
    }
}
