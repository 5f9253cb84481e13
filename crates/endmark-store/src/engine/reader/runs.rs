//! Reads supervised runs and their events.

use rusqlite::{OptionalExtension as _, Row};

use crate::engine::Reader;
use crate::engine::integers::from_sql_integer;
use crate::error::StoreError;
use crate::owner;
use crate::runs::{RunCursor, RunRecord, RunResumeState, StoredRun, StoredRunEvent};

const RUN_COLUMNS: &str =
    "SELECT id, state, reason, agent, command, folder, artifact, template, attempt, max_attempts, process,
  session, model, input_tokens, output_tokens, largest_call_tokens, limit_tokens, context_exhaustion_risk,
  cost_nanodollars, verdict, evidence, findings, started_at, updated_at, ended_at, owner,
  name, asked, seconds, session_input_tokens, session_output_tokens
  FROM runs LEFT JOIN run_tasks ON run_id = id";

impl Reader {
    /// Returns the newest runs, newest first, at most `limit`.
    pub fn runs(&self, limit: u32) -> Result<Vec<StoredRun>, StoreError> {
        self.runs_before(None, limit)
    }

    /// Returns the newest runs after this position, newest first, at most `limit`.
    pub fn runs_before(&self, cursor: Option<&RunCursor>, limit: u32) -> Result<Vec<StoredRun>, StoreError> {
        let (started_at, id) = (cursor.map(|cursor| &cursor.started_at), cursor.map(|cursor| &cursor.id));
        let end = "?1 IS NULL OR (started_at, id) < (?1, ?2) ORDER BY started_at DESC, id DESC LIMIT ?3";
        self.runs_where(end, &[&started_at, &id, &limit])
    }

    /// Returns the name of the instance to which this journal belongs, or an empty text if the file is not a
    /// journal.
    pub(crate) fn instance(&self) -> Result<String, StoreError> {
        let read =
            || self.connection.query_row("SELECT instance FROM journal", [], |row| row.get(0)).optional();
        read().map(Option::unwrap_or_default).map_err(|error| self.store_error(&error))
    }

    pub(super) fn runs_where(
        &self,
        end: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<StoredRun>, StoreError> {
        let read = || {
            self.connection
                .prepare(&format!("{RUN_COLUMNS} WHERE {end}"))?
                .query_map(values, |row| self.read_run(row))?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns one run by its id, or by a unique prefix of it.
    pub fn run(&self, id: &str) -> Result<Option<StoredRun>, StoreError> {
        let read = || {
            let of = |end: &str| format!("{RUN_COLUMNS} WHERE {end}");
            let exact =
                self.connection.query_row(&of("id = ?1"), [id], |row| self.read_run(row)).optional()?;
            if exact.is_some() || id.is_empty() {
                return Ok(exact);
            }
            let mut found = self
                .connection
                .prepare(&of("substr(id, 1, length(?1)) = ?1 LIMIT 2"))?
                .query_map([id], |row| self.read_run(row))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(if found.len() == 1 { found.pop() } else { None })
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns at most `limit` events after this number, in order, of one run or of all runs.
    pub fn run_events(
        &self,
        run_id: Option<&str>,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredRunEvent>, StoreError> {
        let read = || {
            self.connection
                .prepare(
                    "SELECT id, run_id, at, name, attempt, state, reason, message FROM run_events
                     WHERE id > ?1 AND (?2 IS NULL OR run_id = ?2) ORDER BY id LIMIT ?3",
                )?
                .query_map((after, run_id, limit), read_event)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }

    /// Returns the number of the newest event, or 0 without events.
    pub fn newest_run_event(&self) -> Result<i64, StoreError> {
        let newest =
            self.connection.query_row("SELECT coalesce(max(id), 0) FROM run_events", [], |row| row.get(0));
        newest.map_err(|error| self.store_error(&error))
    }

    fn read_run(&self, row: &Row<'_>) -> rusqlite::Result<StoredRun> {
        let count = |index| row.get::<_, Option<i64>>(index).map(|value| value.map(from_sql_integer));
        let ended_at: Option<String> = row.get(24)?;
        let owner: String = row.get(25)?;
        Ok(StoredRun {
            run: RunRecord {
                id: row.get(0)?,
                state: row.get(1)?,
                reason: row.get(2)?,
                agent: row.get(3)?,
                command: row.get(4)?,
                folder: row.get(5)?,
                artifact: row.get(6)?,
                template: row.get(7)?,
                attempt: row.get(8)?,
                max_attempts: row.get(9)?,
                process: row.get(10)?,
                session: row.get(11)?,
                model: row.get(12)?,
                input_tokens: from_sql_integer(row.get(13)?),
                output_tokens: from_sql_integer(row.get(14)?),
                largest_call_tokens: count(15)?,
                limit_tokens: count(16)?,
                context_exhaustion_risk: row.get(17)?,
                cost_nanodollars: count(18)?,
                verdict: row.get(19)?,
                evidence: row.get(20)?,
                findings: count(21)?,
                name: row.get(26)?,
                task: match row.get(27)? {
                    Some(asked) => Some(RunResumeState {
                        prompt_text: asked,
                        seconds: from_sql_integer(row.get(28)?),
                        session_input_tokens: from_sql_integer(row.get(29)?),
                        session_output_tokens: from_sql_integer(row.get(30)?),
                    }),
                    None => None,
                },
            },
            is_supervised: ended_at.is_none() && owner::is_alive(&self.path, &owner),
            started_at: row.get(22)?,
            updated_at: row.get(23)?,
            ended_at,
            machine: None,
        })
    }
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<StoredRunEvent> {
    Ok(StoredRunEvent {
        id: row.get(0)?,
        run_id: row.get(1)?,
        occurred_at: row.get(2)?,
        name: row.get(3)?,
        attempt: row.get(4)?,
        state: row.get(5)?,
        reason: row.get(6)?,
        message: row.get(7)?,
    })
}
