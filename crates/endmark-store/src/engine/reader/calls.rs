//! Reads the calls of requests.

use rusqlite::Row;

use crate::calls::{Billing, TokenEstimate, Tokens, UsageRow};
use crate::engine::Reader;
use crate::engine::integers::from_sql_integer;
use crate::error::StoreError;

/// Selects the columns of a call. The `usage` table and then [`EXTRA_TABLE_JOINS`] are appended.
pub(crate) const SELECT_USAGE: &str = "SELECT request_id, call, purpose, session, credential, upstream, format, model, answered_model,
  streamed, mode, started_at, ended_at, http_status, ending, stop, verdict, cut_kind, prompt_tokens, output_tokens,
  cached_tokens, reasoning_tokens, total_tokens, sent_bytes, received_bytes, first_byte_ms, total_ms, w.tokens,
  w.tokens_1h, t.prompt, t.output, b.tier, b.prompt_audio, b.cached_audio, b.completion_audio, b.web_searches FROM ";

/// Joins the tables that contain further columns of a call.
pub(crate) const EXTRA_TABLE_JOINS: &str = " LEFT JOIN usage_cache_writes w USING (request_id, call)
  LEFT JOIN usage_estimates t USING (request_id, call)
  LEFT JOIN usage_billing b USING (request_id, call)";

impl Reader {
    /// Returns the upstream calls of a request, in the order in which they were made.
    pub fn request_calls(&self, request_id: &str) -> Result<Vec<UsageRow>, StoreError> {
        self.calls(
            &format!("{SELECT_USAGE} usage {EXTRA_TABLE_JOINS} WHERE request_id = ?1 ORDER BY call"),
            &[&request_id],
        )
    }

    /// Returns a client's upstream calls that began at or after `since` (UTC), oldest first. Skips the first
    /// `but_for` calls.
    pub fn client_calls(
        &self,
        identity: &str,
        since: &str,
        but_for: u32,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let sql = format!(
            "{SELECT_USAGE} usage {EXTRA_TABLE_JOINS} WHERE started_at >= ?1 AND credential = ?2 ORDER BY started_at, request_id, call LIMIT -1 OFFSET ?3"
        );
        self.calls(&sql, &[&since, &identity, &but_for])
    }

    /// Returns the newest upstream calls, newest first, at most `limit`.
    pub fn recent_calls(&self, limit: u32) -> Result<Vec<UsageRow>, StoreError> {
        self.calls(
            &format!(
                "{SELECT_USAGE} usage {EXTRA_TABLE_JOINS} ORDER BY started_at DESC, request_id DESC, call DESC LIMIT ?1"
            ),
            &[&limit],
        )
    }

    /// Returns calls that began at or after `since` and before `until`, and whose price cannot be derived from token
    /// sums. If a session is given, returns only its calls.
    pub fn separately_billed_calls(
        &self,
        session: Option<&str>,
        since: &str,
        until: &str,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let sql = format!(
            "{SELECT_USAGE} (SELECT usage.* FROM usage_billing n CROSS JOIN usage
               ON usage.request_id = n.request_id AND usage.call = n.call
               WHERE usage.started_at >= ?1 AND usage.started_at < ?2 AND usage.session = coalesce(?3, usage.session)) {EXTRA_TABLE_JOINS}"
        );
        self.calls(&sql, &[&since, &until, &session])
    }

    /// Returns the time `seconds` ago by the store's clock, in the store's format.
    pub fn time_before(&self, seconds: u64) -> Result<String, StoreError> {
        let span = i64::try_from(seconds).unwrap_or(i64::MAX);
        let read = self.connection().query_row(
            "SELECT coalesce(datetime('now', '-' || ?1 || ' seconds'), '0000-01-01 00:00:00')",
            [span],
            |row| row.get(0),
        );
        read.map_err(|error| self.store_error(&error))
    }

    fn calls(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<UsageRow>, StoreError> {
        let read = || {
            self.connection()
                .prepare(sql)?
                .query_map(values, read_usage_row)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store_error(&error))
    }
}

pub(crate) fn read_usage_row(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    let count = |column: usize| row.get::<_, Option<i64>>(column).map(|count| count.map(from_sql_integer));
    Ok(UsageRow {
        request_id: row.get(0)?,
        call: row.get(1)?,
        purpose: row.get(2)?,
        session: row.get(3)?,
        credential: row.get(4)?,
        upstream: row.get(5)?,
        format: row.get(6)?,
        model: row.get(7)?,
        answered_model: row.get(8)?,
        streamed: row.get(9)?,
        mode: row.get(10)?,
        started_at: row.get(11)?,
        ended_at: row.get(12)?,
        http_status: row.get(13)?,
        ending: row.get(14)?,
        stop: row.get(15)?,
        verdict: row.get(16)?,
        cut_kind: row.get(17)?,
        tokens: Tokens {
            prompt: count(18)?,
            output: count(19)?,
            cached: count(20)?,
            cache_written: count(27)?,
            cache_written_1h: count(28)?,
            reasoning: count(21)?,
            total: count(22)?,
        },
        billing: Billing {
            tier: row.get(31)?,
            prompt_audio: count(32)?.unwrap_or(0),
            cached_audio: count(33)?.unwrap_or(0),
            completion_audio: count(34)?.unwrap_or(0),
            web_searches: count(35)?.unwrap_or(0),
        },
        sent_bytes: from_sql_integer(row.get(23)?),
        received_bytes: count(24)?,
        estimate: count(29)?.zip(count(30)?).map(|(prompt, output)| TokenEstimate { prompt, output }),
        first_byte_ms: row.get(25)?,
        total_ms: row.get(26)?,
    })
}
