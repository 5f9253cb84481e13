//! What the ledger says of a span of time: how many replies were cut, what became of them, what that cost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Summed;
use crate::calls::UsageRow;
use crate::counted::CallSums;
use crate::engine::Reader;
use crate::engine::integers::natural;
use crate::engine::sums::{Dimension, Grain};
use crate::error::StoreError;
use crate::records::LEFT_BY_OWN_LIMIT;

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
    /// What became of it: `resumed`, `restarted`, `corrected`, `cut` (left so), `exhausted`, `cancelled`, `interrupted`.
    pub outcome: String,
    /// How many.
    pub replies: u64,
    /// What one continuation of each would carry again: its prompt and what came of its reply, in tokens.
    pub resent_tokens: u64,
    /// Of these replies, the ones whose tokens were not reported: four bytes count as one token.
    pub estimated: u64,
    /// Of the replies left cut, the ones that reached the limit which their client set.
    pub at_own_limit: u64,
}

/// Cut replies of one hour and outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutHour {
    /// The hour, as `YYYY-MM-DD HH` in UTC.
    pub hour: String,
    /// See [`CutSummary::outcome`].
    pub outcome: String,
    /// How many.
    pub replies: u64,
}

/// Everything a report says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageReport {
    /// By day, upstream and model, in that order.
    pub days: Vec<UsageSummary>,
    /// By upstream, model, kind and outcome.
    pub cuts: Vec<CutSummary>,
    /// The same replies by hour and outcome, in that order.
    pub cut_hours: Vec<CutHour>,
    /// Requests in all.
    pub requests: u64,
    /// Calls of recoveries with a price that sums of tokens do not tell.
    pub recoveries_billed_apart: Vec<UsageRow>,
}

/// A moment behind every row.
const AFTER_ALL: &str = "9999-12-31 23:59:59";

/// The purposes of calls whose answers are replies.
pub(super) const FOR_REPLIES: [&str; 5] = ["reply", "retry", "fallback", "closing", "read"];
/// The purposes of calls that recover a reply.
const FOR_RECOVERY: [&str; 2] = ["resume", "correction"];

// A reply may have several cut parts: the worst outcome stands for it, as it does for the client. Of which purposes stands
// behind it.
const CUTS: &str = "SELECT u.upstream, u.model, coalesce(u.cut_kind, ''), CASE (
      SELECT max(CASE outcome WHEN 'exhausted' THEN 6 WHEN 'cut' THEN 5 WHEN 'interrupted' THEN 4 WHEN 'cancelled' THEN 3
        WHEN 'restarted' THEN 2 WHEN 'corrected' THEN 1 ELSE 0 END)
      FROM recoveries r WHERE r.request_id = u.request_id)
      WHEN 0 THEN 'resumed' WHEN 1 THEN 'corrected' WHEN 2 THEN 'restarted' WHEN 3 THEN 'cancelled' WHEN 5 THEN 'cut'
      WHEN 6 THEN 'exhausted'
      ELSE 'interrupted' END,
    coalesce(u.prompt_tokens, u.sent_bytes / 4) + coalesce(u.output_tokens,
      (SELECT text_bytes / 4 FROM usage_texts t WHERE t.request_id = u.request_id AND t.call = u.call), u.received_bytes / 4, 0),
    u.prompt_tokens IS NULL OR u.output_tokens IS NULL, substr(u.started_at, 1, 13),
    EXISTS (SELECT 1 FROM recoveries r WHERE r.request_id = u.request_id AND r.outcome = 'cut')
      AND NOT EXISTS (SELECT 1 FROM recoveries r WHERE r.request_id = u.request_id AND r.outcome = 'cut' AND r.reason <> ?3)
  FROM usage u
  WHERE u.started_at >= ?1 AND u.started_at < ?2 AND u.verdict = 'cut' AND u.purpose IN ";

impl Reader {
    /// Returns what the ledger contains of the last `seconds` seconds; the sums of the calls that recovered replies go to
    /// `of_recovery`.
    pub fn usage_since(
        &self,
        seconds: u64,
        of_recovery: impl FnMut(&Summed<'_>),
    ) -> Result<UsageReport, StoreError> {
        let from = self.exactly_before(seconds)?;
        self.usage_between(&from, AFTER_ALL, of_recovery)
    }

    /// Returns what the ledger contains of the span of the same length before the last `seconds` seconds.
    pub fn usage_before(
        &self,
        seconds: u64,
        of_recovery: impl FnMut(&Summed<'_>),
    ) -> Result<UsageReport, StoreError> {
        let (from, until) = (self.exactly_before(seconds.saturating_mul(2))?, self.exactly_before(seconds)?);
        self.usage_between(&from, &until, of_recovery)
    }

    /// Returns the moment `seconds` seconds ago with its milliseconds.
    fn exactly_before(&self, seconds: u64) -> Result<String, StoreError> {
        // The furthest SQLite's calendar goes back is the year 0.
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).min(60_000_000_000);
        let read = self.connection().query_row(
            "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || ?1 || ' seconds')",
            [seconds],
            |row| row.get(0),
        );
        read.map_err(|error| self.failed(&error))
    }

    fn usage_between(
        &self,
        from: &str,
        until: &str,
        mut of_recovery: impl FnMut(&Summed<'_>),
    ) -> Result<UsageReport, StoreError> {
        let (cuts, cut_hours) = self.cuts(from, until).map_err(|error| self.failed(&error))?;
        let (mut days, mut requests) = (BTreeMap::new(), 0);
        self.sums((Dimension::Nothing, None), from, until, |summed| {
            let Summed { at, class, sums, .. } = summed;
            requests += sums.requests;
            if FOR_REPLIES.contains(&class.purpose.as_str()) {
                let day = Grain::Day.of(at).to_owned();
                let place = (Reverse(day), class.upstream.clone(), class.model.clone());
                let day: &mut CallSums = days.entry(place).or_default();
                *day = day.and(sums);
            } else if FOR_RECOVERY.contains(&class.purpose.as_str()) {
                of_recovery(summed);
            }
        })?;
        let mut recoveries_billed_apart = self.calls_billed_apart(None, from, until)?;
        recoveries_billed_apart.retain(|call| FOR_RECOVERY.contains(&call.purpose.as_str()));
        let days = days.into_iter().map(day).collect();
        Ok(UsageReport { days, cuts, cut_hours, requests, recoveries_billed_apart })
    }

    /// Returns the cut replies that began in this span: the most frequent first, and by hour.
    fn cuts(&self, from: &str, until: &str) -> rusqlite::Result<(Vec<CutSummary>, Vec<CutHour>)> {
        let mut cuts: BTreeMap<[String; 4], (u64, u64, u64, u64)> = BTreeMap::new();
        let mut hours: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut statement =
            self.connection().prepare_cached(&format!("{CUTS} ('{}')", FOR_REPLIES.join("', '")))?;
        let mut rows = statement.query((from, until, LEFT_BY_OWN_LIMIT))?;
        while let Some(row) = rows.next()? {
            let outcome: String = row.get(3)?;
            *hours.entry((row.get(6)?, outcome.clone())).or_default() += 1;
            let at_own_limit = outcome == "cut" && row.get(7)?;
            let place = [row.get(0)?, row.get(1)?, row.get(2)?, outcome];
            let (replies, tokens, estimated, own) = cuts.entry(place).or_default();
            *replies += 1;
            *tokens += natural(row.get(4)?);
            *estimated += u64::from(row.get::<_, bool>(5)?);
            *own += u64::from(at_own_limit);
        }
        let mut cuts: Vec<CutSummary> = cuts.into_iter().map(cut).collect();
        cuts.sort_by_key(|cut| Reverse(cut.replies));
        let hours = hours.into_iter().map(|((hour, outcome), replies)| CutHour { hour, outcome, replies });
        Ok((cuts, hours.collect()))
    }
}

type Day = (Reverse<String>, String, String);

fn day(((Reverse(day), upstream, model), sums): (Day, CallSums)) -> UsageSummary {
    UsageSummary {
        day,
        upstream,
        model,
        calls: sums.calls,
        judged: sums.judged,
        cut: sums.cut,
        without_reply: sums.without_reply,
        interrupted: sums.interrupted,
        prompt_tokens: sums.reported_prompt,
        output_tokens: sums.reported_output,
    }
}

fn cut(
    ([upstream, model, kind, outcome], (replies, resent_tokens, estimated, at_own_limit)): (
        [String; 4],
        (u64, u64, u64, u64),
    ),
) -> CutSummary {
    CutSummary { upstream, model, kind, outcome, replies, resent_tokens, estimated, at_own_limit }
}
