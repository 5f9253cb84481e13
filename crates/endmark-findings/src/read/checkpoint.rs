//! Parses checkpoints: `[CHECKPOINT] turn:{N} findings:{count} files_read:{count} remaining_dims:{list}`. (AR-3)

use super::lines::Line;
use crate::placeholder::is_placeholder;
use crate::vocabulary::find_list;
use crate::{Checkpoint, RemarkKind, UNNAMED_DIMENSIONS};

/// The marker at the start of a checkpoint line.
pub(super) const MARKER: &str = "[CHECKPOINT]";

/// Whether a line begins with the checkpoint marker, with or without emphasis.
pub(super) fn is_checkpoint(text: &str) -> bool {
    rest_after_marker(text).is_some()
}

fn rest_after_marker(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|ch: char| ch.is_whitespace() || "*_`->".contains(ch));
    let (word, tail) = text.split_at_checked(MARKER.len())?;
    word.eq_ignore_ascii_case(MARKER).then_some(tail)
}

/// Parses a checkpoint line. Also returns a remark if the line is a template from a prompt, or if a number cannot be
/// read.
pub(super) fn parse_checkpoint(line: &Line<'_>) -> (Option<Checkpoint>, Option<RemarkKind>) {
    let rest = rest_after_marker(&line.text).unwrap_or_default().trim_end().trim_end_matches(['*', '`', '_']);
    let position = line.start_position();
    let mut found = Checkpoint { turn: 0, findings: None, files_read: None, remaining_dims: None, position };
    let (mut turn, mut has_unreadable_number) = (None, false);
    let mut parts = split_values(rest);
    // If the text ends in this line, digits of the last number or dimensions of the list may be missing.
    if !line.is_terminated && !rest.ends_with(']') {
        parts.pop();
    }
    for (part, value) in parts {
        if is_placeholder(value) {
            return (None, Some(RemarkKind::Template));
        }
        let known = match part {
            "turn" => &mut turn,
            "findings" => &mut found.findings,
            "files_read" => &mut found.files_read,
            _ => {
                found.remaining_dims.get_or_insert_with(|| parse_list(value));
                continue;
            }
        };
        let number = parse_number(value);
        has_unreadable_number |= number.is_none();
        *known = known.or(number);
    }
    let is_broken = if turn.is_some() { has_unreadable_number } else { line.is_terminated };
    (turn.map(|turn| Checkpoint { turn, ..found }), is_broken.then_some(RemarkKind::BrokenCheckpoint))
}

/// Splits a line into names and values. Each value ends at the next name.
fn split_values(text: &str) -> Vec<(&'static str, &str)> {
    let names = text.match_indices([':', '=']).filter_map(|(at, _)| {
        let begins = text[..at]
            .rfind(|ch: char| !ch.is_alphanumeric() && ch != '_')
            .map_or(0, |before| before + text[before..].chars().next().map_or(0, char::len_utf8));
        let part = find_list("checkpoint", &text[begins..at].to_ascii_lowercase())?;
        Some((part, begins, at + 1))
    });
    let names: Vec<_> = names.collect();
    let ends = names.iter().skip(1).map(|(_, begins, _)| *begins).chain([text.len()]);
    names.iter().zip(ends).map(|((part, _, value), end)| (*part, text[*value..end].trim())).collect()
}

/// Parses the number at the start of a value: 3 in `3 findings`, and 10 in `10/40`.
pub(super) fn parse_number(value: &str) -> Option<u32> {
    let first = value.split_whitespace().next()?;
    let first = first.trim_matches(|ch: char| "*_`,;|()\"".contains(ch));
    first.split('/').next().unwrap_or(first).parse().ok()
}

/// Parses a list: `a,b` or `[a,b]`. `none` is an empty list.
pub(super) fn parse_list(value: &str) -> Vec<String> {
    let value = value.trim_matches(|ch: char| ch.is_whitespace() || "*`|;".contains(ch));
    let value = value.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(value);
    let items = value.split([',', ';']);
    let items = items.map(|item| item.trim_matches(|ch: char| ch.is_whitespace() || "\"'`*".contains(ch)));
    let items = items.filter(|item| !item.is_empty() && *item != UNNAMED_DIMENSIONS);
    let items: Vec<String> = items.map(str::to_owned).collect();
    match items.as_slice() {
        [word] if ["none", "-", "n/a"].iter().any(|none| word.eq_ignore_ascii_case(none)) => Vec::new(),
        _ => items,
    }
}
