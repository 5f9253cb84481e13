//! Finds code fences around a continuation or around a complete restart.

use memchr::memmem;

use super::lines::is_sentence;

/// Returns the position after an opening fence line at the beginning of a text. Blank lines may precede it.
pub(super) fn opening_line_end(text: &str) -> Option<usize> {
    let indent = text.len() - text.trim_start().len();
    let rest = &text[indent..];
    let sign = rest.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let signs = rest.len() - rest.trim_start_matches(sign).len();
    let line_end = rest.find('\n')?;
    let info = rest[signs..line_end].trim();
    let named = info.len() <= 40 && !info.contains('`') && info.split_whitespace().count() <= 3;
    (signs >= 3 && named).then_some(indent + line_end + 1)
}

/// Returns the character and the length of the last fence that a text opens and does not close. Returns
/// `None` if the number of fence lines is even.
pub(super) fn last_open_fence(text: &str) -> Option<(char, usize)> {
    let line = text.lines().rev().find(|line| is_fence_line(line))?.trim_start();
    let sign = line.chars().next()?;
    (line_count(text) % 2 == 1).then_some((sign, line.len() - line.trim_start_matches(sign).len()))
}

/// Returns the text after a closing fence at the beginning of a text, or `None` without one.
pub(super) fn rest_after_closing(text: &str) -> Option<&str> {
    let sign = text.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = text.trim_start_matches(sign);
    let line_end = rest.find('\n').unwrap_or(rest.len());
    (text.len() - rest.len() >= 3 && rest[..line_end].trim().is_empty()).then_some(&rest[line_end..])
}

/// Whether a line opens or closes a code fence.
pub(crate) fn is_fence_line(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Returns the number of fence lines. If it is odd, one fence is open.
pub(super) fn line_count(text: &str) -> usize {
    // Search for the characters first, because few lines contain them. Only whitespace may precede them.
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

/// Maximum number of lines of remarks after a closing fence.
const MAX_REMARK_LINES: usize = 4;

/// Returns the start of the line that closes a fence, if only remarks follow it.
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
            if remarks > MAX_REMARK_LINES || !is_sentence(line) {
                return None;
            }
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Whether a fence that was opened before this text is closed at its end.
pub(super) fn is_closed(body: &str) -> bool {
    let closes = |line: &str| is_fence_line(line) && line.chars().all(|sign| sign == '`' || sign == '~');
    closing_line_start(body, closes).is_some()
}

#[cfg(test)]
mod tests {
    use super::{is_fence_line, line_count};

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
            assert_eq!(line_count(&text), expected, "{text:?}");
        }
    }
}
