//! Computes statistics of the indentation of lines, to judge seams in or before an indentation.

use std::collections::HashMap;

/// Maximum number of lines that are read on each side.
const MAX_READ_LINES: usize = 600;
/// Maximum cost of an indentation, in bits.
const MAX_INDENT_BITS: f64 = 14.0;

/// The situation of a line: how the line before it ends, and how the line itself begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LineIndent {
    /// Whether the line before it opens something, such as a bracket.
    follows_opening: bool,
    /// Whether it closes something.
    closes_something: bool,
}

/// How often the indentation of lines changes, and by how much.
#[derive(Debug, Default)]
pub(super) struct IndentStatistics {
    changes: HashMap<(LineIndent, i64), u32>,
    lines: HashMap<LineIndent, u32>,
}

impl IndentStatistics {
    /// Reads the complete lines on both sides of the seam.
    pub(super) fn from_sides(before: &str, after: &str) -> Self {
        let mut indents = Self::default();
        let end = before.rfind('\n').map_or(0, |at| at + 1);
        let tail: Vec<&str> = before[..end].lines().rev().take(MAX_READ_LINES).collect();
        indents.read(tail.into_iter().rev());
        let start = after.find('\n').map_or(after.len(), |at| at + 1);
        indents.read(after[start..].lines().take(MAX_READ_LINES));
        indents
    }

    fn read<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        let mut last: Option<&str> = None;
        for line in lines.filter(|line| !line.trim().is_empty()) {
            if let Some(before) = last {
                let place = line_indent(before, line.trim_start());
                *self.changes.entry((place, indent_width(line) - indent_width(before))).or_default() += 1;
                *self.lines.entry(place).or_default() += 1;
            }
            last = Some(line);
        }
    }

    /// Returns how unlikely it is, in bits, that a line with this indentation and text follows the line
    /// `before`.
    pub(super) fn bits(&self, before: &str, indent: &str, text: &str) -> f64 {
        let place = line_indent(before, text);
        let change = indent_width(indent) - indent_width(before);
        let seen = f64::from(self.changes.get(&(place, change)).copied().unwrap_or(0));
        let lines = f64::from(self.lines.get(&place).copied().unwrap_or(0));
        // Among changes that the text does not contain, no change or one step in or out is the likeliest.
        let unseen = match (change, place.follows_opening) {
            (0, false) => 0.5,
            (0 | 1 | 2 | 4, true) | (-4 | -2 | -1, false) => 0.1,
            _ if change % 2 != 0 => 0.003,
            _ => 0.01,
        };
        (-((seen + unseen) / (lines + 1.0)).log2()).min(MAX_INDENT_BITS)
    }
}

fn line_indent(before: &str, text: &str) -> LineIndent {
    let before = before.trim_end();
    let opens = before.ends_with(['{', '(', '[', ':', ','])
        || before.ends_with('>') && before.trim_start().starts_with('<') && !before.contains("</");
    LineIndent {
        follows_opening: opens,
        closes_something: text.starts_with(['}', ')', ']']) || text.starts_with("</"),
    }
}

/// Returns the width of an indentation. A tab counts as four columns.
fn indent_width(line: &str) -> i64 {
    line.chars()
        .map_while(|sign| match sign {
            ' ' => Some(1),
            '\t' => Some(4),
            _ => None,
        })
        .sum()
}
