//! Code fences: a continuation, or a whole restart, that comes wrapped in one.

use memchr::memmem;

/// The place behind the line that opens a code fence here, blank lines before it skipped.
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

/// What follows a line that closes a code fence at the beginning of this text.
pub(super) fn closing(text: &str) -> Option<&str> {
    let sign = text.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = text.trim_start_matches(sign);
    let line_end = rest.find('\n').unwrap_or(rest.len());
    (text.len() - rest.len() >= 3 && rest[..line_end].trim().is_empty()).then_some(&rest[line_end..])
}

/// Whether a line is one that opens or closes a fence.
fn is_fence_line(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// How many lines open or close a fence; an odd number leaves one open.
pub(super) fn lines(text: &str) -> usize {
    // Looked for by its signs, which hardly any line has; in front of the first ones a line has only whitespace.
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

/// The end of a wrapped text before its closing fence, where its last lines are that fence and perhaps prose
/// behind it.
pub(super) fn before_closing(body: &str) -> Option<usize> {
    let mut end = body.len();
    for line in body.rsplit('\n') {
        let start = end - line.len();
        if is_fence_line(line) {
            let closes = line.trim().chars().all(|sign| sign == '`' || sign == '~');
            // The line break before the closing fence belongs to the fence.
            return closes.then(|| start.saturating_sub(1));
        }
        if !(line.trim().is_empty() || is_sentence(line.trim())) {
            return None;
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Whether a line reads as a remark.
fn is_sentence(line: &str) -> bool {
    line.starts_with(char::is_uppercase) && line.ends_with(['.', '!', '?', ':'])
}

#[cfg(test)]
mod tests {
    use super::{is_fence_line, lines};

    #[test]
    fn lines_are_counted_as_one_by_one() {
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
