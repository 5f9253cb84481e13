//! Summarises the ledger over a span of time: cut replies, their outcomes and their costs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::CountedCalls;
use crate::calls::UsageRow;
use crate::counted::CallSums;
use crate::engine::Reader;
use crate::engine::sums::{Dimension, SumPeriod};
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
    /// Replies that were judged.
    pub judged: u64,
    /// Judged replies that were cut.
    pub cut: u64,
    /// Calls without a reply that could be judged: they were refused, lost or cancelled.
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
    /// Number of these replies with estimated token counts.
    pub estimated: u64,
    /// Number of the replies that stayed cut because of a limit that their client had set.
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
pub struct CutReport {
    /// Summaries by day, upstream and model, in that order.
    pub days: Vec<UsageSummary>,
    /// Cut replies by upstream, model, kind and outcome.
    pub cuts: Vec<CutSummary>,
    /// The same replies by period and outcome, in that order.
    pub cut_periods: Vec<CutPeriod>,
    /// Total number of requests.
    pub requests: u64,
    /// Recovery calls whose price cannot be derived from token sums.
    pub separately_billed_recoveries: Vec<UsageRow>,
}

/// A timestamp that is later than that of any row.
const END_OF_TIME: &str = "9999-12-31 23:59:59";

/// The purposes of calls that request a reply.
pub(crate) const REPLY_PURPOSES: [&str; 5] = ["reply", "retry", "fallback", "closing", "read"];
/// The purposes of calls that recover a reply.
const RECOVERY_PURPOSES: [&str; 2] = ["resume", "correction"];

impl Reader {
    /// Returns the ledger's data for the last `seconds` seconds. Passes the sums of recovery calls to
    /// `of_recovery`.
    pub fn usage_since(
        &self,
        seconds: u64,
        of_recovery: impl FnMut(&CountedCalls<'_>),
    ) -> Result<CutReport, StoreError> {
        let from = self.time_ago(seconds)?;
        self.usage_between(&from, END_OF_TIME, of_recovery)
    }

    /// Returns the ledger's data for the `seconds` seconds before the last `seconds` seconds.
    pub fn usage_of_previous_span(
        &self,
        seconds: u64,
        of_recovery: impl FnMut(&CountedCalls<'_>),
    ) -> Result<CutReport, StoreError> {
        let (from, until) = (self.time_ago(seconds.saturating_mul(2))?, self.time_ago(seconds)?);
        self.usage_between(&from, &until, of_recovery)
    }

    /// Returns the time `seconds` seconds ago, with milliseconds.
    fn time_ago(&self, seconds: u64) -> Result<String, StoreError> {
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
    ) -> Result<CutReport, StoreError> {
        let (cuts, cut_periods) = self.cut_replies(from, until).map_err(|error| self.store_error(&error))?;
        let mut parts = CutReportBuilder::default();
        self.sums((Dimension::Nothing, None), from, until, |summed| parts.add(summed, &mut of_recovery))?;
        let billed_apart = self.separately_billed_calls(None, from, until)?;
        Ok(parts.finish(cuts, cut_periods, billed_apart))
    }
}

/// The parts of a report to which sums of calls are added.
#[derive(Default)]
pub(crate) struct CutReportBuilder {
    days: BTreeMap<DayKey, CallSums>,
    requests: u64,
}

impl CutReportBuilder {
    /// Adds sums of calls. Passes the sums of recovery calls to `of_recovery`.
    pub(crate) fn add(&mut self, summed: &CountedCalls<'_>, of_recovery: &mut impl FnMut(&CountedCalls<'_>)) {
        let CountedCalls { started_at: at, class, sums, .. } = summed;
        self.requests += sums.requests;
        if REPLY_PURPOSES.contains(&class.purpose.as_str()) {
            let day = SumPeriod::Day.period_of(at).to_owned();
            let place = (Reverse(day), class.upstream.clone(), class.model.clone());
            let day = self.days.entry(place).or_default();
            *day = day.plus(sums);
        } else if RECOVERY_PURPOSES.contains(&class.purpose.as_str()) {
            of_recovery(summed);
        }
    }

    /// Returns the report, completed with cut replies and with calls whose price cannot be derived from token
    /// sums.
    pub(crate) fn finish(
        self,
        cuts: Vec<CutSummary>,
        cut_periods: Vec<CutPeriod>,
        mut billed_apart: Vec<UsageRow>,
    ) -> CutReport {
        billed_apart.retain(|call| RECOVERY_PURPOSES.contains(&call.purpose.as_str()));
        CutReport {
            days: self.days.into_iter().map(daily_summary).collect(),
            cuts,
            cut_periods,
            requests: self.requests,
            separately_billed_recoveries: billed_apart,
        }
    }
}

type DayKey = (Reverse<String>, String, String);

fn daily_summary(((Reverse(day), upstream, model), sums): (DayKey, CallSums)) -> UsageSummary {
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
