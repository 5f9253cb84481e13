//! Recognises lines that are table rows.

use serde::{Deserialize, Serialize};

use crate::detect::MAX_POSITION;

/// The position in a cell of a delimiter row, such as `:---:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum DelimiterCell {
    Blank,
    Colon,
    Dashes,
    Ended,
    /// The cell does not belong to a delimiter row.
    Other,
}

/// The unescaped bars of a line, which may make it a table row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TableRow {
    bars: usize,
    /// Whether the line begins with a bar, ignoring whitespace. `None` before its first non-whitespace
    /// character.
    begins: Option<bool>,
    /// Whether the last non-whitespace character is a bar.
    ends: bool,
    escape: bool,
    cell: DelimiterCell,
}

impl Default for TableRow {
    fn default() -> Self {
        Self { bars: 0, begins: None, ends: false, escape: false, cell: DelimiterCell::Blank }
    }
}

impl TableRow {
    /// Whether this state satisfies the assumptions of later code. Used to check restored states.
    pub(super) fn is_consistent(self) -> bool {
        self.bars <= MAX_POSITION
    }

    /// Processes a byte of the line.
    pub(super) fn step(&mut self, byte: u8) {
        if matches!(byte, b' ' | b'\t') {
            self.escape = false;
            if matches!(self.cell, DelimiterCell::Dashes) {
                self.cell = DelimiterCell::Ended;
            }
            return;
        }
        let is_bar = byte == b'|' && !self.escape;
        self.escape = byte == b'\\' && !self.escape;
        self.begins.get_or_insert(is_bar);
        self.ends = is_bar;
        self.cell = match (self.cell, byte) {
            (DelimiterCell::Dashes | DelimiterCell::Ended, b'|') => DelimiterCell::Blank,
            (DelimiterCell::Blank, b'|') if self.bars == 0 => DelimiterCell::Blank,
            (DelimiterCell::Blank, b':') => DelimiterCell::Colon,
            (DelimiterCell::Blank | DelimiterCell::Colon | DelimiterCell::Dashes, b'-') => {
                DelimiterCell::Dashes
            }
            (DelimiterCell::Dashes, b':') => DelimiterCell::Ended,
            _ => DelimiterCell::Other,
        };
        self.bars += usize::from(is_bar);
    }

    /// Returns the number of cells.
    fn cell_count(&self) -> usize {
        (self.bars + 1)
            .saturating_sub(usize::from(self.begins_with_bar()) + usize::from(self.ends_with_bar()))
    }

    /// Whether the line is a delimiter row for the table head `head`.
    pub(super) fn is_delimiter_for(&self, head: &Self) -> bool {
        let complete = matches!(self.cell, DelimiterCell::Dashes | DelimiterCell::Ended)
            || self.ends && self.cell == DelimiterCell::Blank;
        complete && self.bars > 0 && self.cell_count() == head.cell_count()
    }

    /// Whether it begins with a bar.
    pub(super) fn begins_with_bar(&self) -> bool {
        self.begins == Some(true)
    }

    /// Whether the line ends with a bar other than its first one.
    pub(super) fn ends_with_bar(&self) -> bool {
        self.ends && self.bars > usize::from(self.begins_with_bar())
    }

    /// Whether the line contains a bar.
    pub(super) fn has_bars(&self) -> bool {
        self.bars > 0
    }
}

/// What all rows of a table have in common so far.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TableShape {
    begins: bool,
    ends: bool,
    /// Number of cells in each row, or `None` if the rows differ.
    cells: Option<usize>,
}

impl TableShape {
    pub(super) fn new(head: &TableRow, delimiter: &TableRow) -> Self {
        let mut table = Self {
            begins: head.begins_with_bar(),
            ends: head.ends_with_bar(),
            cells: Some(head.cell_count()),
        };
        table.add(delimiter);
        table
    }

    /// Records a complete row.
    pub(super) fn add(&mut self, row: &TableRow) {
        self.begins &= row.begins_with_bar();
        self.ends &= row.ends_with_bar();
        self.cells = self.cells.filter(|cells| *cells == row.cell_count());
    }

    /// Whether a row at the end of the text is certainly incomplete, because all earlier rows end with a bar
    /// or have more cells.
    pub(super) fn is_missing_row_end(self, row: &TableRow) -> bool {
        let is_row = if self.begins { row.begins_with_bar() } else { row.has_bars() };
        let is_short = self.cells.is_some_and(|cells| row.cell_count() < cells);
        self.ends && is_row && (is_short || !row.ends_with_bar())
    }
}
