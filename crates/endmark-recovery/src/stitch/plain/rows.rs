//! Rows of tables and items of lists: what a seam would do to them.

use endmark_text::Format;

use crate::stitch::candidate::Candidate;
use crate::stitch::joint::Joint;

/// What speaks against a row that ends before its last cell, or has more or fewer cells than the one above, in bits.
const BROKEN_ROW: f64 = 10.0;
const OTHER_CELLS: f64 = 6.0;
/// What speaks against a line of something else between two rows or items, and against a blank one where there was none.
const INTERRUPTED: f64 = 8.0;
const BLANK_BETWEEN: f64 = 6.0;

/// What a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Row,
    Item(char),
    NumberedItem,
}

/// What the rows and items around a seam speak against a story, in bits.
pub(super) fn rows(joint: &Joint<'_>, story: &Candidate) -> f64 {
    if joint.format != Format::Markdown || joint.fence_is_open || !matches!(story.glue, "" | " ") {
        return 0.0;
    }
    let part = story.added(joint);
    let line = joint.initial.rsplit('\n').next().unwrap_or_default();
    if line.trim().is_empty() {
        between_lines(joint.initial, part)
    } else {
        in_row(joint.initial, line, part)
    }
}

/// What speaks against a seam in a row of a table.
fn in_row(initial: &str, line: &str, part: &str) -> f64 {
    let Some((rest, below)) = part.split_once('\n') else { return 0.0 };
    let above = initial[..initial.len() - line.len()].lines().next_back().unwrap_or_default();
    let is_row = |line: &str| kind(line) == Some(Kind::Row) && line.trim_end().ends_with('|');
    if kind(line) != Some(Kind::Row) || !is_row(above) {
        return 0.0;
    }
    let row = [line, rest].concat();
    if !is_row(&row) {
        // What stands below has the rest of its cells.
        let below = below.trim_start().lines().next().unwrap_or_default();
        return if below.trim_end().ends_with('|') { BROKEN_ROW } else { 0.0 };
    }
    let cells = |row: &str| row.matches('|').count() - row.matches("\\|").count();
    if cells(&row) == cells(above) { 0.0 } else { OTHER_CELLS }
}

/// What speaks against a seam at the beginning of a line.
fn between_lines(initial: &str, part: &str) -> f64 {
    let Some(above) = initial.lines().next_back().filter(|_| initial.ends_with('\n')) else { return 0.0 };
    let Some(own) = kind(above) else { return 0.0 };
    let first = part.lines().next().unwrap_or_default();
    let mut below = part.lines().skip(1).skip_while(|line| line.trim().is_empty());
    if below.next().and_then(kind) != Some(own) {
        return 0.0;
    }
    if !first.trim().is_empty() {
        let is_other = kind(first).is_none() && !first.starts_with(char::is_whitespace);
        return if is_other { INTERRUPTED } else { 0.0 };
    }
    let before = initial.lines().rev().nth(1).and_then(kind);
    let is_tight = own == Kind::Row || before == Some(own) || below.next().and_then(kind) == Some(own);
    if is_tight { BLANK_BETWEEN } else { 0.0 }
}

fn kind(line: &str) -> Option<Kind> {
    let text = line.trim_start();
    let sign = text.chars().next()?;
    let behind = text[sign.len_utf8()..].starts_with(' ');
    match sign {
        '|' => Some(Kind::Row),
        '-' | '*' | '+' if behind => Some(Kind::Item(sign)),
        '0'..='9' => {
            let number = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
            (number.starts_with(". ") || number.starts_with(") ")).then_some(Kind::NumberedItem)
        }
        _ => None,
    }
}
