//! Checkpoints: `[CHECKPOINT] turn:{N} findings:{count} files_read:{count} remaining_dims:{list}`. (AR-3)

use super::lines::Line;
use crate::stand_in::is_placeholder;
use crate::vocabulary::find_list;
use crate::{Checkpoint, RemarkKind, UNNAMED_DIMENSIONS};

/// The first word of a checkpoint.
pub(super) const WORD: &str = "[CHECKPOINT]";

/// Whether a line begins like a checkpoint.
pub(super) fn is_checkpoint(text: &str) -> bool {
    rest_after_word(text).is_some()
}

fn rest_after_word(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|sign: char| sign.is_whitespace() || "*_`->".contains(sign));
    let (word, behind) = text.split_at_checked(WORD.len())?;
    word.eq_ignore_ascii_case(WORD).then_some(behind)
}

/// Parses a checkpoint line, with an optional remark: the line is a template from a prompt, or a number cannot be
/// read.
pub(super) fn parse_checkpoint(line: &Line<'_>) -> (Option<Checkpoint>, Option<RemarkKind>) {
    let rest = rest_after_word(&line.text).unwrap_or_default().trim_end().trim_end_matches(['*', '`', '_']);
    let position = line.begins();
    let mut found = Checkpoint { turn: 0, findings: None, files_read: None, remaining_dims: None, position };
    let (mut turn, mut is_partly_read) = (None, false);
    let mut parts = parts(rest);
    // At the end of the text, digits of a number or dimensions of a list may be missing.
    if !line.is_settled && !rest.ends_with(']') {
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
                found.remaining_dims.get_or_insert_with(|| list(value));
                continue;
            }
        };
        let number = number(value);
        is_partly_read |= number.is_none();
        *known = known.or(number);
    }
    let is_broken = if turn.is_some() { is_partly_read } else { line.is_settled };
    (turn.map(|turn| Checkpoint { turn, ..found }), is_broken.then_some(RemarkKind::BrokenCheckpoint))
}

/// Splits a line into parts, each up to the name of the next one.
fn parts(text: &str) -> Vec<(&'static str, &str)> {
    let names = text.match_indices([':', '=']).filter_map(|(at, _)| {
        let begins = text[..at]
            .rfind(|sign: char| !sign.is_alphanumeric() && sign != '_')
            .map_or(0, |before| before + text[before..].chars().next().map_or(0, char::len_utf8));
        let part = find_list("checkpoint", &text[begins..at].to_ascii_lowercase())?;
        Some((part, begins, at + 1))
    });
    let names: Vec<_> = names.collect();
    let ends = names.iter().skip(1).map(|(_, begins, _)| *begins).chain([text.len()]);
    names.iter().zip(ends).map(|((part, _, value), end)| (*part, text[*value..end].trim())).collect()
}

/// Returns the number at the start of a value: `3 findings`, or `10/40` for the tenth of forty.
pub(super) fn number(value: &str) -> Option<u32> {
    let first = value.split_whitespace().next()?;
    let first = first.trim_matches(|sign: char| "*_`,;|()\"".contains(sign));
    first.split('/').next().unwrap_or(first).parse().ok()
}

/// Parses `a,b` or `[a,b]`; `none` is an empty list.
pub(super) fn list(value: &str) -> Vec<String> {
    let value = value.trim_matches(|sign: char| sign.is_whitespace() || "*`|;".contains(sign));
    let value = value.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(value);
    let items = value.split([',', ';']);
    let items =
        items.map(|item| item.trim_matches(|sign: char| sign.is_whitespace() || "\"'`*".contains(sign)));
    let items = items.filter(|item| !item.is_empty() && *item != UNNAMED_DIMENSIONS);
    let items: Vec<String> = items.map(str::to_owned).collect();
    match items.as_slice() {
        [word] if ["none", "-", "n/a"].iter().any(|none| word.eq_ignore_ascii_case(none)) => Vec::new(),
        _ => items,
    }
}
