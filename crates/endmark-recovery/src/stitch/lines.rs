//! Classifies lines by their form: sentences, and beginnings of blocks.

/// Returns the last non-empty line of a text.
pub(super) fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

/// Whether a line reads like a sentence of prose, such as a remark.
pub(super) fn is_sentence(line: &str) -> bool {
    let line = line.trim();
    let ends = line.ends_with(['.', '!', '?', ':', '。', '！', '？', '…', ')', '*']);
    ends && !line.starts_with(char::is_lowercase)
        && line.split_whitespace().count() >= 2
        && !line.contains(['{', '}', '='])
        || ends && line.chars().any(|sign| u32::from(sign) > 0x2e80)
}

/// Whether a text begins with a heading, a list or a table, none of which can begin in the middle of a line.
/// `glued` means that no whitespace precedes the text.
pub(super) fn begins_block(text: &str, glued: bool) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let signs = line.len() - line.trim_start_matches('#').len();
    let is_heading = (1..=6).contains(&signs) && line[signs..].starts_with(' ');
    let stands_alone = text[line.len()..].starts_with("\n\n");
    let is_row = line.starts_with("| ") && line.ends_with('|');
    is_heading && (stands_alone || glued) || glued && (line.starts_with("- **") || is_row)
}
