//! Selects the rows of a list or table to keep: the first and last ones, those with errors, and prominent ones.
//!
//! The selection needs one pass and bounded memory, so it works for a list in a document and for an endless table.

mod column;
mod facts;

use std::collections::{BTreeMap, HashMap, VecDeque};

use self::column::Column;
pub(super) use self::facts::{Fact, Facts, has_content};
use super::error_signs::Shapes;
use super::limits::Keep;

/// Share of the room, and of the number of rows, for rows that report errors, in percent.
const ERRORS_PERCENT: usize = 40;
/// The share for prominent rows.
const PROMINENT_PERCENT: usize = 20;
/// The share for the last rows.
const LAST_PERCENT: usize = 10;
/// Most columns that are examined.
const MAX_COLUMNS: usize = 256;

/// A row that may be kept.
#[derive(Debug, Clone)]
pub(super) struct Row<R> {
    /// Index of the row, from 0.
    pub(super) at: u64,
    /// Size in the unit of the limit.
    pub(super) size: usize,
    pub(super) value: R,
}

/// Rows that are read one by one.
#[derive(Debug)]
pub(super) struct Rows<R> {
    capacity: usize,
    room: usize,
    count: u64,
    first: Bounded<R>,
    last: Bounded<R>,
    errors: BTreeMap<(u32, u64), Row<R>>,
    errors_size: usize,
    shapes: Shapes,
    /// The columns with their hashes, in the order in which they arrived.
    columns: Vec<(u64, Column<R>)>,
    /// Index of each column by its hash.
    places: HashMap<u64, usize, column::BuildIdentityHasher>,
    /// Remaining room for rows that may be prominent.
    reserved: usize,
}

/// Consecutive rows.
#[derive(Debug)]
struct Bounded<R> {
    rows: VecDeque<Row<R>>,
    size: usize,
}

/// Limits of a choice of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) room: usize,
    pub(super) most: usize,
    pub(super) keep: Keep,
    /// Additional size of a row that does not follow another kept row.
    pub(super) gap: usize,
}

impl<R: Clone> Rows<R> {
    /// Holds at most `most` rows of at most `room` in total.
    pub(super) fn new(most: usize, room: usize) -> Self {
        Self {
            capacity: most,
            room,
            count: 0,
            first: Bounded { rows: VecDeque::new(), size: 0 },
            last: Bounded { rows: VecDeque::new(), size: 0 },
            errors: BTreeMap::new(),
            errors_size: 0,
            shapes: Shapes::default(),
            columns: Vec::new(),
            places: HashMap::default(),
            reserved: room.saturating_mul(4),
        }
    }

    /// Returns the number of rows so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Examines the next row.
    pub(super) fn take(&mut self, value: R, size: usize, facts: &Facts<'_>) {
        let row = Row { at: self.count, size, value };
        self.count += 1;
        if self.first.rows.len() < self.capacity && self.first.size + size <= self.room {
            self.first.push(row.clone());
        }
        if let Some(shape) = facts.error {
            self.take_error(shape, &row);
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

    /// Returns the index of the column with this hash. Returns `None` if there are too many columns.
    fn column_index(&mut self, at: usize, hash: u64) -> Option<usize> {
        // Most rows of a list have the same columns in the same order.
        if self.columns.get(at).is_some_and(|(column, _)| *column == hash) {
            return Some(at);
        }
        if let Some(place) = self.places.get(&hash) {
            return Some(*place);
        }
        let place = self.columns.len();
        if place == MAX_COLUMNS {
            return None;
        }
        self.columns.push((hash, Column::new()));
        self.places.insert(hash, place);
        Some(place)
    }

    fn take_error(&mut self, shape: u64, row: &Row<R>) {
        let occurrence = self.shapes.occurrence(shape);
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

    /// Returns the rows to keep, in order.
    pub(super) fn choose(&self, choice: Choice) -> Vec<Row<R>> {
        let errors = || self.errors.values();
        let standing_out = self.prominent_rows();
        let (first, last) = (|| self.first.rows.iter(), || self.last.rows.iter().rev());
        let mut chosen = ChosenRows {
            rows: BTreeMap::new(),
            room: choice.room.saturating_sub(2 * choice.gap),
            max_size: choice.most,
        };
        let share = |percent: usize| {
            (choice.room.saturating_mul(percent) / 100, (choice.most.saturating_mul(percent)).div_ceil(100))
        };
        chosen.choose_within(errors(), share(ERRORS_PERCENT), choice.gap, true);
        chosen.choose_within(standing_out.iter(), share(PROMINENT_PERCENT), choice.gap, true);
        let last_percent = match choice.keep {
            Keep::Both => LAST_PERCENT,
            Keep::Head => 0,
            Keep::Tail => 100,
        };
        let (room, most) = share(last_percent);
        // With very few rows, the first is more useful than the last.
        chosen.choose_within(
            last(),
            (room, if choice.most > 2 || last_percent > LAST_PERCENT { most } else { 0 }),
            0,
            false,
        );
        let all = (usize::MAX, usize::MAX);
        chosen.choose_within(first(), all, choice.gap, false);
        chosen.choose_within(errors(), all, choice.gap, true);
        chosen.choose_within(standing_out.iter(), all, choice.gap, true);
        chosen.choose_within(last(), all, choice.gap, false);
        chosen.rows.into_values().collect()
    }

    /// Returns the rows with rare values or outliers, the rarest first.
    fn prominent_rows(&self) -> Vec<Row<R>> {
        let mut rare = BTreeMap::new();
        for (_, column) in &self.columns {
            column.each_prominent(self.count, |rarity, row| {
                let least = rare.entry(row.at).or_insert((rarity, row.clone()));
                least.0 = least.0.min(rarity);
            });
        }
        let mut rows: Vec<(u64, Row<R>)> = rare.into_values().collect();
        rows.sort_by_key(|(rarity, row)| (*rarity, row.at));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl<R> Bounded<R> {
    fn push(&mut self, row: Row<R>) {
        self.size += row.size;
        self.rows.push_back(row);
    }

    fn pop(&mut self) {
        if let Some(row) = self.rows.pop_front() {
            self.size -= row.size;
        }
    }
}

/// The rows chosen so far.
struct ChosenRows<R> {
    rows: BTreeMap<u64, Row<R>>,
    room: usize,
    max_size: usize,
}

impl<R: Clone> ChosenRows<R> {
    /// Selects from these rows within their share. Continues after a row that does not fit only if `goes_on`.
    fn choose_within<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a Row<R>>,
        share: (usize, usize),
        gap: usize,
        has_more: bool,
    ) where
        R: 'a,
    {
        let (mut room, mut most) = (share.0.min(self.room), share.1.min(self.max_size));
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
                (self.room, self.max_size) = (self.room - cost, self.max_size - 1);
                self.rows.insert(row.at, row.clone());
            }
        }
    }
}
