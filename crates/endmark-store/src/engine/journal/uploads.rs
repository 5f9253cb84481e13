//! Collects kept outputs, summaries and recoveries that are not in the shared database yet.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::recoveries;

use crate::engine::StatementError;
use crate::engine::integers::to_sql_integer;
use crate::engine::outputs::CompressedPiece;

/// Triggers that record new outputs and summaries, and the first use of each of them on a day.
pub(super) const TRIGGERS: &str = "
CREATE TRIGGER output_in_journal AFTER UPDATE OF bytes, last_used ON outputs
  WHEN NEW.bytes IS NOT NULL AND (OLD.bytes IS NULL OR NEW.last_used / 86400 > OLD.last_used / 86400) BEGIN
  INSERT INTO journal_outputs (handle) VALUES (NEW.handle) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER compaction_in_journal AFTER INSERT ON compactions BEGIN
  INSERT INTO journal_compactions (owner, first_sha256, turns, sha256)
    VALUES (NEW.owner, NEW.first_sha256, NEW.turns, NEW.sha256) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER compaction_used_in_journal AFTER UPDATE OF last_used ON compactions
  WHEN NEW.last_used / 86400 > OLD.last_used / 86400 BEGIN
  INSERT INTO journal_compactions (owner, first_sha256, turns, sha256)
    VALUES (NEW.owner, NEW.first_sha256, NEW.turns, NEW.sha256) ON CONFLICT DO NOTHING;
END;";

/// Maximum compressed bytes in one transaction of the database. A single piece or summary may exceed it. The
/// limit is small because calls that wait for a share of a budget also wait for this transaction.
const MAX_BYTES_PER_TRANSACTION: usize = 512 << 10;
/// Maximum number of outputs, or of summaries, in one transaction of the database.
const MAX_VALUES_PER_TRANSACTION: u32 = 64;

/// The values to upload in one transaction.
#[derive(Default)]
pub(crate) struct Uploads {
    pub(crate) outputs: Vec<OutputUpload>,
    /// Pieces of these outputs, each with its handle.
    pub(crate) pieces: Vec<(String, CompressedPiece)>,
    /// Summaries, as an array of JSON objects.
    pub(crate) summaries: Option<String>,
    /// The number of the last summary.
    last_summary: i64,
    /// Recoveries, as an array of JSON objects.
    pub(crate) recoveries: Option<String>,
    /// The number of the last recovery.
    last_recovery: i64,
}

/// An output to upload.
pub(crate) struct OutputUpload {
    number: i64,
    pub(crate) handle: String,
    /// The output. `None` if this instance does not keep it, because it belongs to another instance or was
    /// removed.
    pub(crate) value: Option<OutputValue>,
    /// The first piece of the next transaction. `None` if this transaction has the last piece.
    pub(crate) next_piece: Option<i64>,
}

/// An output that is kept here, without its content.
pub(crate) struct OutputValue {
    pub(crate) owner: String,
    pub(crate) format: String,
    pub(crate) bytes: i64,
    pub(crate) lines: i64,
    pub(crate) keep_days: i64,
    pub(crate) expires_at: i64,
}

/// SQL for the time in seconds since 1970 at which a value may be deleted. It is one day later than the
/// retention time, because uses are reported only once a day.
const EXPIRES_AT_SQL: &str = "iif(keep_days = 0, 9223372036854775807, last_used + (keep_days + 1) * 86400)";

/// Whether there is anything to upload.
pub(super) fn has_uploads(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM journal_outputs) OR EXISTS (SELECT 1 FROM journal_compactions)
                 OR EXISTS (SELECT 1 FROM journal_recoveries)";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// Collects the oldest values to upload.
pub(crate) fn collect(connection: &Connection) -> Result<Uploads, StatementError> {
    let (summaries_through, summaries) = query_summaries(connection)?;
    let (recoveries_through, recoveries) = recoveries::collect(connection)?;
    let mut uploads = Uploads {
        summaries,
        last_summary: summaries_through,
        recoveries,
        last_recovery: recoveries_through,
        ..Uploads::default()
    };
    let mut room =
        MAX_BYTES_PER_TRANSACTION.saturating_sub(uploads.summaries.as_ref().map_or(0, String::len));
    let entries: Vec<(i64, String, i64)> = connection
        .prepare_cached("SELECT number, handle, next_piece FROM journal_outputs ORDER BY number LIMIT ?1")?
        .query_map([MAX_VALUES_PER_TRANSACTION], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (number, handle, first_piece) in entries {
        if room == 0 {
            break;
        }
        let value = query_value(connection, &handle)?;
        let mut next_piece = None;
        if value.is_some() {
            let mut statement = connection.prepare_cached(
                "SELECT ordinal, first_byte, first_line, bytes, content FROM output_pieces
                 WHERE handle = ?1 AND ordinal >= ?2 ORDER BY ordinal",
            )?;
            let mut rows = statement.query(params![handle, first_piece])?;
            while let Some(row) = rows.next()? {
                if room == 0 {
                    next_piece = Some(row.get(0)?);
                    break;
                }
                let piece = CompressedPiece {
                    ordinal: row.get(0)?,
                    first_byte: row.get(1)?,
                    first_line: row.get(2)?,
                    bytes: row.get(3)?,
                    content: row.get(4)?,
                };
                room = room.saturating_sub(piece.content.len());
                uploads.pieces.push((handle.clone(), piece));
            }
        }
        uploads.outputs.push(OutputUpload { number, handle, value, next_piece });
    }
    Ok(uploads)
}

fn query_value(connection: &Connection, handle: &str) -> rusqlite::Result<Option<OutputValue>> {
    connection
        .prepare_cached(&format!(
            "SELECT owner, format, bytes, lines, keep_days, {EXPIRES_AT_SQL} FROM outputs WHERE handle = ?1 AND bytes IS NOT NULL"
        ))?
        .query_row([handle], |row| {
            Ok(OutputValue {
                owner: row.get(0)?,
                format: row.get(1)?,
                bytes: row.get(2)?,
                lines: row.get(3)?,
                keep_days: row.get(4)?,
                expires_at: row.get(5)?,
            })
        })
        .optional()
}

/// Returns the oldest summaries as JSON, and the number of the last one. Summaries that were deleted since
/// are skipped.
fn query_summaries(connection: &Connection) -> rusqlite::Result<(i64, Option<String>)> {
    let (through, count, rows): (i64, i64, String) = connection
        .prepare_cached(&format!(
            "SELECT coalesce(max(n), 0), count(*), json_group_array(json(row)) FILTER (WHERE row IS NOT NULL) FROM (
               SELECT n, row FROM (
                 SELECT j.number AS n, sum(coalesce(length(c.items), 0)) OVER (ORDER BY j.number) - coalesce(length(c.items), 0)
                   AS before, CASE WHEN c.owner IS NOT NULL THEN json_object(
                   'owner', c.owner, 'first_sha256', c.first_sha256, 'turns', c.turns, 'sha256', c.sha256, 'items', c.items,
                   'mode', c.mode, 'tokens_before', c.tokens_before, 'tokens_after', c.tokens_after, 'handle', c.handle,
                   'bytes', c.bytes, 'session', coalesce(s.session, ''), 'dropped', coalesce(s.dropped, ''),
                   'keep_days', c.keep_days, 'expires_at', {EXPIRES_AT_SQL}) END AS row
                 FROM (SELECT * FROM journal_compactions ORDER BY number LIMIT ?1) j
                   LEFT JOIN compactions c USING (owner, first_sha256, turns, sha256)
                   LEFT JOIN compaction_sessions s USING (owner, first_sha256, turns, sha256))
               WHERE before < ?2 ORDER BY n)"
        ))?
        .query_row(params![MAX_VALUES_PER_TRANSACTION, to_sql_integer(MAX_BYTES_PER_TRANSACTION as u64)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok((through, (count > 0).then(|| super::without_nul(&rows))))
}

/// Records that the database has committed the uploads. The database lacks pieces of the outputs in
/// `incomplete`, so these are uploaded again from the beginning. Returns whether there is more to upload.
pub(crate) fn mark_uploaded(
    connection: &Connection,
    uploads: &Uploads,
    incomplete: &[String],
) -> Result<bool, StatementError> {
    connection
        .prepare_cached("DELETE FROM journal_compactions WHERE number <= ?1")?
        .execute([uploads.last_summary])?;
    recoveries::mark_reported(connection, uploads.last_recovery)?;
    for OutputUpload { number, handle, next_piece, .. } in &uploads.outputs {
        let next_piece = if incomplete.contains(handle) { Some(0) } else { *next_piece };
        match next_piece {
            Some(next_piece) => connection
                .prepare_cached("UPDATE journal_outputs SET next_piece = ?2 WHERE number = ?1")?
                .execute([*number, next_piece])?,
            None => connection
                .prepare_cached("DELETE FROM journal_outputs WHERE number = ?1")?
                .execute([*number])?,
        };
    }
    Ok(has_uploads(connection)?)
}

/// Records that an output of another instance was used. Does nothing in a store that is not shared.
pub(in crate::engine) fn note_use(connection: &Connection, handle: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO journal_outputs (handle) SELECT ?1 FROM journal
             WHERE NOT EXISTS (SELECT 1 FROM outputs WHERE handle = ?1) ON CONFLICT DO NOTHING",
        )?
        .execute([handle])?;
    Ok(())
}
