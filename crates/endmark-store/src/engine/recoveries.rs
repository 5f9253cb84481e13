//! SQL statements that write cut replies: intents, outcomes, and the intents of dead processes.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::engine::StatementError;
use crate::engine::integers::{from_sql_integer, to_sql_integer};
use crate::owner;
use crate::records::{CutId, CutSettled, CutStarted, FinalStatus, ReplyPiece};

/// Writes an intent durably.
pub(crate) fn insert_intent(
    connection: &Connection,
    owner: &str,
    cut: &CutStarted,
) -> Result<CutId, StatementError> {
    connection
        .prepare_cached(
            "INSERT INTO open_recoveries (owner, request_id, slot, task_id, turn_number, cut_at,
               initial_chunk_length, model, provider, cut_kind)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            owner,
            cut.request_id,
            cut.slot,
            cut.task_id,
            cut.turn_number,
            cut.truncation_index.map(to_sql_integer),
            to_sql_integer(cut.initial_chunk_length),
            cut.model,
            cut.provider,
            cut.cut_kind,
        ])?;
    Ok(CutId(connection.last_insert_rowid()))
}

/// Replaces an intent of this owner by a row in the log. Returns the row's number. The owner is checked,
/// because a recreated store may have assigned the number to another intent.
pub(crate) fn settle(
    connection: &Connection,
    owner: &str,
    id: CutId,
    settled: &CutSettled,
) -> Result<i64, StatementError> {
    let cut = connection
        .prepare_cached(
            "DELETE FROM open_recoveries WHERE id = ?1 AND owner = ?2
             RETURNING request_id, slot, task_id, turn_number, cut_at, initial_chunk_length, model, provider,
               cut_kind",
        )?
        .query_row(params![id.0, owner], read_intent)
        .optional()?
        .ok_or(StatementError::NoSuchCut(id))?;
    Ok(log(connection, &cut, settled)?)
}

/// Logs a cut reply without an intent. An existing row of this reply is kept.
pub(crate) fn log_once(
    connection: &Connection,
    cut: &CutStarted,
    settled: &CutSettled,
) -> Result<i64, StatementError> {
    let logged = connection
        .prepare_cached("SELECT log_id FROM recoveries WHERE request_id = ?1 AND slot = ?2")?
        .query_row([&cut.request_id, &cut.slot], |row| row.get(0))
        .optional()?;
    match logged {
        Some(row) => Ok(row),
        None => Ok(log(connection, cut, settled)?),
    }
}

/// Logs each intent whose owner is dead as `EXHAUSTED`. Returns their number. The caller holds the database's
/// write lock.
pub(crate) fn settle_interrupted(connection: &Connection, database: &Path) -> rusqlite::Result<usize> {
    let owners: Vec<String> = connection
        .prepare("SELECT DISTINCT owner FROM open_recoveries")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut interrupted = 0;
    for owner in owners.iter().filter(|owner| !owner::is_alive(database, owner)) {
        let cuts: Vec<CutStarted> = connection
            .prepare(
                "SELECT request_id, slot, task_id, turn_number, cut_at, initial_chunk_length, model, provider,
                   cut_kind FROM open_recoveries WHERE owner = ?1 ORDER BY id",
            )?
            .query_map([owner], read_intent)?
            .collect::<rusqlite::Result<_>>()?;
        for cut in &cuts {
            log(connection, cut, &interrupted_outcome())?;
        }
        interrupted += connection.execute("DELETE FROM open_recoveries WHERE owner = ?1", [owner])?;
    }
    Ok(interrupted)
}

/// Returns the number of open intents of all processes.
pub(crate) fn open_cuts(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .query_row("SELECT count(*) FROM open_recoveries", [], |row| row.get::<_, i64>(0))
        .map(from_sql_integer)
}

/// Deletes rows that were logged more than `keep_days` days ago. Returns their number.
pub(crate) fn delete_old(connection: &Connection, keep_days: u32) -> Result<u64, StatementError> {
    let forgotten = connection.execute(
        "DELETE FROM partial_completion_log WHERE timestamp < datetime('now', '-' || ?1 || ' days')",
        [keep_days],
    )?;
    Ok(forgotten as u64)
}

fn interrupted_outcome() -> CutSettled {
    CutSettled {
        final_status: FinalStatus::Exhausted,
        resume_attempts: 0,
        outcome: "interrupted".to_owned(),
        seam_style: None,
        extra_prompt_tokens: 0,
        extra_output_tokens: 0,
        reason: "the process that was recovering this reply ended before its outcome was known".to_owned(),
        pieces: Vec::new(),
    }
}

fn read_intent(row: &Row<'_>) -> rusqlite::Result<CutStarted> {
    Ok(CutStarted {
        request_id: row.get(0)?,
        slot: row.get(1)?,
        task_id: row.get(2)?,
        turn_number: row.get(3)?,
        truncation_index: row.get::<_, Option<i64>>(4)?.map(from_sql_integer),
        initial_chunk_length: from_sql_integer(row.get(5)?),
        model: row.get(6)?,
        provider: row.get(7)?,
        cut_kind: row.get(8)?,
    })
}

fn log(connection: &Connection, cut: &CutStarted, settled: &CutSettled) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO partial_completion_log (task_id, turn_number, truncation_index, initial_chunk_length,
               resume_attempts, final_status)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            cut.task_id,
            cut.turn_number,
            cut.truncation_index.map(to_sql_integer),
            to_sql_integer(cut.initial_chunk_length),
            settled.resume_attempts,
            settled.final_status.name(),
        ])?;
    let log_id = connection.last_insert_rowid();
    connection
        .prepare_cached(
            "INSERT INTO recoveries (log_id, request_id, slot, model, provider, cut_kind, outcome, seam_style,
               extra_prompt_tokens, extra_output_tokens, reason)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            log_id,
            cut.request_id,
            cut.slot,
            cut.model,
            cut.provider,
            cut.cut_kind,
            settled.outcome,
            settled.seam_style,
            to_sql_integer(settled.extra_prompt_tokens),
            to_sql_integer(settled.extra_output_tokens),
            settled.reason,
        ])?;
    for piece in &settled.pieces {
        log_piece(connection, log_id, piece)?;
    }
    Ok(log_id)
}

fn log_piece(connection: &Connection, log_id: i64, piece: &ReplyPiece) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO recovery_pieces (log_id, ordinal, strategy, received_bytes, ending, stop, judged, why,
               seam_at, seam_style, dropped_bytes, confidence, sha256, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            log_id,
            piece.ordinal,
            piece.strategy,
            to_sql_integer(piece.received_bytes),
            piece.ending,
            piece.stop,
            piece.judged,
            piece.why,
            piece.seam_at.map(to_sql_integer),
            piece.seam_style,
            to_sql_integer(piece.dropped_bytes),
            piece.confidence,
            piece.sha256,
            piece.text,
        ])?;
    Ok(())
}
