//! Collects supervised runs that changed since they were last published.

use rusqlite::{Connection, params};

use crate::engine::StatementError;
use crate::owner::EXTERNAL_OWNER;

/// Triggers that record changed runs and new events.
pub(super) const TRIGGERS: &str = "
CREATE TRIGGER IF NOT EXISTS run_in_journal AFTER INSERT ON runs BEGIN
  INSERT INTO journal_runs (run_id) VALUES (NEW.id);
END;
CREATE TRIGGER IF NOT EXISTS run_changed_in_journal AFTER UPDATE ON runs BEGIN
  DELETE FROM journal_runs WHERE run_id = NEW.id;
  INSERT INTO journal_runs (run_id) VALUES (NEW.id);
END;
CREATE TRIGGER IF NOT EXISTS run_event_in_journal AFTER INSERT ON run_events BEGIN
  INSERT INTO journal_run_events (number) VALUES (NEW.id);
END;";

/// The columns of a run's row in the database, with their types.
pub(crate) const RUN_COLUMNS: [(&str, &str); 28] = [
    ("id", "text"),
    ("revision", "bigint"),
    ("is_supervised", "boolean"),
    ("state", "text"),
    ("reason", "text"),
    ("agent", "text"),
    ("command", "text"),
    ("folder", "text"),
    ("artifact", "text"),
    ("template", "text"),
    ("attempt", "bigint"),
    ("max_attempts", "bigint"),
    ("process", "bigint"),
    ("session", "text"),
    ("model", "text"),
    ("input_tokens", "bigint"),
    ("output_tokens", "bigint"),
    ("largest_call_tokens", "bigint"),
    ("limit_tokens", "bigint"),
    ("context_exhaustion_risk", "boolean"),
    ("cost_nanodollars", "bigint"),
    ("verdict", "text"),
    ("evidence", "text"),
    ("findings", "bigint"),
    ("name", "text"),
    ("started_at", "text"),
    ("updated_at", "text"),
    ("ended_at", "text"),
];

/// The columns of an event's row in the database.
pub(crate) const EVENT_COLUMNS: [(&str, &str); 8] = [
    ("run_id", "text"),
    ("number", "bigint"),
    ("at", "text"),
    ("name", "text"),
    ("attempt", "bigint"),
    ("state", "text"),
    ("reason", "text"),
    ("message", "text"),
];

/// Maximum number of runs in one transaction of the database.
const MAX_RUNS_PER_TRANSACTION: u32 = 64;
/// Maximum number of events in one transaction of the database.
const MAX_EVENTS_PER_TRANSACTION: u32 = 256;

/// The runs and events to publish in one transaction.
pub(crate) struct RunUploads {
    /// Changed runs, and new events, as arrays of JSON objects.
    pub(crate) runs: Option<String>,
    pub(crate) events: Option<String>,
    /// Ids of the runs that this process supervises.
    pub(crate) supervised_ids: Vec<String>,
    /// The numbers of the last run and the last event.
    last_numbers: (i64, i64),
    /// Whether there may be more than fits into one transaction.
    pub(crate) is_more: bool,
}

impl RunUploads {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_none() && self.events.is_none()
    }
}

/// Collects what to publish next, oldest first, for the process with this owner name.
pub(crate) fn collect(connection: &Connection, owner: &str) -> Result<RunUploads, StatementError> {
    let (run, event) = (run_as_json(), event_as_json());
    let (runs_through, run_count, runs) = query_rows(
        connection,
        &format!(
            "SELECT j.number AS n, CASE WHEN r.id IS NOT NULL THEN {run} END AS row FROM journal_runs j
               LEFT JOIN runs r ON r.id = j.run_id LEFT JOIN run_tasks t ON t.run_id = r.id
             ORDER BY j.number LIMIT ?1"
        ),
        MAX_RUNS_PER_TRANSACTION,
    )?;
    let (events_through, event_count, events) = query_rows(
        connection,
        &format!(
            "SELECT j.number AS n, CASE WHEN e.id IS NOT NULL THEN {event} END AS row FROM journal_run_events j
               LEFT JOIN run_events e ON e.id = j.number ORDER BY j.number LIMIT ?1"
        ),
        MAX_EVENTS_PER_TRANSACTION,
    )?;
    let supervised = connection
        .prepare_cached("SELECT id FROM runs WHERE owner = ?1 AND ended_at IS NULL ORDER BY id")?
        .query_map([owner], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(RunUploads {
        runs,
        events,
        supervised_ids: supervised,
        last_numbers: (runs_through, events_through),
        is_more: run_count >= MAX_RUNS_PER_TRANSACTION || event_count >= MAX_EVENTS_PER_TRANSACTION,
    })
}

/// Returns the number of the last row, the number of rows, and the rows as JSON. Runs that were deleted since
/// are skipped.
fn query_rows(
    connection: &Connection,
    rows: &str,
    limit: u32,
) -> rusqlite::Result<(i64, u32, Option<String>)> {
    let (through, count, rows): (i64, u32, String) = connection
        .prepare_cached(&format!(
            "SELECT coalesce(max(n), 0), count(*), json_group_array(json(row)) FILTER (WHERE row IS NOT NULL) FROM ({rows})"
        ))?
        .query_row([limit], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok((through, count, (count > 0).then(|| super::without_nul(&rows))))
}

/// Returns the SQL that makes JSON of a run, from `journal_runs j`, `runs r` and `run_tasks t`.
fn run_as_json() -> String {
    let value = |(name, kind)| match (name, kind) {
        ("revision", _) => "'revision', j.number".to_owned(),
        ("name", _) => "'name', t.name".to_owned(),
        ("is_supervised", _) => {
            format!("'is_supervised', json(iif(r.owner <> '{EXTERNAL_OWNER}', 'true', 'false'))")
        }
        (name, "boolean") => format!("'{name}', json(iif(r.{name}, 'true', 'false'))"),
        (name, _) => format!("'{name}', r.{name}"),
    };
    format!("json_object({})", RUN_COLUMNS.map(value).join(", "))
}

/// Returns the SQL that makes JSON of an event, from `run_events e`.
fn event_as_json() -> String {
    let value = |(name, _)| match name {
        "number" => "'number', e.id".to_owned(),
        name => format!("'{name}', e.{name}"),
    };
    format!("json_object({})", EVENT_COLUMNS.map(value).join(", "))
}

/// Records that the database has committed the uploads. A run that changed in the meantime has a new number,
/// so it is published again.
pub(crate) fn mark_published(connection: &Connection, uploads: &RunUploads) -> Result<(), StatementError> {
    let (runs, events) = uploads.last_numbers;
    connection.prepare_cached("DELETE FROM journal_runs WHERE number <= ?1")?.execute(params![runs])?;
    connection
        .prepare_cached("DELETE FROM journal_run_events WHERE number <= ?1")?
        .execute(params![events])?;
    Ok(())
}
