//! What one request costs: its own tokens and those of the continuations.

use std::time::Duration;

use endmark_wire::reply::Usage;

use super::patience::Patience;

/// The tokens of one request, over all its upstream calls.
#[derive(Debug)]
pub(crate) struct Account {
    /// As the first call reported them, if it did.
    pub(crate) first: Option<Usage>,
    /// Of all further calls, as far as they reported any.
    pub(crate) extra: Option<Usage>,
    /// The output limit that the last further call carried.
    pub(crate) limit_sent: Option<u64>,
    /// The id of the last further call's answer.
    pub(crate) last_id: Option<String>,
    /// The upstream that gave it.
    pub(crate) last_upstream: Option<String>,
    /// How long upstreams are still waited for.
    pub(super) patience: Patience,
    allowance: u64,
    further_calls: u32,
}

impl Account {
    /// An account with an allowance of output tokens for further calls, and of time to wait for them.
    pub(crate) fn new(allowance: u64, waiting: Duration) -> Self {
        Self {
            first: None,
            extra: None,
            limit_sent: None,
            last_id: None,
            last_upstream: None,
            patience: Patience::new(waiting),
            allowance,
            further_calls: 0,
        }
    }

    /// The output limit for the next call: `wanted`, or what is left of the allowance; none if nothing is.
    pub(super) fn limit(&mut self, wanted: u64) -> Option<u64> {
        let limit = wanted.min(self.allowance);
        if limit == 0 {
            return None;
        }
        self.limit_sent = Some(limit);
        Some(limit)
    }

    /// Books a further call: what it reported, or else all it was allowed.
    pub(super) fn book(&mut self, usage: Option<&Usage>, limit: u64) {
        let spent = usage.map_or(limit, |usage| usage.completion);
        self.further_calls += 1;
        self.allowance = self.allowance.saturating_sub(spent);
        self.extra = sum(self.extra.take(), usage.cloned());
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
    use super::*;

    #[test]
    fn further_calls_share_one_allowance() {
        let mut account = Account::new(100, Duration::ZERO);
        assert_eq!(account.limit(60), Some(60));
        account.book(Some(&Usage { completion: 30, ..Usage::default() }), 60);
        assert_eq!(account.limit(90), Some(70));
        account.book(None, 70);
        assert_eq!(account.limit(1), None);
    }

    #[test]
    fn what_nobody_counted_is_no_number() {
        let mut account = Account::new(100, Duration::ZERO);
        account.book(None, 10);
        assert_eq!(account.total(), None);
        let counted = Usage { completion: 30, ..Usage::default() };
        account.book(Some(&counted), 40);
        account.book(None, 10);
        assert_eq!(account.total().as_ref(), Some(&counted));
        account.first = Some(counted.clone());
        assert_eq!(account.total(), Some(counted.clone() + counted));
    }
}
