//! SQL statements for kept outputs.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::engine::journal::uploads;
use crate::engine::{StatementError, quota};
use crate::outputs::NewOutput;

pub(crate) const SECONDS_PER_DAY: i64 = 86_400;

/// Days for which the store remembers that an output was removed.
const REMOVAL_RECORD_DAYS: i64 = 30;

/// Returns the current time in seconds since 1970.
pub(crate) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Inserts the row of an output, and deletes expired outputs. Replaces a complete output with the same
/// handle. An incomplete one stays, because another request is writing the same content.
pub(crate) fn insert_output(connection: &Connection, output: &NewOutput) -> Result<(), StatementError> {
    delete_expired(connection)?;
    connection
        .prepare_cached("DELETE FROM outputs WHERE handle = ?1 AND bytes IS NOT NULL")?
        .execute([output.handle.as_str()])?;
    connection
        .prepare_cached(
            "INSERT INTO outputs (handle, owner, keep_days, last_used) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (handle) DO UPDATE SET last_used = excluded.last_used",
        )?
        .execute(params![output.handle.as_str(), output.owner, output.keep_days, unix_seconds()])?;
    Ok(())
}

/// A stored piece of an output.
pub(crate) struct CompressedPiece {
    pub(crate) ordinal: i64,
    pub(crate) first_byte: i64,
    pub(crate) first_line: i64,
    pub(crate) bytes: i64,
    pub(crate) content: Vec<u8>,
}

/// Adds a piece. Removes other outputs if the quota requires it. Writing counts as use of the output.
pub(crate) fn append_piece(
    connection: &Connection,
    handle: &str,
    piece: &CompressedPiece,
    max_bytes: u64,
) -> Result<(), StatementError> {
    if max_bytes > 0 {
        let bytes = i64::try_from(piece.content.len()).unwrap_or(i64::MAX);
        quota::free_space(connection, handle, bytes, max_bytes)?;
    }
    connection
        .prepare_cached(
            "INSERT INTO output_pieces (handle, ordinal, first_byte, first_line, bytes, content)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            handle,
            piece.ordinal,
            piece.first_byte,
            piece.first_line,
            piece.bytes,
            piece.content
        ])?;
    record_use(connection, handle)
}

/// Marks the output as complete.
pub(crate) fn mark_complete(
    connection: &Connection,
    handle: &str,
    format: &str,
    bytes: i64,
    lines: i64,
) -> Result<(), StatementError> {
    connection
        .prepare_cached(
            "UPDATE outputs SET format = ?2, bytes = ?3, lines = ?4, last_used = ?5 WHERE handle = ?1",
        )?
        .execute(params![handle, format, bytes, lines, unix_seconds()])?;
    Ok(())
}

/// Records that the output was used. If another instance keeps it, schedules a report of the use to the
/// database.
pub(crate) fn record_use(connection: &Connection, handle: &str) -> Result<(), StatementError> {
    let touched = connection
        .prepare_cached("UPDATE outputs SET last_used = ?2 WHERE handle = ?1")?
        .execute(params![handle, unix_seconds()])?;
    if touched == 0 {
        uploads::note_use(connection, handle)?;
    }
    Ok(())
}

/// Whether an output is complete and has not expired.
pub(crate) fn is_available(connection: &Connection, handle: &str) -> rusqlite::Result<bool> {
    let found: Option<(i64, i64)> = connection
        .prepare_cached("SELECT last_used, keep_days FROM outputs WHERE handle = ?1 AND bytes IS NOT NULL")?
        .query_row([handle], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.is_some_and(|(last_used, keep_days)| !has_expired(last_used, keep_days)))
}

/// Deletes an output.
pub(crate) fn delete_output(connection: &Connection, handle: &str) -> Result<(), StatementError> {
    connection.prepare_cached("DELETE FROM outputs WHERE handle = ?1")?.execute([handle])?;
    Ok(())
}

/// Deletes expired outputs, and outputs that have been incomplete for a day. Returns their number.
pub(crate) fn delete_expired(connection: &Connection) -> Result<u64, StatementError> {
    let forgotten = connection
        .prepare_cached(
            "DELETE FROM outputs WHERE (keep_days > 0 AND last_used + keep_days * ?1 < ?2)
               OR (bytes IS NULL AND last_used + ?1 < ?2)",
        )?
        .execute([SECONDS_PER_DAY, unix_seconds()])?;
    connection
        .prepare_cached("DELETE FROM removed_outputs WHERE removed_at < ?1")?
        .execute([unix_seconds() - REMOVAL_RECORD_DAYS * SECONDS_PER_DAY])?;
    Ok(forgotten as u64)
}

/// Whether an output that was last used at this time has expired.
pub(crate) fn has_expired(last_used: i64, keep_days: i64) -> bool {
    keep_days > 0 && last_used.saturating_add(keep_days.saturating_mul(SECONDS_PER_DAY)) < unix_seconds()
}
