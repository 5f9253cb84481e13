//! What the ledger says of a span of time: how many replies were cut, what became of them, what that cost.

use rusqlite::{Row, params};

use crate::engine::Reader;
use crate::engine::integers::natural;
use crate::error::StoreError;

/// What is known of the requests of one day, upstream and model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSummary {
    /// The day, as `YYYY-MM-DD` in UTC.
    pub day: String,
    /// The upstream that gave the replies.
    pub upstream: String,
    /// The model that was asked for.
    pub model: String,
    /// Upstream calls for replies, tries in vain included.
    pub calls: u64,
    /// Replies that were looked at.
    pub judged: u64,
    /// Of these, replies that were cut.
    pub cut: u64,
    /// Calls that ended with nothing to look at: refused, lost, cancelled.
    pub without_reply: u64,
    /// Calls whose process was killed.
    pub interrupted: u64,
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Tokens of the replies.
    pub output_tokens: u64,
}

/// Cut replies of one upstream, model, kind of cut and outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutSummary {
    /// The upstream that gave the beginning.
    pub upstream: String,
    /// The model.
    pub model: String,
    /// The kind of cut (PC-8).
    pub kind: String,
    /// What became of it: `resumed`, `corrected`, `cut` (left so), `exhausted`, `cancelled`, `interrupted`.
    pub outcome: String,
    /// How many.
    pub replies: u64,
    /// What one continuation of each would carry again: its prompt and what came of its reply, in tokens.
    pub resent_tokens: u64,
    /// Of these replies, the ones whose tokens were not reported: four bytes count as one token.
    pub estimated: u64,
}

/// What continuations and corrections took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResumeCost {
    /// Calls made.
    pub calls: u64,
    /// Tokens of their prompts, as far as they were reported.
    pub prompt_tokens: u64,
    /// Tokens of their answers.
    pub output_tokens: u64,
    /// Calls that reported no tokens.
    pub unreported: u64,
}

/// Everything a report says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageReport {
    /// By day, upstream and model, in that order.
    pub days: Vec<UsageSummary>,
    /// By upstream, model, kind and outcome.
    pub cuts: Vec<CutSummary>,
    /// What was really spent on recovery.
    pub spent: ResumeCost,
    /// Requests in all.
    pub requests: u64,
}

const DAYS: &str = "SELECT substr(started_at, 1, 10) AS day, upstream, model, count(*), count(verdict),
    count(*) FILTER (WHERE verdict = 'cut'),
    count(*) FILTER (WHERE verdict IS NULL AND ending <> 'interrupted' AND mode <> 'off'),
    count(*) FILTER (WHERE ending = 'interrupted'),
    coalesce(sum(prompt_tokens), 0), coalesce(sum(output_tokens), 0)
  FROM usage WHERE started_at >= ?1 AND purpose IN ('reply', 'retry', 'fallback', 'closing', 'read')
  GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3";

// A reply may have several cut parts: the worst outcome stands for it, as it does for the client.
const CUTS: &str = "SELECT u.upstream, u.model, coalesce(u.cut_kind, ''), coalesce(r.outcome, 'interrupted') AS outcome,
    count(*),
    sum(coalesce(u.prompt_tokens, u.sent_bytes / 4) + coalesce(u.output_tokens, t.text_bytes / 4, u.received_bytes / 4, 0)),
    count(*) FILTER (WHERE u.prompt_tokens IS NULL OR u.output_tokens IS NULL)
  FROM usage u LEFT JOIN (
    SELECT request_id, CASE max(CASE outcome WHEN 'exhausted' THEN 5 WHEN 'cut' THEN 4 WHEN 'interrupted' THEN 3
        WHEN 'cancelled' THEN 2 WHEN 'corrected' THEN 1 ELSE 0 END)
      WHEN 5 THEN 'exhausted' WHEN 4 THEN 'cut' WHEN 3 THEN 'interrupted' WHEN 2 THEN 'cancelled'
      WHEN 1 THEN 'corrected' ELSE 'resumed' END AS outcome
    FROM recoveries GROUP BY request_id) r ON r.request_id = u.request_id
  LEFT JOIN usage_texts t ON t.request_id = u.request_id AND t.call = u.call
  WHERE u.started_at >= ?1 AND u.verdict = 'cut' AND u.purpose IN ('reply', 'retry', 'fallback', 'closing', 'read')
  GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 1, 2, 3, 4";

const SPENT: &str = "SELECT count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(output_tokens), 0),
    count(*) FILTER (WHERE prompt_tokens IS NULL)
  FROM usage WHERE started_at >= ?1 AND purpose IN ('resume', 'correction')";

impl Reader {
    /// What the ledger says of the last `seconds` seconds.
    pub fn usage_since(&self, seconds: u64) -> Result<UsageReport, StoreError> {
        let read = || {
            let connection = self.connection();
            // The furthest SQLite's calendar goes back is the year 0.
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).min(60_000_000_000);
            let from: String = connection.query_row(
                "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || ?1 || ' seconds')",
                [seconds],
                |row| row.get(0),
            )?;
            let days = connection.prepare(DAYS)?.query_map([&from], day)?.collect::<Result<_, _>>()?;
            let cuts = connection.prepare(CUTS)?.query_map([&from], cut)?.collect::<Result<_, _>>()?;
            let spent = connection.query_row(SPENT, [&from], |row| {
                Ok(ResumeCost {
                    calls: natural(row.get(0)?),
                    prompt_tokens: natural(row.get(1)?),
                    output_tokens: natural(row.get(2)?),
                    unreported: natural(row.get(3)?),
                })
            })?;
            let requests = connection.query_row(
                "SELECT count(DISTINCT request_id) FROM usage WHERE started_at >= ?1",
                params![from],
                |row| row.get(0).map(natural),
            )?;
            Ok(UsageReport { days, cuts, spent, requests })
        };
        read().map_err(|error| self.failed(&error))
    }
}

fn day(row: &Row<'_>) -> rusqlite::Result<UsageSummary> {
    Ok(UsageSummary {
        day: row.get(0)?,
        upstream: row.get(1)?,
        model: row.get(2)?,
        calls: natural(row.get(3)?),
        judged: natural(row.get(4)?),
        cut: natural(row.get(5)?),
        without_reply: natural(row.get(6)?),
        interrupted: natural(row.get(7)?),
        prompt_tokens: natural(row.get(8)?),
        output_tokens: natural(row.get(9)?),
    })
}

fn cut(row: &Row<'_>) -> rusqlite::Result<CutSummary> {
    Ok(CutSummary {
        upstream: row.get(0)?,
        model: row.get(1)?,
        kind: row.get(2)?,
        outcome: row.get(3)?,
        replies: natural(row.get(4)?),
        resent_tokens: natural(row.get(5)?),
        estimated: natural(row.get(6)?),
    })
}
