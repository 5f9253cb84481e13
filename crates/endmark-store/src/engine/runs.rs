//! SQL statements that write supervised runs, mark runs whose supervisor is gone, and delete old runs.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::engine::StatementError;
use crate::engine::integers::to_sql_integer;
use crate::owner;
use crate::runs::{RunEventRecord, RunRecord, RunResumeState};

/// State, reason, event name and message of a run whose supervisor died.
const LOST_RUN: (&str, &str, &str, &str) = (
    "failed",
    "SUPERVISOR_LOST",
    "agent_run.failed",
    "the supervisor was killed; its agent was ended with it, and the artifact is as it was left",
);

/// Writes the state of a run and its events.
pub(crate) fn write(
    connection: &Connection,
    owner: &str,
    run: &RunRecord,
    events: &[RunEventRecord],
) -> Result<(), StatementError> {
    let is_over = matches!(run.state.as_str(), "succeeded" | "released" | "failed");
    connection
        .prepare_cached(
            "INSERT INTO runs (id, owner, state, reason, agent, command, folder, artifact, template, attempt, max_attempts,
               process, session, model, input_tokens, output_tokens, largest_call_tokens, limit_tokens,
               context_exhaustion_risk, cost_nanodollars, verdict, evidence, findings, updated_at, ended_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
               ?22, ?23, strftime('%Y-%m-%d %H:%M:%f', 'now'),
               CASE WHEN ?24 THEN strftime('%Y-%m-%d %H:%M:%f', 'now') END)
             ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, state = excluded.state, reason = excluded.reason,
               agent = excluded.agent, command = excluded.command, folder = excluded.folder, artifact = excluded.artifact,
               template = excluded.template, attempt = excluded.attempt, max_attempts = excluded.max_attempts,
               process = excluded.process, session = excluded.session,
               model = excluded.model, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
               largest_call_tokens = excluded.largest_call_tokens, limit_tokens = excluded.limit_tokens,
               context_exhaustion_risk = excluded.context_exhaustion_risk,
               cost_nanodollars = excluded.cost_nanodollars, verdict = excluded.verdict,
               evidence = excluded.evidence, findings = excluded.findings, updated_at = excluded.updated_at,
               ended_at = excluded.ended_at",
        )?
        .execute(params![
            run.id,
            owner,
            run.state,
            run.reason,
            run.agent,
            run.command,
            run.folder,
            run.artifact,
            run.template,
            run.attempt,
            run.max_attempts,
            run.process,
            run.session,
            run.model,
            to_sql_integer(run.input_tokens),
            to_sql_integer(run.output_tokens),
            run.largest_call_tokens.map(to_sql_integer),
            run.limit_tokens.map(to_sql_integer),
            run.context_exhaustion_risk,
            run.cost_nanodollars.map(to_sql_integer),
            run.verdict,
            run.evidence,
            run.findings.map(to_sql_integer),
            is_over,
        ])?;
    if run.task.is_some() || run.name.is_some() {
        let task = run.task.as_ref();
        let of_task = |count: fn(&RunResumeState) -> u64| task.map_or(0, |task| to_sql_integer(count(task)));
        connection
            .prepare_cached(
                "INSERT INTO run_tasks (run_id, name, asked, seconds, session_input_tokens, session_output_tokens)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (run_id) DO UPDATE SET name = excluded.name, seconds = excluded.seconds,
                   session_input_tokens = excluded.session_input_tokens,
                   session_output_tokens = excluded.session_output_tokens",
            )?
            .execute(params![
                run.id,
                run.name,
                task.map(|task| &task.prompt_text),
                of_task(|task| task.seconds),
                of_task(|task| task.session_input_tokens),
                of_task(|task| task.session_output_tokens),
            ])?;
    }
    for event in events {
        connection
            .prepare_cached(
                "INSERT INTO run_events (run_id, name, attempt, state, reason, message)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![run.id, event.name, run.attempt, run.state, run.reason, event.message])?;
    }
    Ok(())
}

/// Marks every run whose supervisor is dead, and returns their number. The caller holds the database's write lock.
pub(crate) fn mark_lost(connection: &Connection, database: &Path) -> rusqlite::Result<usize> {
    let (state, reason, name, message) = LOST_RUN;
    let open = "state NOT IN ('succeeded', 'released', 'failed')";
    let owners: Vec<String> = connection
        .prepare(&format!("SELECT DISTINCT owner FROM runs WHERE {open}"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut lost = 0;
    for owner in owners.iter().filter(|owner| !owner::is_alive(database, owner)) {
        connection.execute(
            &format!(
                "INSERT INTO run_events (run_id, name, attempt, state, reason, message)
                 SELECT id, ?2, attempt, ?3, ?4, ?5 FROM runs WHERE owner = ?1 AND {open}"
            ),
            params![owner, name, state, reason, message],
        )?;
        lost += connection.execute(
            &format!(
                "UPDATE runs SET state = ?2, reason = ?3, process = NULL,
                   updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), ended_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
                 WHERE owner = ?1 AND {open}"
            ),
            params![owner, state, reason],
        )?;
    }
    Ok(lost)
}

/// Makes this owner the supervisor of a lost run. Returns `false` if the run is not lost.
pub(crate) fn take_over(connection: &Connection, owner: &str, id: &str) -> Result<bool, StatementError> {
    let (state, reason, ..) = LOST_RUN;
    let taken = connection.execute(
        "UPDATE runs SET owner = ?1, state = 'queued', reason = NULL, ended_at = NULL,
           updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
         WHERE id = ?2 AND state = ?3 AND reason = ?4",
        params![owner, id, state, reason],
    )?;
    Ok(taken == 1)
}

/// Deletes runs that ended more than `keep_days` days ago, with their events. Returns their number.
pub(crate) fn delete_old(connection: &Connection, keep_days: u32) -> Result<u64, StatementError> {
    let forgotten = connection
        .execute("DELETE FROM runs WHERE ended_at < datetime('now', '-' || ?1 || ' days')", [keep_days])?;
    Ok(forgotten as u64)
}
