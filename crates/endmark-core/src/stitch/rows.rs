//! Rows of JSON Lines: each has a line of its own, also where the line break was lost at the seam or added there.

use super::joint::Joint;
use super::survivor::Survivor;
use crate::Format;

/// So many lines before the seam are looked at.
const MOST_LINES: usize = 20;

/// Puts a lost line break between two rows that a seam would join in one line, and takes one out of the middle of a
/// row: their values stay the same, but who reads line by line needs the lines.
pub(super) fn set_apart(joint: &Joint<'_>, survivors: &mut [Survivor]) {
    if joint.format != Format::Jsonl || joint.in_text {
        return;
    }
    for survivor in survivors {
        let candidate = &mut survivor.candidate;
        let kept = &joint.initial[..candidate.keep];
        let rest = &joint.continuation[candidate.start..candidate.end];
        if !candidate.glue.is_empty() || kept.ends_with('\n') || !are_lines(kept, rest) {
            continue;
        }
        if joint.state_at(candidate.keep).is_whole() {
            if kept.ends_with(['}', ']', '"']) && rest.starts_with(['{', '[', '"']) {
                candidate.glue = "\n";
            }
        } else {
            let breaks = rest.len() - rest.trim_start_matches(['\n', '\r']).len();
            candidate.start += breaks;
        }
    }
}

/// Whether rows end where lines do: some line has an end, and none ends in the middle of a value.
fn are_lines(kept: &str, rest: &str) -> bool {
    let ends_inside = |line: &str| line.trim_end().ends_with(['{', '[', ',', ':']);
    let lines = kept.rsplit('\n').skip(1).take(MOST_LINES);
    let behind = rest.trim_start_matches(['\n', '\r']);
    let has_lines = kept.contains('\n') || behind.contains('\n');
    has_lines && !lines.into_iter().any(ends_inside) && !behind.lines().take(MOST_LINES).any(ends_inside)
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::stitch::{AskedFrom, merge_chunks};

    fn joined(initial: &str, continuation: &str) -> String {
        merge_chunks(initial, continuation, &Format::Jsonl, AskedFrom::Cut).unwrap().text
    }

    #[test]
    fn a_lost_line_break_between_rows_comes_back() {
        assert_eq!(
            joined("{\"a\": 1}\n{\"a\": 2}", "{\"a\": 3}\n{\"a\": 4}\n"),
            "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}\n{\"a\": 4}\n"
        );
    }

    #[test]
    fn a_line_break_in_a_row_goes() {
        assert_eq!(
            joined("{\"a\": 1, \"b\": 2}\n{\"a\": 3,", "\n \"b\": 4}\n{\"a\": 5, \"b\": 6}\n"),
            "{\"a\": 1, \"b\": 2}\n{\"a\": 3, \"b\": 4}\n{\"a\": 5, \"b\": 6}\n"
        );
    }

    #[test]
    fn values_that_have_no_lines_of_their_own_stay_as_they_are() {
        assert_eq!(joined("{\"a\": 1}{\"a\": 2}", "{\"a\": 3}"), "{\"a\": 1}{\"a\": 2}{\"a\": 3}");
        assert_eq!(
            joined("{\n \"a\": 1,\n \"b\": 2\n}\n{\n \"a\": 3,", "\n \"b\": 4\n}\n"),
            "{\n \"a\": 1,\n \"b\": 2\n}\n{\n \"a\": 3,\n \"b\": 4\n}\n"
        );
    }
}
