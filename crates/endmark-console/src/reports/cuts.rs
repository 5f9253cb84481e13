//! Reports the number, kinds and outcomes of cut replies, and the cost of resuming them (PC-9).

use endmark_context::Models;
use endmark_store::{
    CountedCalls, CutPeriod, CutReport, CutSummary, Reader, SharedCutReport, StoreError, UsageSummary,
};
use serde::Serialize;

use super::usage::{Sums, Total, UsageKey};

/// Describes how the cost is estimated.
const ESTIMATE_METHOD: &str = "one continuation for each reply that was left cut: its prompt and what came of the reply are \
sent again, and at most [resume] continuation_tokens come back; tokens that were not reported are estimated";

/// Decimal places of dollar amounts in text. Most continuations cost less than a cent.
const DOLLAR_PLACES: usize = 6;

/// A report about a span of time, from the ledger.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CutsReport<'a> {
    /// The requested time span.
    pub since: &'a str,
    /// The number of all requests.
    pub requests: u64,
    /// Replies that were examined.
    pub replies: u64,
    /// The number of cut replies.
    pub cut: u64,
    /// Calls that did not finish because their process was killed.
    pub interrupted: u64,
    /// Cut replies by upstream, model, kind and outcome.
    pub cuts: Vec<Cut<'a>>,
    /// Replies by day, upstream and model.
    pub days: Vec<DayReport<'a>>,
    /// The actual cost of recovery.
    pub spent: Spent,
    /// The estimated cost of resuming the replies that stayed cut.
    pub would_cost: Estimate,
    /// Whether the records of other gateways that share the database are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub this_gateway_alone: bool,
}

/// Cut replies of one kind and outcome.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cut<'a> {
    pub upstream: &'a str,
    pub model: &'a str,
    pub kind: &'a str,
    /// `resumed`, `restarted`, `corrected`, `cut` (not recovered), `exhausted`, `cancelled` or `interrupted`.
    pub outcome: &'a str,
    pub replies: u64,
    /// How many of the replies that were left cut reached a limit set by their client.
    pub at_own_limit: u64,
}

/// Replies of a day.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DayReport<'a> {
    pub day: &'a str,
    pub upstream: &'a str,
    pub model: &'a str,
    pub calls: u64,
    pub replies: u64,
    pub cut: u64,
    pub without_reply: u64,
    pub prompt_tokens: u64,
    pub output_tokens: u64,
}

/// The cost of recovery. Calls without reported tokens are estimated.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    pub calls: u64,
    pub prompt_tokens: u64,
    pub output_tokens: u64,
    /// Calls for which the upstream reported no tokens.
    pub calls_unreported: u64,
    /// Calls of models without a known price.
    pub unpriced_calls: u64,
    /// Cost in dollars with nine decimal places. Null if a price is missing.
    pub usd: Option<String>,
    /// Cost in dollars of the calls with a known price.
    pub usd_at_least: String,
    /// The cost in dollars, formatted for people.
    #[serde(skip)]
    pub dollars: String,
    #[serde(skip)]
    pub nano_usd: u64,
}

/// The data for a report.
#[derive(Debug)]
pub struct CutData {
    report: CutReport,
    spent: Spent,
    /// Whether the records of other gateways that share the database are missing.
    pub this_gateway_alone: bool,
}

impl CutData {
    /// Reads the data of the last `seconds` seconds, and prices it with these models.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn read(reader: &Reader, seconds: u64, models: &Models) -> Result<Self, StoreError> {
        Self::new(models, |of_recovery| reader.usage_since(seconds, of_recovery))
    }

    /// Reads the preceding span, which has the same length as the last `seconds` seconds.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn read_before(reader: &Reader, seconds: u64, models: &Models) -> Result<Self, StoreError> {
        Self::new(models, |of_recovery| reader.usage_of_previous_span(seconds, of_recovery))
    }

    /// Prices the data of all gateways that share a database.
    pub fn of_all(shared: &SharedCutReport, models: &Models) -> Self {
        Self::priced(models, |of_recovery| shared.report(of_recovery))
    }

    /// Returns the cut replies by period and outcome.
    pub fn cut_periods(&self) -> &[CutPeriod] {
        &self.report.cut_periods
    }

    fn new(
        models: &Models,
        read: impl FnOnce(&mut dyn FnMut(&CountedCalls<'_>)) -> Result<CutReport, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut failure = None;
        let found = Self::priced(models, |of_recovery| {
            read(of_recovery).unwrap_or_else(|error| {
                failure = Some(error);
                CutReport::default()
            })
        });
        failure.map_or(Ok(found), Err)
    }

    fn priced(models: &Models, read: impl FnOnce(&mut dyn FnMut(&CountedCalls<'_>)) -> CutReport) -> Self {
        let (mut sums, mut calls_unreported) = (Sums::new(UsageKey::Purpose, models), 0);
        let read = read(&mut |summed| {
            calls_unreported += summed.sums.unreported;
            sums.add(summed);
        });
        for call in &read.separately_billed_recoveries {
            sums.correct_price(call);
        }
        let (_, total) = sums.into_rows();
        Self { report: read, spent: Spent::new(total, calls_unreported), this_gateway_alone: false }
    }
}

impl Spent {
    fn new(total: Total, calls_unreported: u64) -> Self {
        Self {
            dollars: total.dollars_in_words(DOLLAR_PLACES),
            nano_usd: total.nano_usd,
            calls: total.calls,
            prompt_tokens: total.prompt_tokens,
            output_tokens: total.completion_tokens,
            calls_unreported,
            unpriced_calls: total.unpriced_calls,
            usd: total.usd,
            usd_at_least: total.usd_at_least,
        }
    }
}

/// The estimated cost of a recovery that did not happen.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Replies that were left cut.
    pub replies: u64,
    pub prompt_tokens: u64,
    pub output_tokens_at_most: u64,
    /// How many of these replies have estimated token counts.
    pub replies_guessed: u64,
    /// The method of the estimate.
    pub method: &'static str,
}

impl<'a> CutsReport<'a> {
    /// Builds the report. `continuation_tokens` is the maximum output of one continuation, for the estimate.
    pub fn new(found: &'a CutData, since: &'a str, continuation_tokens: u64) -> Self {
        let read = &found.report;
        let sum = |of: fn(&UsageSummary) -> u64| read.days.iter().map(of).sum();
        let left: Vec<&CutSummary> = read.cuts.iter().filter(|cut| cut.outcome == "cut").collect();
        let replies = left.iter().map(|cut| cut.replies).sum::<u64>();
        Self {
            since,
            requests: read.requests,
            replies: sum(|day| day.judged),
            cut: sum(|day| day.cut),
            interrupted: sum(|day| day.interrupted),
            cuts: read
                .cuts
                .iter()
                .map(|cut| Cut {
                    upstream: &cut.upstream,
                    model: &cut.model,
                    kind: &cut.kind,
                    outcome: &cut.outcome,
                    replies: cut.replies,
                    at_own_limit: cut.at_own_limit,
                })
                .collect(),
            days: read
                .days
                .iter()
                .map(|day| DayReport {
                    day: &day.day,
                    upstream: &day.upstream,
                    model: &day.model,
                    calls: day.calls,
                    replies: day.judged,
                    cut: day.cut,
                    without_reply: day.without_reply,
                    prompt_tokens: day.prompt_tokens,
                    output_tokens: day.output_tokens,
                })
                .collect(),
            spent: found.spent.clone(),
            would_cost: Estimate {
                replies,
                prompt_tokens: left.iter().map(|cut| cut.resent_tokens).sum(),
                output_tokens_at_most: replies.saturating_mul(continuation_tokens),
                replies_guessed: left.iter().map(|cut| cut.estimated).sum(),
                method: ESTIMATE_METHOD,
            },
            this_gateway_alone: found.this_gateway_alone,
        }
    }
}
