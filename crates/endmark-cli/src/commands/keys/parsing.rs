//! Parses amounts and moments from the command line.

use endmark_context::budget::{RateLimits, Unit};
use endmark_context::{Day, Moment, rate_from_dollars};
use endmark_failure::CommandError;
use endmark_store::KeyBudget;

use crate::arguments::keys::Add;
use crate::time_span;

/// Parses the budget; 0 means no budget.
pub(super) fn parse_budget(add: &Add) -> Result<Option<KeyBudget>, CommandError> {
    let (typed, unit, limit) = match (&add.budget_tokens, &add.budget_usd) {
        (Some(typed), _) => (typed, Unit::Tokens, strip_separators(typed).parse().ok()),
        (None, Some(typed)) => {
            let dollars = strip_separators(typed).parse().ok();
            (typed, Unit::NanoUsd, dollars.and_then(|dollars| rate_from_dollars(dollars).ok()))
        }
        (None, None) => return Ok(None),
    };
    let limit: u64 = limit.ok_or_else(|| {
        CommandError::input(
            "bad_amount",
            format!("`{typed}` is not a budget"),
            "Write tokens, as in `--budget-tokens 500000`, or dollars, as in `--budget-usd 2.50`; 0 means no budget.",
        )
    })?;
    let budget = KeyBudget { unit, limit, period: add.per.period() };
    Ok((limit > 0).then_some(budget))
}

/// Parses the rate limits; 0 means no limit.
pub(super) fn parse_rates(add: &Add) -> Result<RateLimits, CommandError> {
    let unusable = |typed: &str, flag| {
        CommandError::input(
            "bad_amount",
            format!("`{typed}` is not a rate limit"),
            format!("Write a whole number, as in `{flag} 60`; 0 means no limit."),
        )
    };
    let limit = |typed: &Option<String>, flag| match typed.as_deref() {
        None => Ok(None),
        Some(typed) => match strip_separators(typed).parse() {
            Ok(limit) => Ok(Some(limit).filter(|limit: &u64| *limit > 0)),
            Err(_) => Err(unusable(typed, flag)),
        },
    };
    Ok(RateLimits {
        requests_per_minute: limit(&add.requests_per_minute, "--requests-per-minute")?,
        tokens_per_minute: limit(&add.tokens_per_minute, "--tokens-per-minute")?,
        parallel: limit(&add.parallel, "--parallel")?,
    })
}

/// Removes the separators of thousands.
fn strip_separators(typed: &str) -> String {
    typed.replace(['_', ','], "")
}

/// Returns when a key created at `now` expires. Both are in seconds since 1970.
pub(super) fn parse_expiry(typed: &str, now: u64) -> Result<u64, CommandError> {
    let unusable = |why: &str| {
        CommandError::input(
            "bad_moment",
            format!("`{typed}` {why}"),
            "Write a future day, as in `--until 2027-01-01`, or a number followed by m, h, d or w, as in `--until 30d`.",
        )
    };
    let ends_at = match Day::parse(typed) {
        Some(_) => Moment::parse(&format!("{typed} 00:00")).map(Moment::unix_seconds),
        None => time_span::parse_seconds(typed).ok().and_then(|seconds| now.checked_add(seconds)),
    };
    let ends_at = ends_at.ok_or_else(|| unusable("is not a day or a time span"))?;
    if ends_at <= now { Err(unusable("is in the past")) } else { Ok(ends_at) }
}

/// Returns how long an old secret stays valid, in seconds.
pub(super) fn parse_overlap(typed: &str) -> Result<u64, CommandError> {
    // `0m` is not a valid time span elsewhere. Here it ends the old secret immediately.
    let is_none = typed.trim_end_matches(['m', 'h', 'd', 'w']).parse() == Ok(0_u64);
    if is_none { Ok(0) } else { time_span::parse_seconds(typed) }
}
