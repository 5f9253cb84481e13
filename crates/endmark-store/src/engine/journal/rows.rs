//! Reads rows of calls that were not reported to the database yet.
//!
//! A separate connection reads them as columns. Reading them as JSON over the writer's connection needed a
//! third of the writer's time, and most of PostgreSQL's time.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::{CALL_COLUMNS, EXTRA_COLUMN_JOINS, value_sql};
use crate::engine::connection::open_for_reading;
use crate::engine::integers::from_sql_integer;
use crate::error::StoreError;

/// The values of one column, in the order of the rows.
#[derive(Debug, PartialEq)]
pub(crate) enum Column {
    Booleans(Vec<Option<bool>>),
    Integers(Vec<Option<i64>>),
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
}

/// Rows as columns, in the order of [`CALL_COLUMNS`].
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CallRows {
    /// The number of the last row in the journal, or 0 without rows.
    pub(crate) last_change: i64,
    /// Whether there may be more rows.
    pub(crate) is_more: bool,
    /// Number of values in each column. Rows that were deleted since are skipped.
    pub(crate) count: usize,
    /// Start time of the oldest call.
    pub(crate) oldest_start: Option<String>,
    pub(crate) columns: Vec<Column>,
}

/// A connection that reads the rows of the journal.
pub(crate) struct RowReader {
    connection: Connection,
    path: PathBuf,
}

/// Selects the oldest rows. A limit is appended.
static SELECT_OLDEST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT j.number, u.request_id IS NOT NULL, {} FROM journal_rows j
           LEFT JOIN usage u USING (request_id, call) {EXTRA_COLUMN_JOINS}
         ORDER BY j.number LIMIT ",
        values_sql()
    )
});

/// Returns the SQL of a row's values, read from `usage u` and [`EXTRA_COLUMN_JOINS`].
pub(in crate::engine) fn values_sql() -> String {
    CALL_COLUMNS.map(|(name, _)| value_sql(name)).join(", ")
}

impl RowReader {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: open_for_reading(path)?, path: path.to_owned() })
    }

    /// Returns the oldest unreported rows, at most `most`.
    pub(crate) fn oldest(&self, most: u32) -> Result<CallRows, StoreError> {
        query_oldest(&self.connection, most).map_err(|error| StoreError::from_sqlite(&self.path, &error))
    }

    /// Returns the number of unreported rows. Rows are numbered without gaps and reported in order, so the first and
    /// the last number suffice, however long the backlog is.
    pub(crate) fn count(&self) -> Result<u64, StoreError> {
        let sql =
            "SELECT 1 + (SELECT max(number) FROM journal_rows) - (SELECT min(number) FROM journal_rows)";
        // Each report counts them, so the statement is planned only once.
        let statement = self.connection.prepare_cached(sql);
        let count =
            statement.and_then(|mut statement| statement.query_row([], |row| row.get::<_, Option<i64>>(0)));
        let count = count.map_err(|error| StoreError::from_sqlite(&self.path, &error))?;
        Ok(count.map_or(0, from_sql_integer))
    }
}

fn query_oldest(connection: &Connection, most: u32) -> rusqlite::Result<CallRows> {
    let (mut found, mut read) = (CallRows::default(), 0);
    // If the limit were a parameter, SQLite would plan the statement again at each execution, which costs 2.6
    // million instructions.
    let mut statement = connection.prepare_cached(&format!("{}{most}", *SELECT_OLDEST))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        (found.last_change, read) = (row.get(0)?, read + 1);
        if row.get(1)? {
            found.push(row, 2)?;
        }
    }
    found.is_more = read >= most;
    Ok(found)
}

impl CallRows {
    /// Adds a row whose values begin at column `first`.
    pub(in crate::engine) fn push(&mut self, row: &Row<'_>, first: usize) -> rusqlite::Result<()> {
        if self.columns.is_empty() {
            self.columns.extend(CALL_COLUMNS.map(|(_, kind)| Column::for_sql_type(kind)));
        }
        self.count += 1;
        for (place, (column, (_, kind))) in self.columns.iter_mut().zip(CALL_COLUMNS).enumerate() {
            column.push(row, first + place, kind)?;
        }
        // The first column contains the start times.
        if let Some(Column::Texts(times)) = self.columns.first() {
            let earlier = times.last().and_then(Option::as_ref);
            self.oldest_start = self.oldest_start.take().iter().chain(earlier).min().cloned();
        }
        Ok(())
    }
}

impl Column {
    fn for_sql_type(kind: &str) -> Self {
        match kind {
            "boolean" => Self::Booleans(Vec::new()),
            "integer" | "bigint" => Self::Integers(Vec::new()),
            "double precision" => Self::Numbers(Vec::new()),
            _ => Self::Texts(Vec::new()),
        }
    }

    /// Adds a value of a row, converted to the type of the database's column.
    fn push(&mut self, row: &Row<'_>, place: usize, kind: &str) -> rusqlite::Result<()> {
        match self {
            Self::Booleans(values) => values.push(row.get(place)?),
            Self::Integers(values) => values.push(row.get(place)?),
            Self::Numbers(values) => values.push(row.get(place)?),
            Self::Texts(values) => values.push(match row.get_ref(place)? {
                ValueRef::Null => None,
                // The journal's times are in UTC.
                value if kind == "timestamptz" => Some(format!("{}+00", value.as_str()?)),
                // PostgreSQL cannot store U+0000.
                value => Some(value.as_str()?.replace('\0', "\u{fffd}")),
            }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{BUSY_TIMEOUT, Session};

    #[test]
    fn rows_are_read_in_order_without_nul_or_deleted_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.db");
        let (session, _owner, _) =
            Session::open(&path, BUSY_TIMEOUT, |connection| super::super::open(connection, &path, "1"))
                .unwrap();
        session
            .execute_batch(
                "INSERT INTO usage (request_id, call, purpose, session, upstream, format, model, streamed, mode, started_at,
                   sent_bytes, ending, prompt_tokens, total_ms)
                 SELECT value, 1, 'reply', 's', 'u', 'f', 'm' || char(0), 1, 'auto', '2026-11-27 08:45:58.194', 7, 'clean', 3, 2
                 FROM json_each('[\"a\", \"b\", \"c\"]');
                 INSERT INTO usage_estimates (request_id, call, prompt, output) VALUES ('c', 1, 5, 6);
                 DELETE FROM usage WHERE request_id = 'b'",
            )
            .unwrap();
        let reader = RowReader::open(&path).unwrap();
        let rows = reader.oldest(4).unwrap();
        assert_eq!((rows.last_change, rows.count, rows.is_more), (3, 2, false));
        assert_eq!(rows.oldest_start.as_deref(), Some("2026-11-27 08:45:58.194+00"));
        let column =
            |name: &str| &rows.columns[CALL_COLUMNS.iter().position(|(known, _)| *known == name).unwrap()];
        let texts = |text: &str| Column::Texts(vec![Some(text.to_owned()); 2]);
        assert_eq!(*column("request_id"), Column::Texts(vec![Some("a".to_owned()), Some("c".to_owned())]));
        assert_eq!(*column("started_at"), texts("2026-11-27 08:45:58.194+00"));
        assert_eq!(*column("model"), texts("m\u{fffd}"));
        assert_eq!(*column("streamed"), Column::Booleans(vec![Some(true); 2]));
        assert_eq!(*column("estimated_prompt"), Column::Integers(vec![None, Some(5)]));
        assert_eq!(*column("total_ms"), Column::Numbers(vec![Some(2.0); 2]));
        assert!(reader.oldest(2).unwrap().is_more);
        assert_eq!(reader.count().unwrap(), 3);
        session.execute_batch("DELETE FROM journal_rows WHERE number <= 2").unwrap();
        assert_eq!(reader.count().unwrap(), 1);
        session.execute_batch("DELETE FROM journal_rows").unwrap();
        assert_eq!(reader.count().unwrap(), 0);
    }
}
