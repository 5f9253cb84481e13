//! Counts the tokens of one request and its continuations.

use endmark_recovery::{CutKind, Ending};
use endmark_wire::reply::Usage;
use tokio::time::Instant;

use super::allowance::Allowance;
use super::bound::RecoveryBound;
use super::retry_waits::RetryWaits;
use crate::ledger::CallUsage;

/// The tokens of one request, summed over all upstream calls.
#[derive(Debug)]
pub(crate) struct TokenAccount {
    /// Usage of the first call.
    first_usage: Option<Usage>,
    /// Usage of all further calls: continuations, repetitions and corrections.
    pub(crate) extra_usage: Option<Usage>,
    /// Whether the usage of a call is unknown or estimated.
    is_incomplete: bool,
    /// Whether a provider reported usage for any call. Estimates alone are not disclosed to the client.
    is_reported: bool,
    /// The output limit of the last further call.
    pub(crate) limit_sent: Option<u64>,
    /// The id of the last further call's response.
    pub(crate) last_id: Option<String>,
    /// The upstream of that response.
    pub(crate) last_upstream: Option<String>,
    /// How long to wait for upstreams.
    pub(super) retry_waits: RetryWaits,
    allowance: Allowance,
    further_calls: u32,
}

impl TokenAccount {
    /// Creates an account with this allowance for further calls. Its time limits start now.
    pub(crate) fn new(allowance: Allowance) -> Self {
        Self::starting_at(allowance, Instant::now())
    }

    /// Creates an account like `new`, with time limits that start at `now`.
    pub(super) fn starting_at(allowance: Allowance, now: Instant) -> Self {
        Self {
            first_usage: None,
            extra_usage: None,
            is_incomplete: false,
            is_reported: false,
            limit_sent: None,
            last_id: None,
            last_upstream: None,
            retry_waits: RetryWaits::new(allowance.waiting_time, allowance.call_time, now),
            allowance,
            further_calls: 0,
        }
    }

    /// Adds the usage of the first call. For a stream, this is known at its end.
    pub(crate) fn note_first_call(&mut self, spent: Option<&CallUsage>, ending: Ending) {
        self.first_usage = spent.map(|spent| spent.usage.clone());
        self.note_call(spent, ending);
    }

    /// Returns the output limit for the next call after a cut of this kind: `wanted`, or the rest of the allowance if
    /// that is less.
    ///
    /// # Errors
    /// The exhausted bound, if no tokens remain.
    pub(super) fn reserve_limit(&mut self, wanted: u64, kind: CutKind) -> Result<u64, RecoveryBound> {
        let limit = wanted.min(self.remaining_tokens(kind));
        if limit == 0 {
            return Err(self.token_bound(kind));
        }
        self.limit_sent = Some(limit);
        Ok(limit)
    }

    /// Returns the tightest token bound for a call after a cut of this kind.
    pub(super) fn token_bound(&self, kind: CutKind) -> RecoveryBound {
        match self.client_tokens(kind) {
            Some(client) if client <= self.allowance.tokens => RecoveryBound::ClientLimit,
            _ => RecoveryBound::ExtraTokens,
        }
    }

    /// Returns the bound on the time of all further calls.
    pub(super) fn time_bound(&self) -> RecoveryBound {
        self.allowance.time_bound
    }

    /// Returns the remaining tokens under the client's own limit. That limit does not apply if nothing of the
    /// reply arrived: reasoning then used it up, so it does not indicate how long the reply may be.
    fn client_tokens(&self, kind: CutKind) -> Option<u64> {
        self.allowance.client_tokens.filter(|_| kind != CutKind::Empty)
    }

    /// Returns the remaining attempts to resume, and the remaining corrections.
    pub(crate) fn remaining(&self) -> (u32, u32) {
        (self.allowance.attempts, self.allowance.corrections)
    }

    /// Subtracts the attempts that one part used.
    pub(super) fn note_attempts(&mut self, attempts: u32, corrections: u32) {
        self.allowance.attempts = self.allowance.attempts.saturating_sub(attempts);
        self.allowance.corrections = self.allowance.corrections.saturating_sub(corrections);
    }

    /// Returns the output tokens that remain for further calls after a cut of this kind.
    pub(super) fn remaining_tokens(&self, kind: CutKind) -> u64 {
        self.client_tokens(kind).unwrap_or(u64::MAX).min(self.allowance.tokens)
    }

    /// Adds the usage of a further call after a cut of this kind. A call without a report counts as `at_most` tokens.
    pub(super) fn charge(&mut self, spent: Option<&CallUsage>, ending: Ending, at_most: u64, kind: CutKind) {
        self.note_call(spent, ending);
        let reported = spent.filter(|spent| spent.reports_output);
        self.use_tokens(reported.map_or(at_most, |spent| spent.usage.completion), kind);
        self.further_calls += 1;
        self.extra_usage = sum(self.extra_usage.take(), spent.map(|spent| spent.usage.clone()));
    }

    /// Adds a response that was lost and used at most `at_most` tokens.
    pub(super) fn note_lost_answer(&mut self, at_most: u64, kind: CutKind) {
        self.is_incomplete = true;
        self.use_tokens(at_most, kind);
    }

    fn use_tokens(&mut self, tokens: u64, kind: CutKind) {
        self.allowance.tokens = self.allowance.tokens.saturating_sub(tokens);
        if kind != CutKind::Empty {
            let left = self.allowance.client_tokens.map(|left| left.saturating_sub(tokens));
            self.allowance.client_tokens = left;
        }
    }

    fn note_call(&mut self, spent: Option<&CallUsage>, ending: Ending) {
        self.is_incomplete |= !spent.is_some_and(CallUsage::is_reported) || ending != Ending::Clean;
        self.is_reported |= spent.is_some_and(|spent| spent.reports_prompt || spent.reports_output);
    }

    /// Whether the sum must be marked as a lower bound, because the usage of a call was not completely reported.
    pub(crate) fn is_lower_bound(&self) -> bool {
        self.is_incomplete && self.total().is_some()
    }

    /// Whether the usage of any call is estimated, and therefore the cost.
    pub(crate) fn is_estimated(&self) -> bool {
        self.is_incomplete
    }

    /// Returns the usage of the first call.
    pub(crate) fn first_usage(&self) -> Option<&Usage> {
        self.first_usage.as_ref()
    }

    /// Whether there was any call after the first.
    pub(crate) fn has_further_calls(&self) -> bool {
        self.further_calls > 0
    }

    /// Returns the usage to disclose to the client: the sum of all calls, with estimates where reports are missing.
    /// Returns `None` if no call reported usage.
    pub(crate) fn total(&self) -> Option<Usage> {
        sum(self.first_usage.clone(), self.extra_usage.clone()).filter(|_| self.is_reported)
    }
}

fn sum(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn account(tokens: u64) -> TokenAccount {
        let time = Duration::ZERO;
        TokenAccount::new(Allowance {
            tokens,
            client_tokens: None,
            attempts: 3,
            corrections: 1,
            waiting_time: time,
            call_time: time,
            time_bound: RecoveryBound::Seconds,
        })
    }

    fn counted_usage(completion: u64) -> CallUsage {
        let usage = Usage { prompt: 5, completion, total: 5 + completion, ..Usage::default() };
        CallUsage { usage, reports_prompt: true, reports_output: true }
    }

    #[test]
    fn further_calls_share_one_allowance() {
        let mut account = account(100);
        assert_eq!(account.reserve_limit(60, CutKind::Limit), Ok(60));
        account.charge(Some(&counted_usage(30)), Ending::Clean, 60, CutKind::Limit);
        assert_eq!(account.reserve_limit(90, CutKind::Limit), Ok(70));
        account.charge(None, Ending::Clean, 70, CutKind::Limit);
        assert_eq!(account.reserve_limit(1, CutKind::Limit), Err(RecoveryBound::ExtraTokens));
    }

    #[test]
    fn the_client_limit_bounds_all_calls_except_after_an_empty_reply() {
        let mut account = account(100);
        account.allowance.client_tokens = Some(40);
        assert_eq!(account.reserve_limit(60, CutKind::Empty), Ok(60));
        account.charge(None, Ending::Clean, 50, CutKind::Empty);
        assert_eq!(account.reserve_limit(60, CutKind::Limit), Ok(40));
        account.note_lost_answer(40, CutKind::Limit);
        assert_eq!(account.reserve_limit(1, CutKind::Limit), Err(RecoveryBound::ClientLimit));
        assert_eq!(account.reserve_limit(60, CutKind::Empty), Ok(10));
    }

    #[test]
    fn all_parts_share_the_attempts() {
        let mut account = account(100);
        account.note_attempts(2, 0);
        assert_eq!(account.remaining(), (1, 1));
        account.note_attempts(2, 1);
        assert_eq!(account.remaining(), (0, 0));
    }

    #[test]
    fn unreported_usage_is_unknown() {
        let mut account = account(100);
        account.charge(None, Ending::Clean, 10, CutKind::Limit);
        assert_eq!((account.total(), account.is_lower_bound()), (None, false));
        let estimated = CallUsage { reports_prompt: false, reports_output: false, ..counted_usage(9) };
        account.charge(Some(&estimated), Ending::Clean, 10, CutKind::Limit);
        assert_eq!((account.total(), account.is_lower_bound()), (None, false));
        account.note_first_call(Some(&counted_usage(30)), Ending::Clean);
        // The sum includes the estimate and is marked.
        assert_eq!(account.total().map(|usage| usage.completion), Some(39));
        assert!(account.is_lower_bound());
    }

    #[test]
    fn a_sum_with_an_incomplete_count_is_a_lower_bound() {
        let counted = counted_usage(30);
        let sum = |first: (Option<&CallUsage>, Ending), rest: (Option<&CallUsage>, Ending)| {
            let mut account = account(100);
            account.note_first_call(first.0, first.1);
            account.charge(rest.0, rest.1, 10, CutKind::Limit);
            account.is_lower_bound()
        };
        let (whole, broken) = ((Some(&counted), Ending::Clean), (Some(&counted), Ending::Dropped));
        assert!(!sum(whole, whole));
        for (first, rest) in
            [(whole, broken), (broken, whole), (whole, (None, Ending::Clean)), ((None, Ending::Clean), whole)]
        {
            assert!(sum(first, rest), "{first:?} {rest:?}");
        }
    }
}
