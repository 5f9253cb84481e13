//! Code fences around a continuation or around a complete restart.

use memchr::memmem;

use super::lines::is_sentence;

/// Returns the position after the line that opens a code fence here. Skips blank lines before it.
pub(super) fn opening(text: &str) -> Option<usize> {
    let indent = text.len() - text.trim_start().len();
    let rest = &text[indent..];
    let sign = rest.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let signs = rest.len() - rest.trim_start_matches(sign).len();
    let line_end = rest.find('\n')?;
    let info = rest[signs..line_end].trim();
    let named = info.len() <= 40 && !info.contains('`') && info.split_whitespace().count() <= 3;
    (signs >= 3 && named).then_some(indent + line_end + 1)
}

/// Returns the sign and the length of the last fence that a text opens and does not close. Returns `None` if the
/// number of fence lines is even.
pub(super) fn last_open_fence(text: &str) -> Option<(char, usize)> {
    let line = text.lines().rev().find(|line| is_fence_line(line))?.trim_start();
    let sign = line.chars().next()?;
    (lines(text) % 2 == 1).then_some((sign, line.len() - line.trim_start_matches(sign).len()))
}

/// Returns the text after a closing fence at the beginning of this text.
pub(super) fn rest_after_closing(text: &str) -> Option<&str> {
    let sign = text.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = text.trim_start_matches(sign);
    let line_end = rest.find('\n').unwrap_or(rest.len());
    (text.len() - rest.len() >= 3 && rest[..line_end].trim().is_empty()).then_some(&rest[line_end..])
}

/// Whether a line opens or closes a fence.
pub(crate) fn is_fence_line(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Returns the number of fence lines. An odd number leaves one fence open.
pub(super) fn lines(text: &str) -> usize {
    // Search for the signs, because few lines contain them. Only white space may precede them in the line.
    let begins_line = |place: &usize| {
        text[..*place]
            .chars()
            .rev()
            .find(|sign| *sign == '\n' || !sign.is_whitespace())
            .is_none_or(|sign| sign == '\n')
    };
    let of = |signs: &str| memmem::find_iter(text.as_bytes(), signs).filter(begins_line).count();
    of("```") + of("~~~")
}

/// The most lines of remarks after a closing fence.
const MAX_REMARKS: usize = 4;

/// Returns the start of a line that closes a fence, if only remarks follow it.
pub(super) fn closing_line_start(body: &str, closes: impl Fn(&str) -> bool) -> Option<usize> {
    let mut end = body.len();
    let mut remarks = 0;
    for line in body.rsplit('\n') {
        let start = end - line.len();
        if closes(line.trim()) {
            return Some(start);
        }
        if !line.trim().is_empty() {
            remarks += 1;
            if remarks > MAX_REMARKS || !is_sentence(line) {
                return None;
            }
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Whether a fence that was opened before this text is closed at the end of the text.
pub(super) fn is_closed(body: &str) -> bool {
    let closes = |line: &str| is_fence_line(line) && line.chars().all(|sign| sign == '`' || sign == '~');
    closing_line_start(body, closes).is_some()
}

#[cfg(test)]
mod tests {
    use super::{is_fence_line, lines};

    #[test]
    fn the_fence_count_equals_a_line_by_line_count() {
        let parts = ["```", "~~~", "`", "a", " ", "\t", "\n", "\r\n", "\u{2003}", "é"];
        for seed in 0..20_000_usize {
            let mut number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let text: String = (0..9)
                .map(|_| {
                    number = number.rotate_left(11).wrapping_mul(0x2545_f491_4f6c_dd1d);
                    parts[(number >> 40) % parts.len()]
                })
                .collect();
            let expected = text.lines().filter(|line| is_fence_line(line)).count();
            assert_eq!(lines(&text), expected, "{text:?}");
        }
    }
}
