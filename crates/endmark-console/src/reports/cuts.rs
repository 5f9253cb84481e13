//! Cuts: how many replies were cut, of which kind, what became of them, and what resuming costs (PC-9).

use endmark_store::{CutSummary, UsageReport, UsageSummary};
use serde::Serialize;

/// How the estimate is made, in the words that programs and people get.
const METHOD: &str = "one continuation for each reply that was left cut: its prompt and what came of the reply are \
sent again, and at most [resume] continuation_tokens come back; where no tokens were reported, four bytes count as one";

/// What the ledger says of a span of time.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report<'a> {
    /// The span that was asked for.
    pub since: &'a str,
    /// Requests in all.
    pub requests: u64,
    /// Replies that were looked at.
    pub replies: u64,
    /// Of these, the ones that were cut.
    pub cut: u64,
    /// Calls whose process was killed before they were over.
    pub interrupted: u64,
    /// Cut replies by upstream, model, kind and outcome.
    pub cuts: Vec<Cut<'a>>,
    /// Replies by day, upstream and model.
    pub days: Vec<DayReport<'a>>,
    /// What was really spent on recovery.
    pub spent: Spent,
    /// What resuming the replies that were left cut would have cost.
    pub would_cost: Estimate,
}

/// Cut replies of one kind and outcome.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cut<'a> {
    pub upstream: &'a str,
    pub model: &'a str,
    pub kind: &'a str,
    /// `resumed`, `corrected`, `cut` (left so), `exhausted`, `cancelled` or `interrupted`.
    pub outcome: &'a str,
    pub replies: u64,
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

/// What recovery took.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    pub calls: u64,
    pub prompt_tokens: u64,
    pub output_tokens: u64,
    /// Calls of which the upstream reported no tokens.
    pub calls_unreported: u64,
}

/// What recovery would take.
#[expect(missing_docs, reason = "they have the names of what they report")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Replies that were left cut.
    pub replies: u64,
    pub prompt_tokens: u64,
    pub output_tokens_at_most: u64,
    /// Of these replies, the ones whose tokens are guessed from their bytes.
    pub replies_guessed: u64,
    /// How this is estimated.
    pub method: &'static str,
}

impl<'a> Report<'a> {
    /// The report of what was read.
    pub fn of(read: &'a UsageReport, since: &'a str, continuation_tokens: u64) -> Self {
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
            spent: Spent {
                calls: read.spent.calls,
                prompt_tokens: read.spent.prompt_tokens,
                output_tokens: read.spent.output_tokens,
                calls_unreported: read.spent.unreported,
            },
            would_cost: Estimate {
                replies,
                prompt_tokens: left.iter().map(|cut| cut.resent_tokens).sum(),
                output_tokens_at_most: replies.saturating_mul(continuation_tokens),
                replies_guessed: left.iter().map(|cut| cut.estimated).sum(),
                method: METHOD,
            },
        }
    }
}
