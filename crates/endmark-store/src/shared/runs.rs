//! Publishes, lists and deletes supervised runs in the database.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, GenericClient, Row};

use super::sql::{Parameter, column_definitions, column_names};
use crate::engine::integers::from_sql_integer;
use crate::engine::journal::runs::{EVENT_COLUMNS, RUN_COLUMNS, RunUploads};
use crate::engine::outputs::{SECONDS_PER_DAY, unix_seconds};
use crate::engine::utc;
use crate::runs::{RunCursor, RunMachine, RunRecord, StoredRun, StoredRunEvent};

/// A supervised run counts as silent if its machine has not reported it for this time.
const SILENT_SECONDS: i64 = 60;

/// Publishes runs and events in one transaction, and reports all supervised runs as alive. The transaction
/// can be repeated, because an older state of a run never replaces a newer one.
pub(crate) async fn publish(
    client: &mut Client,
    instance: &str,
    machine: &str,
    uploads: &RunUploads,
) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    if let Some(runs) = &uploads.runs {
        let (names, columns) = (column_names(&RUN_COLUMNS), column_definitions(&RUN_COLUMNS));
        let changes = RUN_COLUMNS.iter().skip(1).map(|(name, _)| format!("{name} = excluded.{name}"));
        let sql = format!(
            "INSERT INTO em_runs (instance, machine, reported_at, {names})
             SELECT $2, $3, extract(epoch FROM clock_timestamp())::bigint, {names}
             FROM json_to_recordset($1::text::json) AS r({columns})
             ON CONFLICT (instance, id) DO UPDATE SET machine = excluded.machine, reported_at = excluded.reported_at, {}
             WHERE em_runs.revision < excluded.revision",
            changes.collect::<Vec<_>>().join(", ")
        );
        let parameters: [Parameter<'_>; 3] =
            [(runs, Type::TEXT), (&instance, Type::TEXT), (&machine, Type::TEXT)];
        transaction.execute_typed(&sql, &parameters).await?;
    }
    if let Some(events) = &uploads.events {
        let (names, columns) = (column_names(&EVENT_COLUMNS), column_definitions(&EVENT_COLUMNS));
        let sql = format!(
            "INSERT INTO em_run_events (instance, {names})
             SELECT $2, {names} FROM json_to_recordset($1::text::json) AS r({columns}) ON CONFLICT DO NOTHING"
        );
        transaction.execute_typed(&sql, &[(events, Type::TEXT), (&instance, Type::TEXT)]).await?;
    }
    if !uploads.supervised_ids.is_empty() {
        let sql = "UPDATE em_runs SET reported_at = extract(epoch FROM clock_timestamp())::bigint
                   WHERE instance = $1 AND id = ANY($2)";
        let parameters: [Parameter<'_>; 2] =
            [(&instance, Type::TEXT), (&uploads.supervised_ids, Type::TEXT_ARRAY)];
        transaction.execute_typed(sql, &parameters).await?;
    }
    transaction.commit().await
}

/// Returns the newest runs of all other instances, newest first, at most `limit`.
pub(crate) async fn query_other_runs(
    client: &Client,
    own_instance: &str,
    before: Option<&RunCursor>,
    limit: u32,
) -> Result<Vec<StoredRun>, Error> {
    let sql = format!(
        "{} WHERE instance <> $1 AND ($2::text IS NULL OR (started_at, id) < ($2, $3))
         ORDER BY started_at DESC, id DESC LIMIT $4",
        column_list()
    );
    let (started_at, id) = (before.map(|cursor| &cursor.started_at), before.map(|cursor| &cursor.id));
    let parameters: [Parameter<'_>; 4] = [
        (&own_instance, Type::TEXT),
        (&started_at, Type::TEXT),
        (&id, Type::TEXT),
        (&i64::from(limit), Type::INT8),
    ];
    Ok(client.query_typed(&sql, &parameters).await?.iter().map(run_of).collect())
}

/// Returns one run of another instance by its id or a unique prefix of it, with at most `max_events` events.
pub(crate) async fn find_run(
    client: &Client,
    own_instance: &str,
    id: &str,
    max_events: u32,
) -> Result<Option<(StoredRun, Vec<StoredRunEvent>)>, Error> {
    let sql = format!(
        "{} WHERE instance <> $1 AND left(id, length($2)) = $2 ORDER BY id <> $2, id LIMIT 2",
        column_list()
    );
    let rows = client.query_typed(&sql, &[(&own_instance, Type::TEXT), (&id, Type::TEXT)]).await?;
    let mut found: Vec<StoredRun> = rows.iter().map(run_of).collect();
    let exact = found.iter().filter(|found| found.run.id == id).count();
    if exact != 1 && found.len() != 1 {
        return Ok(None);
    }
    let run = found.swap_remove(0);
    let instance = run.machine.as_ref().map(|machine| machine.instance.as_str()).unwrap_or_default();
    let events = query_events(client, instance, &run.run.id, max_events).await?;
    Ok(Some((run, events)))
}

async fn query_events(
    client: &impl GenericClient,
    instance: &str,
    run_id: &str,
    limit: u32,
) -> Result<Vec<StoredRunEvent>, Error> {
    let sql = format!(
        "SELECT {} FROM em_run_events WHERE instance = $1 AND run_id = $2 ORDER BY number LIMIT $3",
        column_names(&EVENT_COLUMNS)
    );
    let parameters: [Parameter<'_>; 3] =
        [(&instance, Type::TEXT), (&run_id, Type::TEXT), (&i64::from(limit), Type::INT8)];
    let rows = client.query_typed(&sql, &parameters).await?;
    let event = |row: &Row| StoredRunEvent {
        run_id: row.get(0),
        id: row.get(1),
        occurred_at: row.get(2),
        name: row.get(3),
        attempt: number(row.get(4)),
        state: row.get(5),
        reason: row.get(6),
        message: row.get(7),
    };
    Ok(rows.iter().map(event).collect())
}

/// Deletes runs that no machine has reported for `keep_days` days, with their events.
pub(crate) async fn delete_old(client: &Client, keep_days: u32) -> Result<(), Error> {
    let before = unix_seconds().saturating_sub(i64::from(keep_days).saturating_mul(SECONDS_PER_DAY));
    let of_runs = "DELETE FROM em_run_events WHERE (instance, run_id) IN (SELECT instance, id FROM em_runs WHERE reported_at < $1)";
    for sql in [of_runs, "DELETE FROM em_runs WHERE reported_at < $1"] {
        client.execute_typed(sql, &[(&before, Type::INT8)]).await?;
    }
    Ok(())
}

/// Returns the columns that [`run_of`] reads.
fn column_list() -> String {
    format!(
        "SELECT {}, instance, machine, reported_at,
           ended_at IS NULL AND is_supervised
             AND reported_at < extract(epoch FROM clock_timestamp())::bigint - {SILENT_SECONDS}
         FROM em_runs",
        column_names(&RUN_COLUMNS)
    )
}

fn run_of(row: &Row) -> StoredRun {
    let count = |column: usize| row.get::<_, Option<i64>>(column).map(from_sql_integer);
    let amount = |column: usize| from_sql_integer(row.get(column));
    let ended_at: Option<String> = row.get(27);
    let is_silent: bool = row.get(31);
    let reported_at = utc(amount(30).saturating_mul(1_000));
    StoredRun {
        is_supervised: ended_at.is_none() && !is_silent,
        machine: Some(RunMachine {
            instance: row.get(28),
            name: row.get(29),
            last_known_at: is_silent.then_some(reported_at),
        }),
        run: RunRecord {
            id: row.get(0),
            state: row.get(3),
            reason: row.get(4),
            agent: row.get(5),
            command: row.get(6),
            folder: row.get(7),
            artifact: row.get(8),
            template: row.get(9),
            attempt: number(row.get(10)),
            max_attempts: number(row.get(11)),
            process: row.get::<_, Option<i64>>(12).map(number),
            session: row.get(13),
            model: row.get(14),
            input_tokens: amount(15),
            output_tokens: amount(16),
            largest_call_tokens: count(17),
            limit_tokens: count(18),
            context_exhaustion_risk: row.get(19),
            cost_nanodollars: count(20),
            verdict: row.get(21),
            evidence: row.get(22),
            findings: count(23),
            name: row.get(24),
            // Only the machine that supervised a run can resume it.
            task: None,
        },
        started_at: row.get(25),
        updated_at: row.get(26),
        ended_at,
    }
}

fn number(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
