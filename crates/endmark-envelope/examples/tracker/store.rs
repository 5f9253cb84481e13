//! The SQLite file.

use std::fmt::Display;
use std::path::Path;

use endmark_envelope::{Checked, ErrorBody, Limits};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

/// The number of characters of a body in a list.
const EXCERPT_CHARACTERS: i64 = 40;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS issues (
    number INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT, labels TEXT NOT NULL)";

/// An issue to be written.
#[derive(Limits)]
pub(crate) struct NewIssue {
    #[limits(max_bytes = 255)]
    pub(crate) title: String,
    #[limits(max_bytes = 100_000)]
    pub(crate) body: Option<String>,
    #[limits(max_bytes = 50, max_items = 10)]
    pub(crate) labels: Vec<String>,
}

/// An issue as stored.
#[derive(Limits, Serialize)]
pub(crate) struct Issue {
    number: i64,
    #[limits(max_bytes = 255)]
    title: String,
    #[limits(max_bytes = 100_000)]
    body: Option<String>,
    #[limits(max_bytes = 50)]
    labels: Vec<String>,
}

/// An issue in a list.
#[derive(Serialize)]
pub(crate) struct IssueSummary {
    pub(crate) number: i64,
    title: String,
    excerpt: Option<String>,
    body_bytes: Option<i64>,
    body_chars: Option<i64>,
}

/// The open file.
pub(crate) struct Store(Connection);

/// Returns the error of a file that cannot be used, with exit code 4.
pub(crate) fn store_failure(error: impl Display) -> ErrorBody {
    ErrorBody::new("store", 4, error.to_string())
}

impl Store {
    pub(crate) fn open(file: &Path) -> Result<Self, ErrorBody> {
        let connection = Connection::open(file).map_err(store_failure)?;
        connection.execute(SCHEMA, []).map_err(store_failure)?;
        Ok(Self(connection))
    }

    /// Writes an issue and returns its number. Its type guarantees that its limits were checked.
    pub(crate) fn create(&self, issue: &Checked<NewIssue>) -> Result<i64, ErrorBody> {
        let labels = serde_json::to_string(&issue.labels).map_err(store_failure)?;
        let insert = "INSERT INTO issues (title, body, labels) VALUES (?1, ?2, ?3)";
        self.0.execute(insert, params![issue.title, issue.body, labels]).map_err(store_failure)?;
        Ok(self.0.last_insert_rowid())
    }

    pub(crate) fn show(&self, number: i64) -> Result<Issue, ErrorBody> {
        let query = "SELECT number, title, body, labels FROM issues WHERE number = ?1";
        let issue = self.0.query_row(query, [number], issue).optional().map_err(store_failure)?;
        issue.ok_or_else(|| {
            ErrorBody::new("not_found", 1, format!("there is no issue {number}"))
                .with_hint("`tracker list` shows what there is.")
        })
    }

    /// Returns at most this many issues with this label, in the order of their numbers, after this number.
    pub(crate) fn list(
        &self,
        label: Option<&str>,
        after: i64,
        at_most: usize,
    ) -> Result<Vec<IssueSummary>, ErrorBody> {
        let query = "SELECT number, title, substr(body, 1, ?1), octet_length(body), length(body) FROM issues
            WHERE number > ?2 AND (?3 IS NULL OR ?3 IN (SELECT value FROM json_each(labels)))
            ORDER BY number LIMIT ?4";
        let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
        let mut statement = self.0.prepare(query).map_err(store_failure)?;
        let rows = statement
            .query_map(params![EXCERPT_CHARACTERS, after, label, at_most], entry)
            .map_err(store_failure)?;
        rows.collect::<Result<_, _>>().map_err(store_failure)
    }
}

fn issue(row: &Row<'_>) -> rusqlite::Result<Issue> {
    let labels: String = row.get(3)?;
    let labels = serde_json::from_str(&labels).unwrap_or_else(|_| vec![labels]);
    Ok(Issue { number: row.get(0)?, title: row.get(1)?, body: row.get(2)?, labels })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<IssueSummary> {
    Ok(IssueSummary {
        number: row.get(0)?,
        title: row.get(1)?,
        excerpt: row.get(2)?,
        body_bytes: row.get(3)?,
        body_chars: row.get(4)?,
    })
}
