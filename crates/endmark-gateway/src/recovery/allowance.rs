//! Limits the cost of recovery for one request. The limits depend on the client's request, and never on an upstream's
//! response.

use std::time::Duration;

use endmark_context::count::Family;
use endmark_wire::reply::Choice;

use super::bound::RecoveryBound;
use super::case::RecoveryCase;

/// Minimum output tokens for continuations, however low the client's limit is. They suffice for a document
/// that was cut after a few tokens.
const MIN_CLIENT_TOKENS: u64 = 2_048;

/// The limits for all further calls that complete one reply, regardless of its number of choices and tool
/// calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Output tokens of all further calls.
    pub(super) tokens: u64,
    /// Output tokens of all continuations if the client set a limit. Calls after a cut of kind `empty` do not count.
    pub(super) client_tokens: Option<u64>,
    /// Number of attempts to resume.
    pub(super) attempts: u32,
    /// Number of correction attempts.
    pub(super) corrections: u32,
    /// Total time to wait for upstreams to become available.
    pub(super) waiting_time: Duration,
    /// Total time of the calls and of the waits between them.
    pub(super) call_time: Duration,
    /// The bound that determines `call_time`.
    pub(super) time_bound: RecoveryBound,
}

impl Allowance {
    /// Returns the allowance of a request whose first reply has ended. The usage of that reply is reported or
    /// estimated.
    pub(crate) fn new(
        case: &RecoveryCase<'_>,
        took: Duration,
        output_tokens: Option<u64>,
        received: &[Choice],
    ) -> Self {
        let settings = case.settings;
        let view = case.request.view();
        let choices = view.choices.max(1);
        let family = Family::of(&view.model);
        let written = || received.iter().map(|choice| choice.written.tokens(family)).sum();
        let generated = output_tokens.unwrap_or_else(written);
        let tokens_per_choice = (generated / u64::from(choices)).max(1);
        let time_for_limit = view.limit.map(|limit| time_at_pace(took, tokens_per_choice, limit));
        let client_limit = view.limit.filter(|_| case.sets_limit);
        Self {
            tokens: settings.resume.max_extra_tokens,
            client_tokens: client_limit
                .map(|limit| client_tokens(limit, settings.resume.client_limit_factor)),
            attempts: settings.resume.max_attempts.saturating_mul(choices),
            corrections: settings.correct.max_attempts.saturating_mul(choices),
            waiting_time: settings.limits.reconnect,
            call_time: time_for_limit.map_or(settings.limits.total, |own| own.max(settings.resume.max_time)),
            time_bound: if time_for_limit.is_some() {
                RecoveryBound::Seconds
            } else {
                RecoveryBound::TotalSeconds
            },
        }
    }
}

/// Returns the output tokens for all continuations of a reply if the client set this limit.
pub(super) fn client_tokens(limit: u64, factor: u64) -> u64 {
    limit.saturating_mul(factor).max(MIN_CLIENT_TOKENS)
}

/// Returns the time for `limit` tokens at the speed of a reply that generated `generated` tokens in `took`.
pub(super) fn time_at_pace(took: Duration, generated: u64, limit: u64) -> Duration {
    let nanos = took.as_nanos().saturating_mul(u128::from(limit)) / u128::from(generated.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuations_get_a_multiple_of_the_client_limit() {
        for (limit, factor, tokens) in [(15, 4, 2_048), (512, 4, 2_048), (1_000, 4, 4_000), (1_000, 9, 9_000)]
        {
            assert_eq!(client_tokens(limit, factor), tokens);
        }
        assert_eq!(client_tokens(u64::MAX, 4), u64::MAX);
    }

    #[test]
    fn the_time_limit_follows_the_speed_of_the_reply() {
        let second = Duration::from_secs(1);
        assert_eq!(time_at_pace(10 * second, 200, 200), 10 * second);
        assert_eq!(time_at_pace(second, 20, 4_000), 200 * second);
        assert_eq!(time_at_pace(second, 0, 3), 3 * second);
        assert!(time_at_pace(Duration::MAX, 1, u64::MAX) > Duration::from_hours(1_000_000));
    }
}
