//! Summarises the ledger over a span of time: the number of cut replies, their outcomes and their costs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::CountedCalls;
use crate::calls::UsageRow;
use crate::counted::CallSums;
use crate::engine::Reader;
use crate::engine::sums::{Dimension, Grain};
use crate::error::StoreError;

/// Summary of the requests of one day, upstream and model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSummary {
    /// The day, as `YYYY-MM-DD` in UTC.
    pub day: String,
    /// The upstream of the replies.
    pub upstream: String,
    /// The requested model.
    pub model: String,
    /// Upstream calls for replies, including failed attempts.
    pub calls: u64,
    /// Replies with a verdict.
    pub judged: u64,
    /// Replies among these that were cut.
    pub cut: u64,
    /// Calls that ended without a reply to judge: refused, lost or cancelled.
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
    /// The upstream of the cut reply.
    pub upstream: String,
    /// The model.
    pub model: String,
    /// The kind of cut (PC-8).
    pub kind: String,
    /// The outcome: `resumed`, `restarted`, `corrected`, `cut` (not recovered), `exhausted`, `cancelled` or
    /// `interrupted`.
    pub outcome: String,
    /// Number of replies.
    pub replies: u64,
    /// Tokens that one continuation of each reply would resend: the prompt and the received part of the reply.
    pub resent_tokens: u64,
    /// How many of these replies have estimated token counts.
    pub estimated: u64,
    /// How many of the replies that stayed cut reached a limit that their client set.
    pub at_own_limit: u64,
}

/// Cut replies of one hour or day and one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutPeriod {
    /// The hour, as `YYYY-MM-DD HH` in UTC. For a day that ended at least a day ago, the day as `YYYY-MM-DD`.
    pub period: String,
    /// See [`CutSummary::outcome`].
    pub outcome: String,
    /// Number of replies.
    pub replies: u64,
}

/// The data of a report about cuts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageReport {
    /// Summaries by day, upstream and model, in that order.
    pub days: Vec<UsageSummary>,
    /// Cut replies by upstream, model, kind and outcome.
    pub cuts: Vec<CutSummary>,
    /// The same replies by period and outcome, in that order.
    pub cut_periods: Vec<CutPeriod>,
    /// Total number of requests.
    pub requests: u64,
    /// Recovery calls whose price cannot be derived from token sums.
    pub recoveries_billed_apart: Vec<UsageRow>,
}

/// A timestamp that sorts after every row.
const END_OF_TIME: &str = "9999-12-31 23:59:59";

/// The purposes of calls that request a reply.
pub(crate) const REPLY_PURPOSES: [&str; 5] = ["reply", "retry", "fallback", "closing", "read"];
/// The purposes of calls that recover a reply.
const RECOVERY_PURPOSES: [&str; 2] = ["resume", "correction"];

impl Reader {
    /// Returns the ledger's data for the last `seconds` seconds. The sums of calls that recovered replies are
    /// passed to `of_recovery`.
    pub fn usage_since(
        &self,
        seconds: u64,
        of_recovery: impl FnMut(&CountedCalls<'_>),
    ) -> Result<UsageReport, StoreError> {
        let from = self.exactly_before(seconds)?;
        self.usage_between(&from, END_OF_TIME, of_recovery)
    }

    /// Returns the ledger's data for the span of equal length that precedes the last `seconds` seconds.
    pub fn usage_before(
        &self,
        seconds: u64,
        of_recovery: impl FnMut(&CountedCalls<'_>),
    ) -> Result<UsageReport, StoreError> {
        let (from, until) = (self.exactly_before(seconds.saturating_mul(2))?, self.exactly_before(seconds)?);
        self.usage_between(&from, &until, of_recovery)
    }

    /// Returns the time `seconds` seconds ago, with milliseconds.
    fn exactly_before(&self, seconds: u64) -> Result<String, StoreError> {
        // SQLite's calendar begins with the year 0.
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).min(60_000_000_000);
        let read = self.connection().query_row(
            "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || ?1 || ' seconds')",
            [seconds],
            |row| row.get(0),
        );
        read.map_err(|error| self.store_error(&error))
    }

    fn usage_between(
        &self,
        from: &str,
        until: &str,
        mut of_recovery: impl FnMut(&CountedCalls<'_>),
    ) -> Result<UsageReport, StoreError> {
        let (cuts, cut_periods) = self.cut_replies(from, until).map_err(|error| self.store_error(&error))?;
        let mut parts = ReportParts::default();
        self.sums((Dimension::Nothing, None), from, until, |summed| parts.add(summed, &mut of_recovery))?;
        let billed_apart = self.separately_billed_calls(None, from, until)?;
        Ok(parts.finish(cuts, cut_periods, billed_apart))
    }
}

/// A report while sums of calls are added.
#[derive(Default)]
pub(crate) struct ReportParts {
    days: BTreeMap<Day, CallSums>,
    requests: u64,
}

impl ReportParts {
    /// Adds sums of calls. Those of calls that recovered replies are passed on.
    pub(crate) fn add(&mut self, summed: &CountedCalls<'_>, of_recovery: &mut impl FnMut(&CountedCalls<'_>)) {
        let CountedCalls { sample_time: at, class, sums, .. } = summed;
        self.requests += sums.requests;
        if REPLY_PURPOSES.contains(&class.purpose.as_str()) {
            let day = Grain::Day.period_of(at).to_owned();
            let place = (Reverse(day), class.upstream.clone(), class.model.clone());
            let day = self.days.entry(place).or_default();
            *day = day.plus(sums);
        } else if RECOVERY_PURPOSES.contains(&class.purpose.as_str()) {
            of_recovery(summed);
        }
    }

    /// Returns the report, with cut replies and calls whose price cannot be derived from sums of tokens.
    pub(crate) fn finish(
        self,
        cuts: Vec<CutSummary>,
        cut_periods: Vec<CutPeriod>,
        mut billed_apart: Vec<UsageRow>,
    ) -> UsageReport {
        billed_apart.retain(|call| RECOVERY_PURPOSES.contains(&call.purpose.as_str()));
        UsageReport {
            days: self.days.into_iter().map(day).collect(),
            cuts,
            cut_periods,
            requests: self.requests,
            recoveries_billed_apart: billed_apart,
        }
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
