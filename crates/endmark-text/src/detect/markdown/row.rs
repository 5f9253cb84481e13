//! Lines that are rows of a table.

use serde::{Deserialize, Serialize};

use crate::detect::MAX_POSITION;

/// The progress of a cell of a delimiter row: `:---:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Cell {
    Blank,
    Colon,
    Dashes,
    Ended,
    /// Not a delimiter cell.
    Other,
}

/// The unescaped bars of a line, which make it a row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Row {
    bars: usize,
    /// Whether it begins with a bar, ignoring whitespace. `None` before its first sign.
    begins: Option<bool>,
    /// Whether its last sign is a bar.
    ends: bool,
    escape: bool,
    cell: Cell,
}

impl Default for Row {
    fn default() -> Self {
        Self { bars: 0, begins: None, ends: false, escape: false, cell: Cell::Blank }
    }
}

impl Row {
    /// Whether this state is reachable, as far as later code relies on it.
    pub(super) fn is_consistent(self) -> bool {
        self.bars <= MAX_POSITION
    }

    /// Processes a byte of the line.
    pub(super) fn step(&mut self, byte: u8) {
        if matches!(byte, b' ' | b'\t') {
            self.escape = false;
            if matches!(self.cell, Cell::Dashes) {
                self.cell = Cell::Ended;
            }
            return;
        }
        let is_bar = byte == b'|' && !self.escape;
        self.escape = byte == b'\\' && !self.escape;
        self.begins.get_or_insert(is_bar);
        self.ends = is_bar;
        self.cell = match (self.cell, byte) {
            (Cell::Dashes | Cell::Ended, b'|') => Cell::Blank,
            (Cell::Blank, b'|') if self.bars == 0 => Cell::Blank,
            (Cell::Blank, b':') => Cell::Colon,
            (Cell::Blank | Cell::Colon | Cell::Dashes, b'-') => Cell::Dashes,
            (Cell::Dashes, b':') => Cell::Ended,
            _ => Cell::Other,
        };
        self.bars += usize::from(is_bar);
    }

    /// Returns the number of cells.
    fn cells(&self) -> usize {
        (self.bars + 1).saturating_sub(usize::from(self.begins()) + usize::from(self.ends()))
    }

    /// Whether it is a delimiter row that fits `head`.
    pub(super) fn delimits(&self, head: &Self) -> bool {
        let complete =
            matches!(self.cell, Cell::Dashes | Cell::Ended) || self.ends && self.cell == Cell::Blank;
        complete && self.bars > 0 && self.cells() == head.cells()
    }

    /// Whether it begins with a bar.
    pub(super) fn begins(&self) -> bool {
        self.begins == Some(true)
    }

    /// Whether it ends with a bar other than its first one.
    pub(super) fn ends(&self) -> bool {
        self.ends && self.bars > usize::from(self.begins())
    }

    /// Whether it has a bar at all.
    pub(super) fn has_bars(&self) -> bool {
        self.bars > 0
    }
}

/// The common form of all rows of a table so far.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Table {
    begins: bool,
    ends: bool,
    /// Number of cells of the table's head, while all rows have the same number.
    cells: Option<usize>,
}

impl Table {
    pub(super) fn new(head: &Row, delimiter: &Row) -> Self {
        let mut table = Self { begins: head.begins(), ends: head.ends(), cells: Some(head.cells()) };
        table.add(delimiter);
        table
    }

    /// Records a complete row.
    pub(super) fn add(&mut self, row: &Row) {
        self.begins &= row.begins();
        self.ends &= row.ends();
        self.cells = self.cells.filter(|cells| *cells == row.cells());
    }

    /// Whether a row at the end of the text is certainly incomplete, because every other row has more.
    pub(super) fn is_missing_row_end(self, row: &Row) -> bool {
        let is_row = if self.begins { row.begins() } else { row.has_bars() };
        let is_short = self.cells.is_some_and(|cells| row.cells() < cells);
        self.ends && is_row && (is_short || !row.ends())
    }
}
