//! SQL statements that sum calls by day and hour.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use crate::calls::{Call, UsageRow};
use crate::counted::{CallClass, CallSums, classify};
use crate::engine::integers::to_sql_integer;
use crate::engine::reader::calls::{EXTRA_TABLE_JOINS, SELECT_USAGE, read_usage_row};
use crate::engine::usage::usage_row_from;
use crate::engine::{StatementError, cuts};

/// Number of calls that one transaction sums. Other writers then wait only for milliseconds.
const SUM_BATCH_CALLS: u32 = 1_000;

/// The length of the period over which calls are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SumPeriod {
    Day,
    Hour,
}

impl SumPeriod {
    pub(crate) const ALL: [Self; 2] = [Self::Day, Self::Hour];

    /// Returns the number of leading characters of a timestamp that identify the period.
    pub(crate) fn prefix_length(self) -> u8 {
        match self {
            Self::Day => 10,
            Self::Hour => 13,
        }
    }

    /// Returns the day or hour in which this timestamp is.
    pub(crate) fn period_of(self, moment: &str) -> &str {
        moment.get(..self.prefix_length().into()).unwrap_or(moment)
    }
}

/// A property by which calls are summed, in addition to their class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// No dimension.
    Nothing,
    /// The hash of the session.
    Session,
    /// The hash of the client's credential; empty if the client sent none.
    Key,
}

impl Dimension {
    pub(crate) const ALL: [Self; 3] = [Self::Nothing, Self::Session, Self::Key];

    /// Returns the dimension's name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Session => "session",
            Self::Key => "key",
        }
    }

    /// Returns the call's value in this dimension.
    pub(crate) fn key(self, call: &UsageRow) -> &str {
        match self {
            Self::Nothing => "",
            Self::Session => &call.session,
            Self::Key => call.credential.as_deref().unwrap_or_default(),
        }
    }
}

/// The key of a row in the table of sums.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SumKey {
    pub(crate) grain: SumPeriod,
    pub(crate) dimension: &'static str,
    /// A day or an hour.
    pub(crate) period: String,
    pub(crate) key: String,
    pub(crate) class: CallClass,
}

/// Sums by their key in the table.
pub(crate) type Sums = HashMap<SumKey, CallSums>;

/// Selects calls that are not summed yet.
pub(crate) const UNSUMMED_CALLS: &str = "usage INDEXED BY usage_unsummed";

/// Sums that will be added to the table.
#[derive(Debug, Default)]
pub(crate) struct SumsToAdd(HashMap<SumGroup, CallSums>);

/// The class, hour, session and key of calls that belong to the same sums.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SumGroup {
    class: CallClass,
    hour: String,
    session: String,
    key: String,
}

impl SumsToAdd {
    /// Adds a call.
    pub(crate) fn add(&mut self, call: &UsageRow) {
        let (class, counts) = classify(call);
        let group = SumGroup {
            class,
            hour: SumPeriod::Hour.period_of(&call.started_at).to_owned(),
            session: Dimension::Session.key(call).to_owned(),
            key: Dimension::Key.key(call).to_owned(),
        };
        let sum = self.0.entry(group).or_default();
        *sum = sum.plus(&counts);
    }

    /// Returns the sums with their keys in the table.
    pub(crate) fn keyed_sums(&self) -> Sums {
        let mut places = HashMap::new();
        for (SumGroup { class, hour, session, key }, counts) in &self.0 {
            for grain in SumPeriod::ALL {
                for (dimension, key) in
                    [(Dimension::Nothing, ""), (Dimension::Session, session), (Dimension::Key, key)]
                {
                    let place = SumKey {
                        grain,
                        dimension: dimension.name(),
                        period: grain.period_of(hour).to_owned(),
                        key: key.to_owned(),
                        class: class.clone(),
                    };
                    let sum: &mut CallSums = places.entry(place).or_default();
                    *sum = sum.plus(counts);
                }
            }
        }
        places
    }
}

/// Returns the sums of calls.
pub(crate) fn sum_calls(calls: &[&Call]) -> Sums {
    let mut summing = SumsToAdd::default();
    for call in calls {
        summing.add(&usage_row_from(call));
    }
    summing.keyed_sums()
}

/// Returns the sums of these calls, if many of them belong to the same sums. Otherwise returns `None` and
/// leaves the calls to [`sum_oldest_calls`], which sums more calls at once. That costs one more statement
/// later, but little now.
pub(crate) fn sum_if_similar(calls: &[&Call]) -> Option<Sums> {
    if calls.len() <= 2 {
        return None;
    }
    Some(sum_calls(calls)).filter(|sums| sums.len() <= 2 * calls.len())
}

/// Sums the oldest calls that are not summed yet. Returns their number, which is 0 if every call is summed.
pub(crate) fn sum_oldest_calls(connection: &Connection) -> Result<u64, StatementError> {
    // The limit is part of the SQL text, because SQLite would plan a statement with a parameter again at each
    // execution.
    let oldest = format!(
        "{SELECT_USAGE} {UNSUMMED_CALLS} {EXTRA_TABLE_JOINS} WHERE is_summed = 0 ORDER BY started_at LIMIT {SUM_BATCH_CALLS}"
    );
    let calls: Vec<UsageRow> = connection
        .prepare_cached(&oldest)?
        .query_map([], read_usage_row)?
        .collect::<rusqlite::Result<_>>()?;
    // This statement selects the same rows, in the order of the same index.
    let summed = format!(
        "UPDATE usage SET is_summed = 1 WHERE (request_id, call) IN (SELECT request_id, call FROM {UNSUMMED_CALLS}
           WHERE is_summed = 0 ORDER BY started_at LIMIT {SUM_BATCH_CALLS})"
    );
    connection.prepare_cached(&summed)?.execute([])?;
    let mut summing = SumsToAdd::default();
    for call in &calls {
        summing.add(call);
    }
    write_all(connection, &summing.keyed_sums())?;
    Ok(calls.len() as u64)
}

/// Adds sums to those in the table. Deletes daily sums of cut replies that do not include these calls.
pub(crate) fn write_all(connection: &Connection, sums: &Sums) -> rusqlite::Result<()> {
    let days = |(place, counts): (&SumKey, &CallSums)| {
        let has_cuts = place.grain == SumPeriod::Day && place.dimension.is_empty() && counts.cut > 0;
        has_cuts.then(|| place.period.clone())
    };
    for day in sums.iter().filter_map(days).collect::<HashSet<_>>() {
        cuts::delete_day(connection, &day)?;
    }
    let mut classes = HashMap::new();
    for (place, counts) in sums {
        let class = if let Some(class) = classes.get(&place.class) {
            *class
        } else {
            let class = find_class_number(connection, &place.class)?;
            classes.insert(&place.class, class);
            class
        };
        write(connection, place, class, counts)?;
    }
    Ok(())
}

fn find_class_number(connection: &Connection, class: &CallClass) -> rusqlite::Result<i64> {
    let CallClass { upstream, purpose, model, answered_model, kinds, above_tokens, from_minute } = class;
    let values =
        params![upstream, purpose, model, answered_model, kinds, to_sql_integer(*above_tokens), from_minute];
    let known = connection
        .prepare_cached(
            "SELECT id FROM usage_classes WHERE upstream = ?1 AND purpose = ?2 AND model = ?3 AND answered_model = ?4
               AND kinds = ?5 AND above_tokens = ?6 AND from_minute = ?7",
        )?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    connection
        .prepare_cached(
            "INSERT INTO usage_classes (upstream, purpose, model, answered_model, kinds, above_tokens, from_minute)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(values)?;
    Ok(connection.last_insert_rowid())
}

/// Adds counts to a row of the table.
static ADD_COUNTS: LazyLock<String> = LazyLock::new(|| {
    let columns = CallSums::COLUMNS.join(", ");
    let marks = ", ?".repeat(CallSums::COLUMNS.len());
    let grown = |column: &&str| format!("{column} = {column} + excluded.{column}");
    let grown = CallSums::COLUMNS.iter().map(grown).collect::<Vec<_>>().join(", ");
    format!(
        "INSERT INTO usage_sums (grain, dimension, period, key, class, {columns}) VALUES (?, ?, ?, ?, ?{marks})
         ON CONFLICT DO UPDATE SET {grown}"
    )
});

fn write(connection: &Connection, place: &SumKey, class: i64, counts: &CallSums) -> rusqlite::Result<()> {
    let counts = counts.counts().map(to_sql_integer);
    let mut values: Vec<&dyn rusqlite::ToSql> = Vec::with_capacity(5 + counts.len());
    let grain = place.grain.prefix_length();
    values.extend([&grain as &dyn rusqlite::ToSql, &place.dimension, &place.period, &place.key, &class]);
    values.extend(counts.iter().map(|count| count as &dyn rusqlite::ToSql));
    connection.prepare_cached(&ADD_COUNTS)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Deletes classes that no sum refers to.
pub(crate) fn delete_unused_classes(connection: &Connection) -> Result<(), StatementError> {
    connection.execute("DELETE FROM usage_classes WHERE id NOT IN (SELECT class FROM usage_sums)", [])?;
    Ok(())
}

#[cfg(test)]
mod tests;
