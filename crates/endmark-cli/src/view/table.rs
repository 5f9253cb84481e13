//! Tables for people: rows under headings, fitted to the width of the terminal.

use endmark_failure::to_single_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::view::paint::{Paint, Painter};

/// Maximum cell width in terminal columns, because a long cell such as a model name would displace all others.
const MAX_CELL_COLUMNS: usize = 64;
/// Minimum width of a shortened column, however narrow the terminal is.
const MIN_COLUMN_WIDTH: usize = 7;
const COLUMN_GAP: &str = "  ";

/// How tables are drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) painter: Painter,
    /// Width of the terminal in columns, or `None` if the output is not a terminal.
    pub(crate) width: Option<usize>,
}

/// A column: its heading, the alignment of its cells, and whether they may be shortened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    heading: &'a str,
    is_number: bool,
    is_fixed: bool,
}

/// The text of a cell and the meaning of its colour.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    paint: Option<Paint>,
}

impl<'a> Column<'a> {
    /// A text column, which is shortened if there is not enough room.
    pub(crate) const fn text(heading: &'a str) -> Self {
        Self { heading, is_number: false, is_fixed: false }
    }

    /// A text column that is never shortened.
    pub(crate) const fn fixed(heading: &'a str) -> Self {
        Self { heading, is_number: false, is_fixed: true }
    }

    /// A right-aligned column of numbers.
    pub(crate) const fn number(heading: &'a str) -> Self {
        Self { heading, is_number: true, is_fixed: true }
    }
}

impl Cell {
    pub(crate) fn painted(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: text.into(), paint: Some(paint) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), paint: None }
    }
}

impl Layout {
    /// Returns the lines of a table, headings first.
    ///
    /// If the terminal is too narrow, the widest columns are shortened first, and `…` marks the omitted text.
    pub(crate) fn lines<const COLUMNS: usize>(
        self,
        columns: [Column<'_>; COLUMNS],
        rows: impl IntoIterator<Item = [Cell; COLUMNS]>,
    ) -> Vec<String> {
        let headings = columns.map(|column| Cell::painted(column.heading, Paint::Strong));
        let rows: Vec<[Cell; COLUMNS]> = std::iter::once(headings)
            .chain(rows)
            .map(|row| {
                row.map(|cell| Cell { text: shorten(&to_single_line(&cell.text), MAX_CELL_COLUMNS), ..cell })
            })
            .collect();
        let widest = |column: usize| rows.iter().map(|row| row[column].text.width()).max().unwrap_or(0);
        let mut widths: [usize; COLUMNS] = std::array::from_fn(widest);
        if let Some(width) = self.width {
            fit(&mut widths, &columns, width);
        }
        rows.iter().map(|row| self.line(&columns, &widths, row)).collect()
    }

    fn line(self, columns: &[Column<'_>], widths: &[usize], row: &[Cell]) -> String {
        let mut line = String::new();
        let mut used = 0;
        for (number, (cell, (column, width))) in row.iter().zip(columns.iter().zip(widths)).enumerate() {
            let gap = if number == 0 { "" } else { COLUMN_GAP };
            // If even the shortened columns do not fit, only the first ones are shown.
            let room = self.width.map_or(*width, |all| (*width).min(all.saturating_sub(used + gap.len())));
            if room == 0 {
                break;
            }
            let text = shorten(&cell.text, room);
            let blank = " ".repeat(room - text.width());
            let filled = if column.is_number { blank + &text } else { text + &blank };
            // The last cell needs no padding.
            let filled = if number + 1 == row.len() { filled.trim_end() } else { &filled };
            line.push_str(gap);
            line.push_str(
                &cell.paint.map_or_else(|| filled.to_owned(), |paint| self.painter.paint(paint, filled)),
            );
            used += gap.len() + room;
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Narrows the widest column that may be shortened, until the table fits or no column can become narrower.
fn fit(widths: &mut [usize], columns: &[Column<'_>], width: usize) {
    let gaps = COLUMN_GAP.len() * widths.len().saturating_sub(1);
    let mut surplus = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
    while surplus > 0 {
        let can_give =
            |(number, width): &(usize, &mut usize)| !columns[*number].is_fixed && **width > MIN_COLUMN_WIDTH;
        let widest = widths.iter_mut().enumerate().filter(can_give).max_by_key(|(_, width)| **width);
        let Some((_, widest)) = widest else { return };
        *widest -= 1;
        surplus -= 1;
    }
}

/// Shortens the text to at most `width` columns, and marks the omitted end with `…`.
fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(character);
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: [Column<'static>; 4] =
        [Column::fixed("ID"), Column::text("MODEL"), Column::number("CALLS"), Column::text("REQUEST")];

    fn draw(width: Option<usize>, rows: &[[&str; 4]]) -> Vec<String> {
        let layout = Layout { painter: Painter::OFF, width };
        layout.lines(COLUMNS, rows.iter().map(|row| row.map(Cell::from)))
    }

    #[test]
    fn columns_align_and_the_widest_is_shortened_first() {
        let rows = [["1", "gpt-4o-mini-2024-07-18", "3", "request-1"], ["12", "模型", "140", "r"]];
        assert_eq!(
            draw(None, &rows),
            [
                "ID  MODEL                   CALLS  REQUEST",
                "1   gpt-4o-mini-2024-07-18      3  request-1",
                "12  模型                      140  r",
            ]
        );
        assert_eq!(
            draw(Some(36), &rows),
            [
                "ID  MODEL           CALLS  REQUEST",
                "1   gpt-4o-mini-2…      3  request-1",
                "12  模型              140  r",
            ]
        );
    }

    #[test]
    fn a_long_name_hides_no_other_column() {
        let name = "m".repeat(20_000);
        let lines = draw(None, &[["1", &name, "3", "r"]]);
        assert!(lines.iter().all(|line| line.width() < 90), "{lines:?}");
        assert!(lines[1].contains("m…      3  r"), "{}", lines[1]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            width in 1_usize..140,
            rows in proptest::collection::vec(["\\PC{0,40}", "\\PC{0,90}", "[0-9]{1,9}", "\\PC{0,90}"], 0..6),
        ) {
            let rows: Vec<[&str; 4]> =
                rows.iter().map(|row| [&row[0], &row[1], &row[2], &row[3]].map(String::as_str)).collect();
            for line in draw(Some(width), &rows) {
                prop_assert!(line.width() <= width, "{line:?} in {width}");
            }
        }
    }
}
