//! Reads sums of calls: complete days and hours from the table of sums, and the rest call by call.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Row, ToSql, params};

use crate::calls::UsageRow;
use crate::counted::{CallClass, CallSums, classify};
use crate::engine::integers::from_sql_integer;
use crate::engine::reader::calls::{EXTRA_TABLE_JOINS, SELECT_USAGE, read_usage_row};
use crate::engine::sums::{Dimension, SumKey, SumPeriod, SumsToAdd, UNSUMMED_CALLS};
use crate::engine::{Reader, cuts};
use crate::error::StoreError;

/// The sums of the calls of one class.
#[derive(Debug, Clone, Copy)]
pub struct CountedCalls<'a> {
    /// When the calls began: the day as `YYYY-MM-DD` in UTC, or the full start time.
    pub started_at: &'a str,
    /// The session or the client's key, if the sums are grouped by it.
    pub key: &'a str,
    /// The class of the calls.
    pub class: &'a CallClass,
    /// The sums of the calls.
    pub sums: &'a CallSums,
}

/// A span of time from `since` to before `until`, in the store's timestamp format.
struct TimeSpan<'a> {
    since: &'a str,
    until: &'a str,
}

impl<'a> TimeSpan<'a> {
    /// Returns the days or hours at the ends of the span that are only partly inside it.
    fn partial_periods(&self, grain: SumPeriod) -> Vec<&'a str> {
        let (opens, closes) = suffix_bounds(grain);
        let mut ends = vec![grain.period_of(self.since), grain.period_of(self.until)];
        ends.dedup();
        ends.retain(|end| {
            format!("{end}{opens}").as_str() < self.since || format!("{end}{closes}").as_str() > self.until
        });
        ends
    }
}

/// Returns the suffix of a period's first timestamp, and a suffix that is greater than those of all its
/// timestamps.
fn suffix_bounds(grain: SumPeriod) -> (&'static str, &'static str) {
    match grain {
        SumPeriod::Day => (" 00:00:00", " 24"),
        SumPeriod::Hour => (":00:00", ":60"),
    }
}

impl Reader {
    /// Passes the sums of all calls that began at or after `since` and before `until` (`YYYY-MM-DD HH:MM:SS`,
    /// UTC) to `each`. The sums of one group may be passed in several parts and in any order. `only`
    /// restricts the calls to one session or key.
    pub fn sums(
        &self,
        (by, only): (Dimension, Option<&str>),
        since: &str,
        until: &str,
        mut each: impl FnMut(&CountedCalls<'_>),
    ) -> Result<(), StoreError> {
        let mut read = || -> rusqlite::Result<()> {
            // Read everything in one transaction, because the writer may sum calls in between.
            let moment = self.connection().unchecked_transaction()?;
            let span = TimeSpan { since, until };
            let by_key = (by, only);
            let classes = self.classes()?;
            let days = (SumPeriod::Day.period_of(since), SumPeriod::Day.period_of(until));
            self.whole_periods(SumPeriod::Day, by_key, &span, days, &classes, &mut each)?;
            for day in span.partial_periods(SumPeriod::Day) {
                self.whole_periods(
                    SumPeriod::Hour,
                    by_key,
                    &span,
                    (day, &format!("{day} 24")),
                    &classes,
                    &mut each,
                )?;
            }
            let hours = span.partial_periods(SumPeriod::Hour);
            let mut each_call = |call: &UsageRow| {
                if only.is_some_and(|only| only != by.key(call)) {
                    return;
                }
                let (class, sums) = classify(call);
                each(&CountedCalls {
                    started_at: &call.started_at,
                    key: by.key(call),
                    class: &class,
                    sums: &sums,
                });
            };
            for hour in &hours {
                let (from, to) = (since.max(hour).to_owned(), format!("{hour}:60"));
                let sql = format!(
                    "{SELECT_USAGE} usage {EXTRA_TABLE_JOINS} WHERE started_at >= ?1 AND started_at < ?2"
                );
                self.each_row(&sql, &[&from, &to.as_str().min(until)], &mut each_call)?;
            }
            let sql = format!(
                "{SELECT_USAGE} {UNSUMMED_CALLS} {EXTRA_TABLE_JOINS} WHERE is_summed = 0 AND started_at >= ?1 AND started_at < ?2"
            );
            self.each_row(&sql, &[&since, &until], &mut |call| {
                if !hours.iter().any(|hour| call.started_at.starts_with(hour)) {
                    each_call(call);
                }
            })?;
            moment.finish()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Passes the days or hours between two times that are completely inside the span.
    fn whole_periods(
        &self,
        grain: SumPeriod,
        (by, only): (Dimension, Option<&str>),
        span: &TimeSpan<'_>,
        (first, last): (&str, &str),
        classes: &HashMap<i64, CallClass>,
        each: &mut impl FnMut(&CountedCalls<'_>),
    ) -> rusqlite::Result<()> {
        let sql = format!(
            "SELECT period, key, class, {} FROM usage_sums WHERE grain = ?1 AND dimension = ?2 AND period >= ?3 AND period <= ?4
               AND period || ?5 >= ?6 AND period || ?7 <= ?8 AND (?9 IS NULL OR key = ?9)",
            CallSums::COLUMNS.join(", ")
        );
        let (opens, closes) = suffix_bounds(grain);
        let mut statement = self.connection().prepare_cached(&sql)?;
        let mut rows = statement.query(params![
            grain.prefix_length(),
            by.name(),
            first,
            last,
            opens,
            span.since,
            closes,
            span.until,
            only
        ])?;
        while let Some(row) = rows.next()? {
            // A sum without a class cannot occur. If it does, skip it.
            let Some(class) = classes.get(&row.get(2)?) else { continue };
            let text = |column| row.get_ref(column).and_then(|text| Ok(text.as_str()?));
            each(&CountedCalls { started_at: text(0)?, key: text(1)?, class, sums: &read_counts(row, 3)? });
        }
        Ok(())
    }

    fn each_row(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        each: &mut impl FnMut(&UsageRow),
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection().prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            each(&read_usage_row(row)?);
        }
        Ok(())
    }

    fn classes(&self) -> rusqlite::Result<HashMap<i64, CallClass>> {
        self.connection()
            .prepare_cached(
                "SELECT id, upstream, purpose, model, answered_model, kinds, above_tokens, from_minute FROM usage_classes",
            )?
            .query_map([], |row| {
                let class = CallClass {
                    upstream: row.get(1)?,
                    purpose: row.get(2)?,
                    model: row.get(3)?,
                    answered_model: row.get(4)?,
                    kinds: row.get(5)?,
                    above_tokens: from_sql_integer(row.get(6)?),
                    from_minute: row.get(7)?,
                };
                Ok((row.get(0)?, class))
            })?
            .collect()
    }

    /// Recomputes all sums from the calls. Returns the first day on which the table differs.
    pub fn wrong_sums(&self) -> Result<Option<String>, StoreError> {
        let read = || -> rusqlite::Result<Option<String>> {
            let _moment = self.connection().unchecked_transaction()?;
            let classes = self.classes()?;
            let days: Vec<String> = self
                .connection()
                .prepare(
                    "SELECT DISTINCT substr(started_at, 1, 10) FROM usage
                     UNION SELECT DISTINCT substr(period, 1, 10) FROM usage_sums ORDER BY 1",
                )?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for day in days {
                if self.stored_sums(&day, &classes)? != self.recomputed_sums(&day)?
                    || cuts::are_sums_wrong(self.connection(), &day)?
                {
                    return Ok(Some(day));
                }
            }
            Ok(None)
        };
        read().map_err(|error| self.store_error(&error))
    }

    fn stored_sums(
        &self,
        day: &str,
        classes: &HashMap<i64, CallClass>,
    ) -> rusqlite::Result<BTreeMap<SumKey, CallSums>> {
        let mut written = BTreeMap::new();
        let sql = format!(
            "SELECT period, key, class, {} FROM usage_sums WHERE grain = ?1 AND dimension = ?2 AND period >= ?3 AND period < ?4",
            CallSums::COLUMNS.join(", ")
        );
        let mut statement = self.connection().prepare_cached(&sql)?;
        for (grain, by) in SumPeriod::ALL.into_iter().flat_map(|grain| Dimension::ALL.map(|by| (grain, by))) {
            let mut rows =
                statement.query(params![grain.prefix_length(), by.name(), day, format!("{day} 24")])?;
            while let Some(row) = rows.next()? {
                let Some(class) = classes.get(&row.get(2)?).cloned() else { continue };
                let place =
                    SumKey { grain, dimension: by.name(), period: row.get(0)?, key: row.get(1)?, class };
                written.insert(place, read_counts(row, 3)?);
            }
        }
        Ok(written)
    }

    fn recomputed_sums(&self, day: &str) -> rusqlite::Result<BTreeMap<SumKey, CallSums>> {
        let mut summing = SumsToAdd::default();
        let sql = format!(
            "{SELECT_USAGE} usage {EXTRA_TABLE_JOINS} WHERE started_at >= ?1 AND started_at < ?2 AND is_summed = 1"
        );
        self.each_row(&sql, &[&day, &format!("{day} 24")], &mut |call| summing.add(call))?;
        Ok(summing.keyed_sums().into_iter().collect())
    }
}

fn read_counts(row: &Row<'_>, first: usize) -> rusqlite::Result<CallSums> {
    let mut counts = [0; CallSums::COLUMNS.len()];
    for (column, count) in counts.iter_mut().enumerate() {
        *count = from_sql_integer(row.get(first + column)?);
    }
    Ok(CallSums::from_counts(counts))
}
