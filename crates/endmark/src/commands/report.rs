//! `endmark report`: how many replies were cut, of which kind, what became of them, and what resuming costs. (PC-9)

mod text;

use endmark_store::{CutSummary, Reader, UsageReport, UsageSummary};
use serde::Serialize;

use crate::answer::{Answer, to_data};
use crate::arguments::Report as Arguments;
use crate::context::{Context, configuration_warnings};
use crate::error::CommandError;

/// How the estimate is made, in the words that programs and people get.
const METHOD: &str = "one continuation for each reply that was left cut: its prompt and what came of the reply are \
sent again, and at most [resume] continuation_tokens come back; where no tokens were reported, four bytes count as one";

/// Reads the ledger and says what is in it.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Answer, CommandError> {
    let seconds = seconds(&arguments.since)?;
    let effective = context.configuration(arguments.store.overrides())?;
    let failed = |error| CommandError::of_store(&error);
    let reader = Reader::open(&effective.settings.store).map_err(failed)?;
    let read = reader.usage_since(seconds).map_err(failed)?;
    let report = Report::of(&read, &arguments.since, effective.settings.resume.continuation_tokens);
    let text = text::text(&report, context.terminal.output);
    Ok(Answer::yes(to_data(&report)?, text).with_warnings(configuration_warnings(&effective)))
}

/// A span of time as it is typed: `90m`, `12h`, `7d`, `4w`.
pub(super) fn seconds(typed: &str) -> Result<u64, CommandError> {
    let unusable = || {
        CommandError::input(
            "bad_since",
            format!("`{typed}` is no span of time"),
            "Write a number with m, h, d or w behind it, as in `--since 7d`.",
        )
    };
    let unit = typed.chars().last().ok_or_else(unusable)?;
    let count: u64 = typed.strip_suffix(unit).unwrap_or_default().parse().map_err(|_| unusable())?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(unusable()),
    };
    count.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(unusable)
}

/// What the ledger says of a span of time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::commands) struct Report<'a> {
    /// The span that was asked for.
    since: &'a str,
    /// Requests in all.
    requests: u64,
    /// Replies that were looked at.
    replies: u64,
    /// Of these, the ones that were cut.
    cut: u64,
    /// Calls whose process was killed before they were over.
    interrupted: u64,
    /// Cut replies by upstream, model, kind and outcome.
    cuts: Vec<Cut<'a>>,
    /// Replies by day, upstream and model.
    days: Vec<DayReport<'a>>,
    /// What was really spent on recovery.
    spent: Spent,
    /// What resuming the replies that were left cut would have cost.
    would_cost: Estimate,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Cut<'a> {
    upstream: &'a str,
    model: &'a str,
    kind: &'a str,
    /// `resumed`, `corrected`, `cut` (left so), `exhausted`, `cancelled` or `interrupted`.
    outcome: &'a str,
    replies: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DayReport<'a> {
    day: &'a str,
    upstream: &'a str,
    model: &'a str,
    calls: u64,
    replies: u64,
    cut: u64,
    without_reply: u64,
    prompt_tokens: u64,
    output_tokens: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Spent {
    calls: u64,
    prompt_tokens: u64,
    output_tokens: u64,
    /// Calls of which the upstream reported no tokens.
    calls_unreported: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Estimate {
    /// Replies that were left cut.
    replies: u64,
    prompt_tokens: u64,
    output_tokens_at_most: u64,
    /// Of these replies, the ones whose tokens are guessed from their bytes.
    replies_guessed: u64,
    /// How this is estimated.
    method: &'static str,
}

impl<'a> Report<'a> {
    fn of(read: &'a UsageReport, since: &'a str, continuation_tokens: u64) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_nonsense_is_named() {
        for (typed, expected) in [("90m", 5_400), ("12h", 43_200), ("7d", 604_800), ("4w", 2_419_200)] {
            assert_eq!(seconds(typed).unwrap(), expected);
        }
        for typed in ["", "7", "d", "0d", "-1d", "7 d", "7y", "99999999999999999w", "7é"] {
            let error = seconds(typed).unwrap_err();
            assert!(error.body().hint.unwrap().contains("--since 7d"), "{typed}");
        }
    }
}
