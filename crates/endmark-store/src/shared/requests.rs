//! Collects requests for shares of budgets, and decides how much of each budget an instance should have available.

use endmark_context::budget::{Demands, WantedShare};
use tokio::sync::oneshot;

use crate::budgets::Claim;
use crate::engine::journal::{GrantedShare, ShareRequest};
use crate::error::StoreError;
use crate::leases::BudgetKey;

type Answer = oneshot::Sender<Result<(), StoreError>>;

/// Requests for shares of budgets that wait for the next report.
#[derive(Default)]
pub(crate) struct Requests {
    budgets: Demands<BudgetKey>,
    answers: Vec<Answer>,
}

impl Requests {
    pub(crate) fn add(
        &mut self,
        now_ms: u64,
        claims: impl Iterator<Item = (BudgetKey, u64, u64)>,
        answer: Answer,
    ) {
        for (key, limit, amount) in claims {
            self.budgets.add(now_ms, key, limit, amount);
        }
        self.answers.push(answer);
    }

    pub(crate) fn note_use(&mut self, now_ms: u64, claims: &[Claim]) {
        for claim in claims {
            self.budgets.note_use(now_ms, &BudgetKey::new(claim));
        }
    }

    /// Takes the shares to request now, and the callers that wait for them.
    pub(crate) fn take(&mut self, now_ms: u64, is_closing: bool) -> (Vec<ShareRequest>, Vec<Answer>) {
        let wanted = self.budgets.take(now_ms, is_closing).into_iter();
        let requests = wanted.map(|(key, wanted)| ShareRequest { key, wanted }).collect();
        (requests, std::mem::take(&mut self.answers))
    }

    /// Returns the share to request together with the report of a budget's costs.
    pub(crate) fn with_report(&self, key: &BudgetKey) -> WantedShare {
        self.budgets.with_report(key)
    }

    /// Remembers that calls in progress use these budgets.
    pub(crate) fn keep(&mut self, now_ms: u64, keys: &[BudgetKey]) {
        for key in keys {
            self.budgets.keep(now_ms, key.clone());
        }
    }

    /// Whether calls of this instance used this budget recently.
    pub(crate) fn is_known(&self, key: &BudgetKey) -> bool {
        self.budgets.is_known(key)
    }

    /// Whether a caller waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether this budget is nearly exhausted.
    pub(crate) fn is_tight(&self, key: &BudgetKey) -> bool {
        self.budgets.is_tight(key)
    }

    /// Whether a budget of this instance is nearly exhausted, so that other instances wait for unused shares.
    pub(crate) fn has_tight(&self) -> bool {
        self.budgets.has_tight()
    }

    /// Records the shares that the database granted.
    pub(crate) fn note(&mut self, shares: &[GrantedShare]) {
        for share in shares {
            self.budgets.note(&share.key, share.is_tight, share.granted.saturating_sub(share.used));
        }
    }
}

#[cfg(test)]
mod tests {
    use endmark_context::budget::{Scope, Unit};

    use super::*;

    #[test]
    fn a_requested_share_grows_with_recent_use() {
        let mut requests = Requests::default();
        let window = "ever".to_owned();
        let key = BudgetKey { scope: Scope::All, subject: String::new(), window, unit: Unit::Tokens };
        let ask = |now_ms| {
            let (sender, _) = oneshot::channel();
            requests.add(now_ms, std::iter::once((key.clone(), 1_000, 10)), sender);
            requests.take(now_ms, false).0[0].wanted.ahead
        };
        assert_eq!([5_000, 5_500, 5_900, 7_800, 13_000].map(ask), [0, 20, 40, 40, 20]);
    }
}
