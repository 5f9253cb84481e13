//! Reads the store over a separate connection, which creates no files.

pub(in crate::engine) mod calls;
mod charges;
mod pages;
mod requests;
mod runs;
pub(in crate::engine) mod summary;
mod sums;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row, ToSql, params_from_iter};

use crate::engine::connection::open_for_reading;
use crate::engine::integers::from_sql_integer;
use crate::engine::migrate;
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::records::{FinalStatus, LoggedPiece, Recovery, RecoveryCursor, RecoveryRow, ReplyPiece};

pub use charges::BudgetDifference;
pub use pages::{BudgetPosition, CompactionRow, SessionOutput};
pub(crate) use requests::{MAX_CANDIDATES, PageBuilder};
pub use requests::{RequestFilter, RequestFilterOptions, RequestPage, RequestRecords, RequestRow};
pub use summary::{CutPeriod, CutReport, CutSummary, UsageSummary};
pub(crate) use summary::{CutReportBuilder, REPLY_PURPOSES};
pub use sums::CountedCalls;

/// Reads a store, even while a gateway writes it. Reading blocks: do not use it in an async task.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

/// Selects rows of the log. An unset field matches every row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Only rows with this status.
    pub final_status: Option<FinalStatus>,
    /// Only rows of this task.
    pub task_id: Option<String>,
    /// Only rows of this model.
    pub model: Option<String>,
    /// Only rows of this upstream.
    pub provider: Option<String>,
    /// Only rows with this kind of cut (PC-8).
    pub cut_kind: Option<String>,
    /// Only rows of this request.
    pub request_id: Option<String>,
    /// Only rows that follow this one, which is the last row of a page.
    pub before: Option<RecoveryCursor>,
}

const SELECT_RECOVERIES: &str = "SELECT l.id, l.task_id, l.turn_number, l.truncation_index, l.initial_chunk_length,
  coalesce(l.resume_attempts, 0), l.final_status, l.timestamp, coalesce(r.request_id, ''), coalesce(r.slot, ''),
  coalesce(r.model, ''), coalesce(r.provider, ''), coalesce(r.cut_kind, ''), coalesce(r.outcome, ''), r.seam_style,
  coalesce(r.extra_prompt_tokens, 0), coalesce(r.extra_output_tokens, 0), coalesce(r.reason, '')
  FROM partial_completion_log l LEFT JOIN recoveries r ON r.log_id = l.id";

impl Reader {
    /// Opens an existing store for reading.
    pub fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        let location = location.absolute();
        let path = location.path();
        let connection = open_for_reading(path).map_err(|error| location.error_at_location(error))?;
        migrate::check(&connection, path)?;
        Ok(Self::from_connection(connection, path))
    }

    pub(in crate::engine) fn from_connection(connection: Connection, path: &Path) -> Self {
        Self { connection, path: path.to_owned() }
    }

    /// Returns the newest rows, newest first, at most `limit` (PC-7).
    pub fn recent(&self, limit: u32, filter: &LogFilter) -> Result<Vec<RecoveryRow>, StoreError> {
        let mut sql = format!("{SELECT_RECOVERIES} WHERE 1");
        let mut values: Vec<&dyn ToSql> = Vec::new();
        let status = filter.final_status.map(FinalStatus::name);
        let before: (&str, Option<&dyn ToSql>) = match &filter.before {
            // The preceding page listed the rows of all gateways.
            Some(RecoveryCursor::Finished { at, .. }) => ("l.timestamp <", Some(at)),
            Some(RecoveryCursor::Row(id)) => ("l.id <", Some(id)),
            None => ("", None),
        };
        let conditions: [(&str, Option<&dyn ToSql>); 7] = [
            before,
            ("r.request_id =", filter.request_id.as_ref().map(|value| value as &dyn ToSql)),
            ("l.final_status =", status.as_ref().map(|value| value as &dyn ToSql)),
            ("l.task_id =", filter.task_id.as_ref().map(|value| value as &dyn ToSql)),
            ("r.model =", filter.model.as_ref().map(|value| value as &dyn ToSql)),
            ("r.provider =", filter.provider.as_ref().map(|value| value as &dyn ToSql)),
            ("r.cut_kind =", filter.cut_kind.as_ref().map(|value| value as &dyn ToSql)),
        ];
        for (column, value) in conditions {
            if let Some(value) = value {
                sql.push_str(" AND ");
                sql.push_str(column);
                sql.push_str(" ?");
                values.push(value);
            }
        }
        sql.push_str(" ORDER BY l.id DESC LIMIT ?");
        values.push(&limit);
        self.rows(&sql, &values)
    }

    /// Returns one row (by its number) with its pieces, or all rows of one request (by its id). Returns
    /// `None` if neither exists.
    pub fn show(&self, id: &str) -> Result<Option<Recovery>, StoreError> {
        let mut rows = Vec::new();
        if let Ok(number) = id.parse::<i64>() {
            rows = self.rows(&format!("{SELECT_RECOVERIES} WHERE l.id = ?"), &[&number])?;
        }
        if rows.is_empty() {
            rows = self.rows(&format!("{SELECT_RECOVERIES} WHERE r.request_id = ? ORDER BY l.id"), &[&id])?;
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let mut pieces = Vec::new();
        for row in &rows {
            pieces.extend(self.pieces(row.id).map_err(|error| self.store_error(&error))?);
        }
        Ok(Some(Recovery { rows, pieces }))
    }

    /// Checks the structure of the whole database. Returns the problems that were found.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let check = || {
            self.connection
                .prepare("PRAGMA quick_check(20)")?
                .query_map([], |row| row.get::<_, String>(0))?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut lines = check().map_err(|error| self.store_error(&error))?;
        lines.retain(|line| line != "ok");
        Ok(lines)
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn rows(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<RecoveryRow>, StoreError> {
        let read = || {
            self.connection
                .prepare(sql)?
                .query_map(params_from_iter(values), read_log_row)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns the rows of one request, for a list.
    fn request_cuts(&self, request_id: &str) -> rusqlite::Result<Vec<RecoveryRow>> {
        self.connection()
            .prepare_cached(&format!("{SELECT_RECOVERIES} WHERE r.request_id = ? ORDER BY l.id"))?
            .query_map([request_id], read_log_row)?
            .collect()
    }

    fn pieces(&self, log_id: i64) -> rusqlite::Result<Vec<LoggedPiece>> {
        self.connection
            .prepare_cached(
                "SELECT ordinal, strategy, received_bytes, ending, stop, judged, why, seam_at, seam_style,
                   dropped_bytes, confidence, sha256, text
                 FROM recovery_pieces WHERE log_id = ?1 ORDER BY ordinal",
            )?
            .query_map([log_id], |row| Ok(LoggedPiece { log_id, piece: read_piece(row)? }))?
            .collect()
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn store_error(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, error)
    }
}

fn read_log_row(row: &Row<'_>) -> rusqlite::Result<RecoveryRow> {
    let status: String = row.get(6)?;
    Ok(RecoveryRow {
        id: row.get(0)?,
        task_id: row.get(1)?,
        turn_number: row.get(2)?,
        truncation_index: row.get(3)?,
        initial_chunk_length: row.get(4)?,
        resume_attempts: row.get(5)?,
        // The table's CHECK constraint allows no other value.
        final_status: FinalStatus::parse(&status).unwrap_or(FinalStatus::Exhausted),
        timestamp: row.get(7)?,
        request_id: row.get(8)?,
        slot: row.get(9)?,
        model: row.get(10)?,
        provider: row.get(11)?,
        cut_kind: row.get(12)?,
        outcome: row.get(13)?,
        seam_style: row.get(14)?,
        extra_prompt_tokens: row.get(15)?,
        extra_output_tokens: row.get(16)?,
        reason: row.get(17)?,
        other_gateway: None,
    })
}

fn read_piece(row: &Row<'_>) -> rusqlite::Result<ReplyPiece> {
    Ok(ReplyPiece {
        ordinal: row.get(0)?,
        strategy: row.get(1)?,
        received_bytes: from_sql_integer(row.get(2)?),
        ending: row.get(3)?,
        stop: row.get(4)?,
        judged: row.get(5)?,
        why: row.get(6)?,
        seam_at: row.get::<_, Option<i64>>(7)?.map(from_sql_integer),
        seam_style: row.get(8)?,
        dropped_bytes: from_sql_integer(row.get(9)?),
        confidence: row.get(10)?,
        sha256: row.get(11)?,
        text: row.get(12)?,
    })
}
