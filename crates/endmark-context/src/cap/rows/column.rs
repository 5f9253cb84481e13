//! A column of a table: finds its rare values and its numeric outliers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Fact, Row};
use crate::cap::error_signs;

/// A column with more distinct values than this has no rare values.
const MAX_COUNTED_VALUES: usize = 32;
/// How many rows are remembered for each value.
const ROWS_OF_VALUE: usize = 4;
/// A value is rare if only one row has it, or at most one row in this many.
const RARE_VALUE_DIVISOR: u64 = 100;
/// Rare values count only if all of them together occur in at most one row in this many.
const ALL_RARE_DIVISOR: u64 = 20;
/// A table with fewer rows has no prominent rows.
const MIN_ROWS: u64 = 20;
/// A number is an outlier if it is more than this many standard deviations from the mean.
const OUTLIER_DEVIATIONS: f64 = 5.0;
/// How many of the highest and of the lowest numbers are remembered.
const EXTREMES_PER_SIDE: usize = 2;

/// Hasher for keys that are already hashes.
pub(super) type BuildIdentityHasher = BuildHasherDefault<IdentityHasher>;

/// Uses a hash as its own hash.
#[derive(Debug, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = error_signs::hash(self.0, bytes);
    }

    fn write_u64(&mut self, number: u64) {
        // The hash map uses the upper bits as well as the lower ones.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// Rows with the same value.
#[derive(Debug)]
struct ValueGroup<R> {
    count: u64,
    rows: Vec<Row<R>>,
}

impl<R> Default for ValueGroup<R> {
    fn default() -> Self {
        Self { count: 0, rows: Vec::new() }
    }
}

impl<R: Clone> ValueGroup<R> {
    fn take(&mut self, row: &Row<R>, spare: &mut usize) {
        self.count += 1;
        if self.rows.len() < ROWS_OF_VALUE && row.size <= *spare {
            *spare -= row.size;
            self.rows.push(row.clone());
        }
    }
}

/// One column.
#[derive(Debug)]
pub(super) struct Column<R> {
    all_values: ValueGroup<R>,
    kinds: [ValueGroup<R>; 6],
    /// `None` if there are too many distinct values.
    values: Option<HashMap<u64, ValueGroup<R>, BuildIdentityHasher>>,
    numbers: Spread<R>,
}

/// Mean and spread of the numbers, and the most extreme rows.
#[derive(Debug)]
struct Spread<R> {
    count: f64,
    mean: f64,
    squares: f64,
    highest: Vec<(f64, Row<R>)>,
    lowest: Vec<(f64, Row<R>)>,
}

impl<R: Clone> Column<R> {
    pub(super) fn new() -> Self {
        Self {
            all_values: ValueGroup::default(),
            kinds: Default::default(),
            values: Some(HashMap::default()),
            numbers: Spread { count: 0.0, mean: 0.0, squares: 0.0, highest: Vec::new(), lowest: Vec::new() },
        }
    }

    pub(super) fn take(&mut self, row: &Row<R>, fact: Fact<'_>, spare: &mut usize) {
        self.all_values.take(row, spare);
        self.kinds[fact.kind as usize].take(row, spare);
        if let Some(values) = &mut self.values {
            values.entry(fact.collect_value()).or_default().take(row, spare);
            if values.len() > MAX_COUNTED_VALUES {
                self.values = None;
            }
        }
        if let Some(number) = fact.number() {
            self.numbers.take(number, row);
        }
    }

    /// Calls `name` for each prominent row of a table with `rows` rows, and passes the number of rows with its value.
    pub(super) fn each_prominent<'a>(&'a self, rows: u64, mut name: impl FnMut(u64, &'a Row<R>)) {
        if rows < MIN_ROWS {
            return;
        }
        if self.all_values.count * RARE_VALUE_DIVISOR <= rows {
            self.all_values.rows.iter().for_each(|row| name(self.all_values.count, row));
        }
        each_rare(self.kinds.iter(), self.all_values.count, &mut name);
        each_rare(self.values.iter().flat_map(HashMap::values), self.all_values.count, &mut name);
        self.numbers.outliers().for_each(|row| name(1, row));
    }
}

/// Calls `name` for the rows with rare values, if they are few in total.
fn each_rare<'a, R: 'a>(
    all: impl Iterator<Item = &'a ValueGroup<R>> + Clone,
    of: u64,
    name: &mut impl FnMut(u64, &'a Row<R>),
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

impl<R: Clone> Spread<R> {
    /// Uses Welford's algorithm, which needs one pass and does not store the numbers.
    fn take(&mut self, number: f64, row: &Row<R>) {
        self.count += 1.0;
        let before = number - self.mean;
        self.mean += before / self.count;
        self.squares += before * (number - self.mean);
        keep_extreme(&mut self.highest, number, row, |new, old| new > old);
        keep_extreme(&mut self.lowest, number, row, |new, old| new < old);
    }

    fn outliers(&self) -> impl Iterator<Item = &Row<R>> {
        let deviation = (self.squares / self.count).sqrt();
        let is_far = move |number: f64| (number - self.mean).abs() > OUTLIER_DEVIATIONS * deviation;
        let extremes = self.highest.iter().chain(&self.lowest);
        extremes.filter(move |(number, _)| deviation > 0.0 && is_far(*number)).map(|(_, row)| row)
    }
}

fn keep_extreme<R: Clone>(
    extremes: &mut Vec<(f64, Row<R>)>,
    number: f64,
    row: &Row<R>,
    is_further: impl Fn(f64, f64) -> bool,
) {
    let at = extremes.iter().position(|(old, _)| is_further(number, *old)).unwrap_or(extremes.len());
    if at < EXTREMES_PER_SIDE {
        extremes.truncate(EXTREMES_PER_SIDE - 1);
        extremes.insert(at, (number, row.clone()));
    }
}
