//! Selects the rows of a list or table to keep: the first and the last rows, rows with errors, and rows with
//! unusual values.
//!
//! The selection needs one pass and bounded memory, so it also works for an endless table.

mod column;
mod facts;

use std::collections::{BTreeMap, HashMap, VecDeque};

use self::column::ColumnValues;
pub(super) use self::facts::{ColumnFact, RowFacts, has_content};
use super::error_signs::ShapeCounts;
use super::limits::Keep;

/// Percentage of the room and of the number of rows for rows that report errors.
const ERRORS_PERCENT: usize = 40;
/// Percentage for rows with unusual values.
const PROMINENT_PERCENT: usize = 20;
/// Percentage for the last rows.
const LAST_PERCENT: usize = 10;
/// At most this many columns are examined.
const MAX_COLUMNS: usize = 256;

/// A candidate row.
#[derive(Debug, Clone)]
pub(super) struct CandidateRow<R> {
    /// Index of the row, from 0.
    pub(super) at: u64,
    /// Size in the unit of the limit.
    pub(super) size: usize,
    pub(super) value: R,
}

/// Collects candidates while rows are read one by one.
#[derive(Debug)]
pub(super) struct RowSelector<R> {
    capacity: usize,
    room: usize,
    count: u64,
    first: ConsecutiveRows<R>,
    last: ConsecutiveRows<R>,
    errors: BTreeMap<(u32, u64), CandidateRow<R>>,
    errors_size: usize,
    shapes: ShapeCounts,
    /// The columns with the hashes of their names, in the order of their first use.
    columns: Vec<(u64, ColumnValues<R>)>,
    /// Index of each column by its hash.
    column_indexes: HashMap<u64, usize, column::BuildIdentityHasher>,
    /// Remaining room for rows that may turn out to be unusual.
    reserved: usize,
}

/// Consecutive rows with their total size.
#[derive(Debug)]
struct ConsecutiveRows<R> {
    rows: VecDeque<CandidateRow<R>>,
    size: usize,
}

/// Limits for the selection of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct SelectionLimits {
    pub(super) room: usize,
    pub(super) max_rows: usize,
    pub(super) keep: Keep,
    /// Additional size of a row that does not directly follow another kept row.
    pub(super) gap: usize,
}

impl<R: Clone> RowSelector<R> {
    /// Returns a selector for at most `most` rows with a total size of at most `room`.
    pub(super) fn new(most: usize, room: usize) -> Self {
        Self {
            capacity: most,
            room,
            count: 0,
            first: ConsecutiveRows { rows: VecDeque::new(), size: 0 },
            last: ConsecutiveRows { rows: VecDeque::new(), size: 0 },
            errors: BTreeMap::new(),
            errors_size: 0,
            shapes: ShapeCounts::default(),
            columns: Vec::new(),
            column_indexes: HashMap::default(),
            reserved: room.saturating_mul(4),
        }
    }

    /// Returns the number of rows that were read.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Reads the next row.
    pub(super) fn push(&mut self, value: R, size: usize, facts: &RowFacts<'_>) {
        let row = CandidateRow { at: self.count, size, value };
        self.count += 1;
        if self.first.rows.len() < self.capacity && self.first.size + size <= self.room {
            self.first.push(row.clone());
        }
        if let Some(shape) = facts.error {
            self.push_error(shape, &row);
        }
        for (at, fact) in facts.list.iter().enumerate() {
            if let Some(place) = self.column_index(at, fact.column) {
                self.columns[place].1.take(&row, *fact, &mut self.reserved);
            }
        }
        self.last.push(row);
        while self.last.rows.len() > self.capacity || self.last.size > self.room {
            self.last.pop();
        }
    }

    /// Returns the index of the column with this hash. Returns `None` if there are already too many columns.
    fn column_index(&mut self, at: usize, hash: u64) -> Option<usize> {
        // Most rows of a list have the same columns in the same order.
        if self.columns.get(at).is_some_and(|(column, _)| *column == hash) {
            return Some(at);
        }
        if let Some(place) = self.column_indexes.get(&hash) {
            return Some(*place);
        }
        let place = self.columns.len();
        if place == MAX_COLUMNS {
            return None;
        }
        self.columns.push((hash, ColumnValues::new()));
        self.column_indexes.insert(hash, place);
        Some(place)
    }

    fn push_error(&mut self, shape: u64, row: &CandidateRow<R>) {
        let occurrence = self.shapes.count_occurrence(shape);
        if row.size > self.room {
            return;
        }
        self.errors_size += row.size;
        self.errors.insert((occurrence, row.at), row.clone());
        while self.errors_size > self.room || self.errors.len() > self.capacity {
            let Some((_, worst)) = self.errors.pop_last() else { return };
            self.errors_size -= worst.size;
        }
    }

    /// Returns the rows to keep, in their original order.
    pub(super) fn select(&self, choice: SelectionLimits) -> Vec<CandidateRow<R>> {
        let errors = || self.errors.values();
        let prominent = self.prominent_rows();
        let (first, last) = (|| self.first.rows.iter(), || self.last.rows.iter().rev());
        let mut chosen = SelectedRows {
            rows: BTreeMap::new(),
            room: choice.room.saturating_sub(2 * choice.gap),
            rows_left: choice.max_rows,
        };
        let share = |percent: usize| {
            (
                choice.room.saturating_mul(percent) / 100,
                (choice.max_rows.saturating_mul(percent)).div_ceil(100),
            )
        };
        chosen.select_within(errors(), share(ERRORS_PERCENT), choice.gap, true);
        chosen.select_within(prominent.iter(), share(PROMINENT_PERCENT), choice.gap, true);
        let last_percent = match choice.keep {
            Keep::Both => LAST_PERCENT,
            Keep::Head => 0,
            Keep::Tail => 100,
        };
        let (room, most) = share(last_percent);
        // If very few rows fit, the first row is more useful than the last.
        chosen.select_within(
            last(),
            (room, if choice.max_rows > 2 || last_percent > LAST_PERCENT { most } else { 0 }),
            0,
            false,
        );
        let all = (usize::MAX, usize::MAX);
        chosen.select_within(first(), all, choice.gap, false);
        chosen.select_within(errors(), all, choice.gap, true);
        chosen.select_within(prominent.iter(), all, choice.gap, true);
        chosen.select_within(last(), all, choice.gap, false);
        chosen.rows.into_values().collect()
    }

    /// Returns the rows with rare values or outliers, the rarest first.
    fn prominent_rows(&self) -> Vec<CandidateRow<R>> {
        let mut rare = BTreeMap::new();
        for (_, column) in &self.columns {
            column.each_prominent_row(self.count, |rarity, row| {
                let least = rare.entry(row.at).or_insert((rarity, row.clone()));
                least.0 = least.0.min(rarity);
            });
        }
        let mut rows: Vec<(u64, CandidateRow<R>)> = rare.into_values().collect();
        rows.sort_by_key(|(rarity, row)| (*rarity, row.at));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl<R> ConsecutiveRows<R> {
    fn push(&mut self, row: CandidateRow<R>) {
        self.size += row.size;
        self.rows.push_back(row);
    }

    fn pop(&mut self) {
        if let Some(row) = self.rows.pop_front() {
            self.size -= row.size;
        }
    }
}

/// The rows that are selected so far.
struct SelectedRows<R> {
    rows: BTreeMap<u64, CandidateRow<R>>,
    room: usize,
    rows_left: usize,
}

impl<R: Clone> SelectedRows<R> {
    /// Selects rows within their share of the room. `has_more` states whether smaller rows may follow one
    /// that does not fit.
    fn select_within<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a CandidateRow<R>>,
        share: (usize, usize),
        gap: usize,
        has_more: bool,
    ) where
        R: 'a,
    {
        let (mut room, mut most) = (share.0.min(self.room), share.1.min(self.rows_left));
        for row in rows {
            if self.rows.contains_key(&row.at) {
                continue;
            }
            let follows =
                row.at == 0 || self.rows.contains_key(&(row.at - 1)) || self.rows.contains_key(&(row.at + 1));
            let cost = row.size + if follows { 0 } else { gap };
            if most == 0 || cost > room && !has_more {
                return;
            }
            if cost <= room {
                (room, most) = (room - cost, most - 1);
                (self.room, self.rows_left) = (self.room - cost, self.rows_left - 1);
                self.rows.insert(row.at, row.clone());
            }
        }
    }
}
