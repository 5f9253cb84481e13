//! Statements that read rows of calls in the database one by one.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::sql::{Parameter, SINCE_SQL};
use crate::calls::{Billing, TokenEstimate, Tokens, UsageRow};
use crate::engine::integers::from_sql_integer;

/// Maximum number of sessions in a list.
const MAX_SESSIONS: u32 = 50;

/// Returns the SQL that formats a time as in the files of the instances.
pub(super) fn time_sql(column: &str) -> String {
    format!("to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')")
}

/// SQL for the hour in which a call began.
pub(super) const HOUR_SQL: &str = "to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24')";

/// Reads the calls that the end of a statement selects.
pub(super) async fn select_calls(
    client: &Client,
    end: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<UsageRow>, Error> {
    let sql = format!(
        "SELECT request_id, call, purpose, session, credential, upstream, format, model, answered_model, streamed, mode,
           {}, {}, http_status, ending, stop, verdict, cut_kind,
           prompt_tokens, output_tokens, cached_tokens, cache_written_tokens, cache_written_1h_tokens, reasoning_tokens,
           total_tokens, tier, prompt_audio_tokens, cached_audio_tokens, output_audio_tokens, web_searches, sent_bytes,
           received_bytes, estimated_prompt, estimated_output, first_byte_ms, total_ms
         FROM em_usage {end}",
        time_sql("started_at"),
        time_sql("ended_at")
    );
    Ok(client.query_typed(&sql, parameters).await?.iter().map(call_of).collect())
}

/// Returns the newest calls of a session, newest first, at most `limit`.
pub(super) async fn of_session(client: &Client, session: &str, limit: u32) -> Result<Vec<UsageRow>, Error> {
    let end = "WHERE session = $1 ORDER BY started_at DESC, request_id DESC, call DESC LIMIT $2";
    select_calls(client, end, &[(&session, Type::TEXT), (&i64::from(limit), Type::INT8)]).await
}

/// Returns the newest calls, newest first, at most `limit`.
pub(super) async fn recent(client: &Client, limit: u32) -> Result<Vec<UsageRow>, Error> {
    let end = "ORDER BY started_at DESC, request_id DESC, call DESC LIMIT $1";
    select_calls(client, end, &[(&i64::from(limit), Type::INT8)]).await
}

/// Returns the calls of these requests, in the order in which they were made.
pub(super) async fn of_requests(client: &Client, ids: &[&str]) -> Result<Vec<UsageRow>, Error> {
    let end = "WHERE request_id = ANY($1) ORDER BY request_id, call";
    select_calls(client, end, &[(&ids, Type::TEXT_ARRAY)]).await
}

/// Returns the newest call of each session that occurs among the newest `requests` requests, newest first.
pub(super) async fn newest_of_sessions(client: &Client, requests: u32) -> Result<Vec<UsageRow>, Error> {
    let key = "started_at, request_id, call";
    let end = format!(
        "WHERE ({key}) IN (
           SELECT {key} FROM (
             SELECT session FROM (
               SELECT session, started_at FROM em_usage WHERE call = 1 ORDER BY started_at DESC LIMIT $1) AS newest
             WHERE session <> '' GROUP BY session ORDER BY max(started_at) DESC LIMIT {MAX_SESSIONS}) AS s
           CROSS JOIN LATERAL (
             SELECT {key} FROM em_usage u WHERE u.session = s.session ORDER BY started_at DESC, request_id DESC, call DESC
             LIMIT 1) AS call)
         ORDER BY started_at DESC, request_id DESC, call DESC"
    );
    select_calls(client, &end, &[(&i64::from(requests), Type::INT8)]).await
}

/// Returns the start time of the oldest call.
pub(super) async fn first(client: &Client) -> Result<Option<String>, Error> {
    let sql = format!("SELECT {} FROM em_usage", time_sql("min(started_at)"));
    Ok(client.query_typed_one(&sql, &[]).await?.get(0))
}

/// Returns the number of judged replies by hour, for calls that began at or after `since`.
pub(super) async fn replies_by_hour(client: &Client, since: &str) -> Result<BTreeMap<String, u64>, Error> {
    let sql = format!(
        "SELECT {HOUR_SQL} AS hour, count(*) FROM em_usage
         WHERE started_at >= {SINCE_SQL} AND verdict IS NOT NULL GROUP BY hour"
    );
    let rows = client.query_typed(&sql, &[(&since, Type::TEXT)]).await?;
    Ok(rows.iter().map(|row| (row.get(0), from_sql_integer(row.get(1)))).collect())
}

fn call_of(row: &Row) -> UsageRow {
    let count = |column: usize| row.get::<_, Option<i64>>(column).map(from_sql_integer);
    let amount = |column: usize| count(column).unwrap_or(0);
    UsageRow {
        request_id: row.get(0),
        call: u32::try_from(row.get::<_, i32>(1)).unwrap_or(0),
        purpose: row.get(2),
        session: row.get(3),
        credential: row.get(4),
        upstream: row.get(5),
        format: row.get(6),
        model: row.get(7),
        answered_model: row.get(8),
        streamed: row.get(9),
        mode: row.get(10),
        started_at: row.get(11),
        ended_at: row.get(12),
        http_status: row.get::<_, Option<i32>>(13).and_then(|status| status.try_into().ok()),
        ending: row.get(14),
        stop: row.get(15),
        verdict: row.get(16),
        cut_kind: row.get(17),
        tokens: Tokens {
            prompt: count(18),
            output: count(19),
            cached: count(20),
            cache_written: count(21),
            cache_written_1h: count(22),
            reasoning: count(23),
            total: count(24),
        },
        billing: Billing {
            tier: row.get(25),
            prompt_audio: amount(26),
            cached_audio: amount(27),
            completion_audio: amount(28),
            web_searches: amount(29),
        },
        sent_bytes: amount(30),
        received_bytes: count(31),
        estimate: count(32).zip(count(33)).map(|(prompt, output)| TokenEstimate { prompt, output }),
        first_byte_ms: row.get(34),
        total_ms: row.get(35),
    }
}
