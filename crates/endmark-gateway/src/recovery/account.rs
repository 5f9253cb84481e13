//! What one request costs: its own tokens and those of the continuations.

use endmark_recovery::Ending;
use endmark_wire::reply::Usage;

use super::allowance::Allowance;
use super::patience::Patience;

/// The tokens of one request, over all its upstream calls.
#[derive(Debug)]
pub(crate) struct Account {
    /// As the first call reported them, if it did.
    first: Option<Usage>,
    /// Of all further calls, as far as they reported any.
    pub(crate) extra: Option<Usage>,
    /// A call cost what nobody counted.
    lacks_some: bool,
    /// The output limit that the last further call carried.
    pub(crate) limit_sent: Option<u64>,
    /// The id of the last further call's answer.
    pub(crate) last_id: Option<String>,
    /// The upstream that gave it.
    pub(crate) last_upstream: Option<String>,
    /// How long upstreams are still waited for.
    pub(super) patience: Patience,
    allowance: Allowance,
    further_calls: u32,
}

impl Account {
    /// An account with this allowance for further calls.
    pub(crate) fn new(allowance: Allowance) -> Self {
        Self {
            first: None,
            extra: None,
            lacks_some: false,
            limit_sent: None,
            last_id: None,
            last_upstream: None,
            patience: Patience::new(allowance.waiting, allowance.calls),
            allowance,
            further_calls: 0,
        }
    }

    /// Books the first call: what it reported, and how it ended. A stream counts at its end.
    pub(crate) fn open(&mut self, usage: Option<&Usage>, ending: Ending) {
        self.first = usage.cloned();
        self.counted(usage, ending);
    }

    /// The output limit for the next call: `wanted`, or what is left of the allowance; none if nothing is.
    pub(super) fn limit(&mut self, wanted: u64) -> Option<u64> {
        let limit = wanted.min(self.allowance.tokens);
        if limit == 0 {
            return None;
        }
        self.limit_sent = Some(limit);
        Some(limit)
    }

    /// How many attempts to resume are left, and how many corrections.
    pub(crate) fn left(&self) -> (u32, u32) {
        (self.allowance.attempts, self.allowance.corrections)
    }

    /// Books what was tried for one part.
    pub(super) fn tried(&mut self, attempts: u32, corrections: u32) {
        self.allowance.attempts = self.allowance.attempts.saturating_sub(attempts);
        self.allowance.corrections = self.allowance.corrections.saturating_sub(corrections);
    }

    /// Output tokens that further calls may still take.
    pub(super) fn tokens_left(&self) -> u64 {
        self.allowance.tokens
    }

    /// Books a further call: what it reported, or else all it was allowed; and how it ended.
    pub(super) fn book(&mut self, usage: Option<&Usage>, ending: Ending, limit: u64) {
        self.counted(usage, ending);
        let spent = usage.map_or(limit, |usage| usage.completion);
        self.further_calls += 1;
        self.allowance.tokens = self.allowance.tokens.saturating_sub(spent);
        self.extra = sum(self.extra.take(), usage.cloned());
    }

    /// Notes an answer that was lost, with what it cost.
    pub(super) fn lost(&mut self) {
        self.lacks_some = true;
    }

    fn counted(&mut self, usage: Option<&Usage>, ending: Ending) {
        self.lacks_some |= usage.is_none() || ending != Ending::Clean;
    }

    /// Whether the sum is the least that it can be: a call reported nothing, or not to its end.
    pub(crate) fn is_the_least(&self) -> bool {
        self.lacks_some && self.total().is_some()
    }

    /// What the first call reported.
    pub(crate) fn first(&self) -> Option<&Usage> {
        self.first.as_ref()
    }

    /// Whether there was any call but the first.
    pub(crate) fn has_further_calls(&self) -> bool {
        self.further_calls > 0
    }

    /// The usage to report to the client: the sum over all calls, as far as they reported any; none where none did.
    pub(crate) fn total(&self) -> Option<Usage> {
        sum(self.first.clone(), self.extra.clone())
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

    fn account(tokens: u64) -> Account {
        let time = Duration::ZERO;
        Account::new(Allowance { tokens, attempts: 3, corrections: 1, waiting: time, calls: time })
    }

    #[test]
    fn further_calls_share_one_allowance() {
        let mut account = account(100);
        assert_eq!(account.limit(60), Some(60));
        account.book(Some(&Usage { completion: 30, ..Usage::default() }), Ending::Clean, 60);
        assert_eq!(account.limit(90), Some(70));
        account.book(None, Ending::Clean, 70);
        assert_eq!(account.limit(1), None);
    }

    #[test]
    fn all_parts_share_the_attempts() {
        let mut account = account(100);
        account.tried(2, 0);
        assert_eq!(account.left(), (1, 1));
        account.tried(2, 1);
        assert_eq!(account.left(), (0, 0));
    }

    #[test]
    fn what_nobody_counted_is_no_number() {
        let mut account = account(100);
        account.book(None, Ending::Clean, 10);
        assert_eq!((account.total(), account.is_the_least()), (None, false));
        let counted = Usage { completion: 30, ..Usage::default() };
        account.book(Some(&counted), Ending::Clean, 40);
        account.book(None, Ending::Clean, 10);
        assert_eq!(account.total().as_ref(), Some(&counted));
        account.open(Some(&counted), Ending::Clean);
        assert_eq!(account.total(), Some(counted.clone() + counted));
        assert!(account.is_the_least());
    }

    #[test]
    fn a_sum_is_the_least_where_a_call_was_not_counted_to_its_end() {
        let counted = Usage { completion: 30, ..Usage::default() };
        let sum = |first: (Option<&Usage>, Ending), rest: (Option<&Usage>, Ending)| {
            let mut account = account(100);
            account.open(first.0, first.1);
            account.book(rest.0, rest.1, 10);
            account.is_the_least()
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
