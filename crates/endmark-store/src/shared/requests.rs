//! Collects requests for shares of budgets, and decides how much of each budget to request for an instance.

use endmark_context::budget::{Demands, WantedShare};
use tokio::sync::oneshot;

use crate::budgets::Claim;
use crate::engine::journal::{GrantedShare, ShareRequest};
use crate::error::StoreError;
use crate::leases::BudgetKey;

type ShareWaiter = oneshot::Sender<Result<(), StoreError>>;

/// Requests for shares of budgets that wait for the next report.
#[derive(Default)]
pub(crate) struct ShareRequests {
    budgets: Demands<BudgetKey>,
    answers: Vec<ShareWaiter>,
}

impl ShareRequests {
    pub(crate) fn add(
        &mut self,
        now_ms: u64,
        claims: impl Iterator<Item = (BudgetKey, u64, u64)>,
        answer: ShareWaiter,
    ) {
        for (key, limit, amount) in claims {
            self.budgets.add(now_ms, key, limit, amount);
        }
        self.answers.push(answer);
    }

    pub(crate) fn note_use(&mut self, now_ms: u64, claims: &[Claim]) {
        for claim in claims {
            self.budgets.record_use(now_ms, &BudgetKey::new(claim));
        }
    }

    /// Removes and returns the shares to request now, and the callers that wait for them.
    pub(crate) fn take(&mut self, now_ms: u64, is_closing: bool) -> (Vec<ShareRequest>, Vec<ShareWaiter>) {
        let wanted = self.budgets.take_due(now_ms, is_closing).into_iter();
        let requests = wanted.map(|(key, wanted)| ShareRequest { key, wanted }).collect();
        (requests, std::mem::take(&mut self.answers))
    }

    /// Returns the share to request together with the report of a budget's costs.
    pub(crate) fn with_report(&self, key: &BudgetKey) -> WantedShare {
        self.budgets.refill_request(key)
    }

    /// Records that calls in progress use these budgets.
    pub(crate) fn record_in_progress(&mut self, now_ms: u64, keys: &[BudgetKey]) {
        for key in keys {
            self.budgets.keep_budget(now_ms, key.clone());
        }
    }

    /// Whether calls of this instance used this budget recently.
    pub(crate) fn is_recently_used(&self, key: &BudgetKey) -> bool {
        self.budgets.has_recent_use(key)
    }

    /// Whether a caller waits for shares.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether the budget was nearly exhausted at the last report.
    pub(crate) fn is_tight(&self, key: &BudgetKey) -> bool {
        self.budgets.is_tight(key)
    }

    /// Whether any budget of this instance is nearly exhausted. Other instances then wait for unused shares.
    pub(crate) fn has_tight(&self) -> bool {
        self.budgets.has_tight_budget()
    }

    /// Records the shares that the database granted.
    pub(crate) fn record_granted(&mut self, shares: &[GrantedShare]) {
        for share in shares {
            self.budgets.record_answer(&share.key, share.is_tight, share.granted.saturating_sub(share.used));
        }
    }
}

#[cfg(test)]
mod tests {
    use endmark_context::budget::{Scope, Unit};

    use super::*;

    #[test]
    fn a_requested_share_grows_with_recent_use() {
        let mut requests = ShareRequests::default();
        let window = "ever".to_owned();
        let key = BudgetKey { scope: Scope::All, subject: String::new(), window, unit: Unit::Tokens };
        let ask = |now_ms| {
            let (sender, _) = oneshot::channel();
            requests.add(now_ms, std::iter::once((key.clone(), 1_000, 10)), sender);
            requests.take(now_ms, false).0[0].wanted.expected
        };
        assert_eq!([5_000, 5_500, 5_900, 7_800, 13_000].map(ask), [0, 20, 40, 40, 20]);
    }
}
