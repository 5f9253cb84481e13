//! Computes statistics of indentation, to judge seams within or before an indentation.

use std::collections::HashMap;

/// The most lines of each side that are read.
const MAX_LINES: usize = 600;
/// The most that an indentation can count against a seam, in bits.
const MAX_BITS: f64 = 14.0;

/// The indentation at which a line begins, and how the line before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LineIndent {
    /// The line before opens something.
    follows_opening: bool,
    /// This line closes something.
    closing: bool,
}

/// How often lines change their indentation, and by how much.
#[derive(Debug, Default)]
pub(super) struct Indents {
    changes: HashMap<(LineIndent, i64), u32>,
    lines: HashMap<LineIndent, u32>,
}

impl Indents {
    /// Reads the lines on both sides that the seam does not touch.
    pub(super) fn from_sides(before: &str, after: &str) -> Self {
        let mut indents = Self::default();
        let end = before.rfind('\n').map_or(0, |at| at + 1);
        let tail: Vec<&str> = before[..end].lines().rev().take(MAX_LINES).collect();
        indents.read(tail.into_iter().rev());
        let start = after.find('\n').map_or(after.len(), |at| at + 1);
        indents.read(after[start..].lines().take(MAX_LINES));
        indents
    }

    fn read<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        let mut last: Option<&str> = None;
        for line in lines.filter(|line| !line.trim().is_empty()) {
            if let Some(before) = last {
                let place = place(before, line.trim_start());
                *self.changes.entry((place, width(line) - width(before))).or_default() += 1;
                *self.lines.entry(place).or_default() += 1;
            }
            last = Some(line);
        }
    }

    /// Returns how unlikely it is, in bits, that a line with this indentation and text follows the line before it.
    pub(super) fn bits(&self, before: &str, indent: &str, text: &str) -> f64 {
        let place = place(before, text);
        let change = width(indent) - width(before);
        let seen = f64::from(self.changes.get(&(place, change)).copied().unwrap_or(0));
        let lines = f64::from(self.lines.get(&place).copied().unwrap_or(0));
        // Among unseen changes, the likeliest are no change and one step in or out.
        let unseen = match (change, place.follows_opening) {
            (0, false) => 0.5,
            (0 | 1 | 2 | 4, true) | (-4 | -2 | -1, false) => 0.1,
            _ if change % 2 != 0 => 0.003,
            _ => 0.01,
        };
        (-((seen + unseen) / (lines + 1.0)).log2()).min(MAX_BITS)
    }
}

fn place(before: &str, text: &str) -> LineIndent {
    let before = before.trim_end();
    let opens = before.ends_with(['{', '(', '[', ':', ','])
        || before.ends_with('>') && before.trim_start().starts_with('<') && !before.contains("</");
    LineIndent {
        follows_opening: opens,
        closing: text.starts_with(['}', ')', ']']) || text.starts_with("</"),
    }
}

/// Returns the width of a line's indentation. A tab counts as four columns.
fn width(line: &str) -> i64 {
    line.chars()
        .map_while(|sign| match sign {
            ' ' => Some(1),
            '\t' => Some(4),
            _ => None,
        })
        .sum()
}
