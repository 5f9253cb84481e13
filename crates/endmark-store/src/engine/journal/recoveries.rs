//! Collects recoveries of cut replies that the database does not have yet. Their texts stay in the journal.

use rusqlite::{Connection, params};

use crate::engine::StatementError;

/// A trigger that records new recoveries, in the transaction that writes them.
const TRIGGER: &str = "
CREATE TRIGGER recovery_in_journal AFTER INSERT ON recoveries BEGIN
  INSERT INTO journal_recoveries (log_id) VALUES (NEW.log_id);
END;";

/// The columns of a recovery's row in the database, with their types there and their SQL in the journal.
const COLUMNS: [(&str, &str, &str); 19] = [
    ("request_id", "text", "r.request_id"),
    ("id", "bigint", "l.id"),
    ("finished_at", "text", "l.timestamp"),
    ("task_id", "text", "l.task_id"),
    ("turn_number", "bigint", "l.turn_number"),
    ("truncation_index", "bigint", "l.truncation_index"),
    ("initial_chunk_length", "bigint", "l.initial_chunk_length"),
    ("resume_attempts", "bigint", "coalesce(l.resume_attempts, 0)"),
    ("final_status", "text", "l.final_status"),
    ("slot", "text", "r.slot"),
    ("model", "text", "r.model"),
    ("provider", "text", "r.provider"),
    ("cut_kind", "text", "r.cut_kind"),
    ("outcome", "text", "r.outcome"),
    ("seam_style", "text", "r.seam_style"),
    ("extra_prompt_tokens", "bigint", "r.extra_prompt_tokens"),
    ("extra_output_tokens", "bigint", "r.extra_output_tokens"),
    ("reason", "text", "r.reason"),
    ("pieces", "bigint", "(SELECT count(*) FROM recovery_pieces p WHERE p.log_id = l.id)"),
];

/// The same columns, with the names and types of the database.
pub(crate) const RECOVERY_COLUMNS: [(&str, &str); COLUMNS.len()] = {
    let (mut columns, mut place) = ([("", ""); COLUMNS.len()], 0);
    while place < COLUMNS.len() {
        columns[place] = (COLUMNS[place].0, COLUMNS[place].1);
        place += 1;
    }
    columns
};

/// Maximum number of recoveries in one transaction of the database.
const MAX_RECOVERIES: u32 = 128;

/// Starts to record new recoveries. In a journal of an older version, existing recoveries are recorded too.
pub(super) fn create_trigger(connection: &Connection) -> rusqlite::Result<()> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name = 'recovery_in_journal')";
    if connection.query_row(sql, [], |row| row.get(0))? {
        return Ok(());
    }
    connection.execute_batch(TRIGGER)?;
    connection
        .execute("INSERT INTO journal_recoveries (log_id) SELECT log_id FROM recoveries ORDER BY log_id", [])
        .map(|_| ())
}

/// Returns the oldest recoveries as JSON, and the number of the last of them. Deleted recoveries are skipped.
pub(super) fn collect(connection: &Connection) -> rusqlite::Result<(i64, Option<String>)> {
    let values = COLUMNS.map(|(name, _, value)| format!("'{name}', {value}")).join(", ");
    let (through, count, rows): (i64, i64, String) = connection
        .prepare_cached(&format!(
            "SELECT coalesce(max(number), 0), count(*), json_group_array(json(row)) FILTER (WHERE row IS NOT NULL) FROM (
               SELECT j.number, CASE WHEN r.log_id IS NOT NULL THEN json_object({values}) END AS row
               FROM journal_recoveries j LEFT JOIN recoveries r USING (log_id)
                 LEFT JOIN partial_completion_log l ON l.id = r.log_id
               ORDER BY j.number LIMIT ?1)"
        ))?
        .query_row([MAX_RECOVERIES], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok((through, (count > 0).then(|| super::without_nul(&rows))))
}

/// Records that the database has the recoveries up to this number.
pub(super) fn mark_reported(connection: &Connection, through: i64) -> Result<(), StatementError> {
    connection
        .prepare_cached("DELETE FROM journal_recoveries WHERE number <= ?1")?
        .execute(params![through])?;
    Ok(())
}
