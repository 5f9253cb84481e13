//! Finds rare values and numeric outliers in a column of a table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{CandidateRow, ColumnFact};
use crate::cap::error_signs;

/// If a column has more distinct values than this, no value counts as rare.
const MAX_COUNTED_VALUES: usize = 32;
/// At most this many rows are remembered for each value.
const MAX_ROWS_PER_VALUE: usize = 4;
/// A value is rare if it occurs in only one row, or in at most one of this many rows.
const RARE_VALUE_DIVISOR: u64 = 100;
/// Rare values only count if all of them together occur in at most one of this many rows.
const ALL_RARE_DIVISOR: u64 = 20;
/// No row is prominent in a table with fewer rows than this.
const MIN_ROWS: u64 = 20;
/// A number is an outlier if it is more than this many standard deviations away from the mean.
const OUTLIER_DEVIATIONS: f64 = 5.0;
/// This many of the highest numbers and of the lowest numbers are remembered.
const EXTREMES_PER_SIDE: usize = 2;

/// Builds hashers for keys that are already hashes.
pub(super) type BuildIdentityHasher = BuildHasherDefault<IdentityHasher>;

/// A hasher that returns its input.
#[derive(Debug, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = error_signs::update_hash(self.0, bytes);
    }

    fn write_u64(&mut self, number: u64) {
        // The hash map uses the upper bits as well as the lower bits.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// The rows that have the same value.
#[derive(Debug)]
struct ValueGroup<R> {
    count: u64,
    rows: Vec<CandidateRow<R>>,
}

impl<R> Default for ValueGroup<R> {
    fn default() -> Self {
        Self { count: 0, rows: Vec::new() }
    }
}

impl<R: Clone> ValueGroup<R> {
    fn take(&mut self, row: &CandidateRow<R>, spare: &mut usize) {
        self.count += 1;
        if self.rows.len() < MAX_ROWS_PER_VALUE && row.size <= *spare {
            *spare -= row.size;
            self.rows.push(row.clone());
        }
    }
}

/// The values of one column.
#[derive(Debug)]
pub(super) struct ColumnValues<R> {
    all_values: ValueGroup<R>,
    kinds: [ValueGroup<R>; 6],
    /// The rows by value. `None` if there are too many distinct values.
    values: Option<HashMap<u64, ValueGroup<R>, BuildIdentityHasher>>,
    numbers: NumberSpread<R>,
}

/// Mean and spread of the numbers in a column, and the rows with the most extreme ones.
#[derive(Debug)]
struct NumberSpread<R> {
    count: f64,
    mean: f64,
    squares: f64,
    highest: Vec<(f64, CandidateRow<R>)>,
    lowest: Vec<(f64, CandidateRow<R>)>,
}

impl<R: Clone> ColumnValues<R> {
    pub(super) fn new() -> Self {
        Self {
            all_values: ValueGroup::default(),
            kinds: Default::default(),
            values: Some(HashMap::default()),
            numbers: NumberSpread {
                count: 0.0,
                mean: 0.0,
                squares: 0.0,
                highest: Vec::new(),
                lowest: Vec::new(),
            },
        }
    }

    pub(super) fn take(&mut self, row: &CandidateRow<R>, fact: ColumnFact<'_>, spare: &mut usize) {
        self.all_values.take(row, spare);
        self.kinds[fact.kind as usize].take(row, spare);
        if let Some(values) = &mut self.values {
            values.entry(fact.value_hash()).or_default().take(row, spare);
            if values.len() > MAX_COUNTED_VALUES {
                self.values = None;
            }
        }
        if let Some(number) = fact.number() {
            self.numbers.take(number, row);
        }
    }

    /// Calls `name` with each prominent row of a table with `rows` rows, and with the number of rows that
    /// share its value.
    pub(super) fn each_prominent_row<'a>(
        &'a self,
        rows: u64,
        mut name: impl FnMut(u64, &'a CandidateRow<R>),
    ) {
        if rows < MIN_ROWS {
            return;
        }
        if self.all_values.count * RARE_VALUE_DIVISOR <= rows {
            self.all_values.rows.iter().for_each(|row| name(self.all_values.count, row));
        }
        each_rare_row(self.kinds.iter(), self.all_values.count, &mut name);
        each_rare_row(self.values.iter().flat_map(HashMap::values), self.all_values.count, &mut name);
        self.numbers.outliers().for_each(|row| name(1, row));
    }
}

/// Calls `name` with the rows that have rare values. Does nothing if there are too many of them.
fn each_rare_row<'a, R: 'a>(
    all: impl Iterator<Item = &'a ValueGroup<R>> + Clone,
    of: u64,
    name: &mut impl FnMut(u64, &'a CandidateRow<R>),
) {
    let is_rare =
        |same: &&ValueGroup<R>| same.count > 0 && (same.count == 1 || same.count * RARE_VALUE_DIVISOR <= of);
    let rows: u64 = all.clone().filter(is_rare).map(|same| same.count).sum();
    if of >= MIN_ROWS && rows * ALL_RARE_DIVISOR <= of {
        for same in all.filter(is_rare) {
            same.rows.iter().for_each(|row| name(same.count, row));
        }
    }
}

impl<R: Clone> NumberSpread<R> {
    /// Adds a number with Welford's algorithm, which needs one pass and does not store the numbers.
    fn take(&mut self, number: f64, row: &CandidateRow<R>) {
        self.count += 1.0;
        let before = number - self.mean;
        self.mean += before / self.count;
        self.squares += before * (number - self.mean);
        keep_extreme(&mut self.highest, number, row, |new, old| new > old);
        keep_extreme(&mut self.lowest, number, row, |new, old| new < old);
    }

    fn outliers(&self) -> impl Iterator<Item = &CandidateRow<R>> {
        let deviation = (self.squares / self.count).sqrt();
        let is_far = move |number: f64| (number - self.mean).abs() > OUTLIER_DEVIATIONS * deviation;
        let extremes = self.highest.iter().chain(&self.lowest);
        extremes.filter(move |(number, _)| deviation > 0.0 && is_far(*number)).map(|(_, row)| row)
    }
}

fn keep_extreme<R: Clone>(
    extremes: &mut Vec<(f64, CandidateRow<R>)>,
    number: f64,
    row: &CandidateRow<R>,
    is_further: impl Fn(f64, f64) -> bool,
) {
    let at = extremes.iter().position(|(old, _)| is_further(number, *old)).unwrap_or(extremes.len());
    if at < EXTREMES_PER_SIDE {
        extremes.truncate(EXTREMES_PER_SIDE - 1);
        extremes.insert(at, (number, row.clone()));
    }
}
