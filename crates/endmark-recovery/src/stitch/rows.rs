//! Keeps each row of JSON Lines on its own line if a line break was lost or added at the seam.

use endmark_text::Format;
use endmark_text::detect::Detector;

use super::joint::Joint;
use super::survivor::Survivor;

/// Number of lines before the seam that are examined.
const MAX_EXAMINED_LINES: usize = 20;

/// Adds a lost line break between two rows at a seam, or removes one within a row. The values stay the same,
/// but line-based readers need correct lines.
pub(super) fn fix_row_breaks(joint: &Joint<'_>, survivors: &mut [Survivor]) {
    if joint.format != Format::Jsonl || joint.in_text {
        return;
    }
    for survivor in survivors {
        let candidate = &mut survivor.candidate;
        let kept = &joint.initial[..candidate.keep];
        let rest = &joint.continuation[candidate.start..candidate.end];
        if candidate.glue.is_empty() {
            let fit = row_break_fix(&joint.state_at(candidate.keep), kept, rest, rest);
            candidate.glue = fit.glue;
            candidate.start += fit.removed_bytes;
        }
    }
}

/// The line breaks to add and remove at a seam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowBreakFix {
    pub(super) glue: &'static str,
    /// Number of bytes of line breaks to remove at the beginning of the rest, because they are within a row.
    pub(super) removed_bytes: usize,
}

/// Returns the corrections at the seam between the text `kept` and its `rest`. The detector is in `state`
/// after `kept`. `seen` is the part of the rest that shows whether each row has its own line.
pub(super) fn row_break_fix(state: &Detector, kept: &str, rest: &str, seen: &str) -> RowBreakFix {
    let apart = RowBreakFix { glue: "", removed_bytes: 0 };
    if kept.ends_with('\n') {
        return apart;
    }
    if state.is_whole() {
        let begins_row = rest.trim_start_matches([' ', '\t']).starts_with(['{', '[', '"']);
        return if begins_row && ends_with_row(kept) { RowBreakFix { glue: "\n", ..apart } } else { apart };
    }
    let breaks = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
    // Without the line break, a number or literal would continue across the seam.
    let may_go_on =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '+' | '.');
    let continues =
        kept.ends_with(may_go_on) && rest.get(breaks..).is_some_and(|rest| rest.starts_with(may_go_on));
    if has_one_row_per_line(kept, seen) && !continues {
        RowBreakFix { removed_bytes: breaks, ..apart }
    } else {
        apart
    }
}

/// Whether the last line is a complete value and nothing else.
fn ends_with_row(kept: &str) -> bool {
    let line = kept.rsplit('\n').next().unwrap_or_default().trim();
    let mut detector = Detector::for_strict_json();
    detector.push(line.as_bytes());
    line.ends_with(['}', ']', '"']) && detector.is_whole()
}

/// Whether each row has its own line: some row ends at a line end, and no line ends within a value.
fn has_one_row_per_line(kept: &str, rest: &str) -> bool {
    let ends_inside = |line: &str| line.trim_end().ends_with(['{', '[', ',', ':']);
    let lines = kept.rsplit('\n').skip(1).take(MAX_EXAMINED_LINES);
    let behind = rest.trim_start_matches(['\n', '\r']);
    let has_lines = kept.contains('\n') || behind.contains('\n');
    has_lines
        && !lines.into_iter().any(ends_inside)
        && !behind.lines().take(MAX_EXAMINED_LINES).any(ends_inside)
}

#[cfg(test)]
mod tests {
    use crate::stitch::{AskedFrom, merge_chunks};
    use endmark_text::Format;

    fn join(initial: &str, continuation: &str) -> String {
        merge_chunks(initial, continuation, &Format::Jsonl, AskedFrom::Cut).unwrap().text
    }

    #[test]
    fn a_lost_line_break_between_rows_is_restored() {
        assert_eq!(
            join("{\"a\": 1}\n{\"a\": 2}", "{\"a\": 3}\n{\"a\": 4}\n"),
            "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}\n{\"a\": 4}\n"
        );
        assert_eq!(join("{\"a\": 1}", "{\"a\": 2}"), "{\"a\": 1}\n{\"a\": 2}");
    }

    #[test]
    fn a_line_break_inside_a_row_is_removed() {
        assert_eq!(
            join("{\"a\": 1, \"b\": 2}\n{\"a\": 3,", "\n \"b\": 4}\n{\"a\": 5, \"b\": 6}\n"),
            "{\"a\": 1, \"b\": 2}\n{\"a\": 3, \"b\": 4}\n{\"a\": 5, \"b\": 6}\n"
        );
    }

    #[test]
    fn values_without_their_own_lines_are_unchanged() {
        assert_eq!(join("{\"a\": 1}{\"a\": 2}", "{\"a\": 3}"), "{\"a\": 1}{\"a\": 2}{\"a\": 3}");
        assert_eq!(
            join("{\n \"a\": 1,\n \"b\": 2\n}\n{\n \"a\": 3,", "\n \"b\": 4\n}\n"),
            "{\n \"a\": 1,\n \"b\": 2\n}\n{\n \"a\": 3,\n \"b\": 4\n}\n"
        );
    }
}
