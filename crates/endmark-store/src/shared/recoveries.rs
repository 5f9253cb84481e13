//! Statements that record, list and count recoveries of cut replies in the database, without their texts.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row, Transaction};

use super::calls::HOUR_SQL;
use super::sql::{Parameter, SINCE_SQL, UNTIL_SQL, column_definitions, column_names};
use crate::engine::cuts::{CutCounts, OUTCOME_RANKS};
use crate::engine::integers::from_sql_integer;
use crate::engine::journal::recoveries::RECOVERY_COLUMNS;
use crate::engine::{CutPeriod, CutSummary, LogFilter, REPLY_PURPOSES};
use crate::machine::machine_name;
use crate::records::{FinalStatus, OtherGateway, REASON_CLIENT_LIMIT, RecoveryCursor, RecoveryRow};

/// Inserts the recoveries of an instance, given as an array of JSON objects. Keeps existing rows.
pub(super) async fn record(
    transaction: &Transaction<'_>,
    instance: &str,
    recoveries: &str,
) -> Result<(), Error> {
    let (names, columns) = (column_names(&RECOVERY_COLUMNS), column_definitions(&RECOVERY_COLUMNS));
    let sql = format!(
        "INSERT INTO em_recoveries (instance, machine, {names})
         SELECT $2, $3, {names} FROM json_to_recordset($1::text::json) AS r({columns}) ON CONFLICT DO NOTHING"
    );
    let parameters: [Parameter<'_>; 3] =
        [(&recoveries, Type::TEXT), (&instance, Type::TEXT), (&machine_name(), Type::TEXT)];
    transaction.execute_typed(&sql, &parameters).await.map(|_| ())
}

/// Returns the newest recoveries of all instances that match a filter, newest first, at most `limit`.
pub(crate) async fn recent(
    client: &Client,
    own_instance: &str,
    filter: &LogFilter,
    limit: u32,
) -> Result<Vec<RecoveryRow>, Error> {
    let status = filter.final_status.map(FinalStatus::name);
    let limit = i64::from(limit);
    let mut parameters: Vec<Parameter<'_>> = vec![(&limit, Type::INT8)];
    let mut conditions = vec!["true".to_owned()];
    let values = [
        ("request_id", filter.request_id.as_deref()),
        ("final_status", status),
        ("task_id", filter.task_id.as_deref()),
        ("model", filter.model.as_deref()),
        ("provider", filter.provider.as_deref()),
        ("cut_kind", filter.cut_kind.as_deref()),
    ];
    for (column, value) in &values {
        if value.is_some() {
            parameters.push((value, Type::TEXT));
            conditions.push(format!("{column} = ${}", parameters.len()));
        }
    }
    match &filter.before {
        Some(RecoveryCursor::Finished { at, instance, id }) => {
            parameters.extend([(at as _, Type::TEXT), (instance as _, Type::TEXT), (id as _, Type::INT8)]);
            let last = parameters.len();
            conditions.push(format!("(finished_at, instance, id) < (${}, ${}, ${last})", last - 2, last - 1));
        }
        // The preceding page was read while the database failed, so it listed this instance's own rows.
        Some(RecoveryCursor::Row(id)) => {
            parameters.extend([(&own_instance as _, Type::TEXT), (id as _, Type::INT8)]);
            let last = parameters.len();
            conditions.push(format!(
                "(finished_at, instance, id) < (SELECT finished_at, instance, id FROM em_recoveries
                   WHERE instance = ${} AND id = ${last} ORDER BY finished_at DESC LIMIT 1)",
                last - 1
            ));
        }
        None => {}
    }
    let sql = format!(
        "SELECT instance, machine, {} FROM em_recoveries WHERE {} ORDER BY finished_at DESC, instance DESC, id DESC LIMIT $1",
        column_names(&RECOVERY_COLUMNS),
        conditions.join(" AND ")
    );
    let rows = client.query_typed(&sql, &parameters).await?;
    Ok(rows.iter().map(|row| log_row(row, own_instance)).collect())
}

/// Returns the recoveries of these requests, ordered by request and number.
pub(crate) async fn of_requests(
    client: &Client,
    own_instance: &str,
    requests: &[&str],
) -> Result<Vec<RecoveryRow>, Error> {
    let sql = format!(
        "SELECT instance, machine, {} FROM em_recoveries WHERE request_id = ANY($1) ORDER BY request_id, finished_at, id",
        column_names(&RECOVERY_COLUMNS)
    );
    let rows = client.query_typed(&sql, &[(&requests, Type::TEXT_ARRAY)]).await?;
    Ok(rows.iter().map(|row| log_row(row, own_instance)).collect())
}

/// Returns the cut replies of all instances that began in a span: by frequency, and by hour. The outcomes
/// follow the same rules as in [`Reader::cut_replies`](crate::engine::cuts), in PostgreSQL's SQL.
pub(super) async fn cut_replies(
    client: &Client,
    since: &str,
    until: &str,
) -> Result<(Vec<CutSummary>, Vec<CutPeriod>), Error> {
    let amount = |reported: &str, estimated: &str| {
        format!("least(coalesce({reported}, {estimated}, 0), {})", super::usage::MAX_COUNTED_TOKENS)
    };
    let sql = format!(
        "SELECT upstream, model, kind, hour, rank, count(*), sum(tokens)::bigint, sum(estimated)::bigint FROM (
           SELECT upstream, model, coalesce(cut_kind, '') AS kind, {HOUR_SQL} AS hour,
             (SELECT max({OUTCOME_RANKS}) FROM em_recoveries r WHERE r.request_id = u.request_id) AS rank,
             {} + {} AS tokens, (prompt_tokens IS NULL OR output_tokens IS NULL)::int AS estimated
           FROM em_usage u WHERE verdict = 'cut' AND purpose = ANY($4)
             AND started_at >= {} AND started_at < {}) AS cut
         GROUP BY upstream, model, kind, hour, rank",
        amount("prompt_tokens", "estimated_prompt"),
        amount("output_tokens", "estimated_output"),
        SINCE_SQL,
        UNTIL_SQL,
        OUTCOME_RANKS = OUTCOME_RANKS.replace("?1", "$3"),
    );
    let parameters: [Parameter<'_>; 4] = [
        (&since, Type::TEXT),
        (&until, Type::TEXT),
        (&REASON_CLIENT_LIMIT, Type::TEXT),
        (&REPLY_PURPOSES.as_slice(), Type::TEXT_ARRAY),
    ];
    let mut cuts = CutCounts::default();
    for row in client.query_typed(&sql, &parameters).await? {
        let rank = row.get::<_, Option<i32>>(4).and_then(|rank| usize::try_from(rank).ok());
        let counts = [5, 6, 7].map(|column| from_sql_integer(row.get(column)));
        cuts.add_ranked([0, 1, 2].map(|column| row.get(column)), rank, row.get(3), counts);
    }
    Ok(cuts.into_summaries())
}

fn log_row(row: &Row, own_instance: &str) -> RecoveryRow {
    let instance: String = row.get(0);
    let other = || OtherGateway {
        instance: instance.clone(),
        machine: row.get(1),
        pieces: from_sql_integer(row.get(20)),
    };
    RecoveryRow {
        other_gateway: (instance != own_instance).then(other),
        request_id: row.get(2),
        id: row.get(3),
        timestamp: row.get(4),
        task_id: row.get(5),
        turn_number: row.get(6),
        truncation_index: row.get(7),
        initial_chunk_length: row.get(8),
        resume_attempts: row.get(9),
        final_status: FinalStatus::parse(row.get(10)).unwrap_or(FinalStatus::Exhausted),
        slot: row.get(11),
        model: row.get(12),
        provider: row.get(13),
        cut_kind: row.get(14),
        outcome: row.get(15),
        seam_style: row.get(16),
        extra_prompt_tokens: row.get(17),
        extra_output_tokens: row.get(18),
        reason: row.get(19),
    }
}
