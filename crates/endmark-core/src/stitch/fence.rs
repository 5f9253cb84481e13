//! Code fences: a continuation, or a whole restart, that comes wrapped in one.

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
    // Only a line that begins here counts: the first one may be the rest of a line that was cut.
    text.lines().filter(|line| is_fence_line(line)).count()
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
