//! Requests for shares of budgets, and how much of each budget an instance should have available.

use std::collections::HashMap;

use endmark_context::budget::Demand;
use tokio::sync::oneshot;

use crate::budgets::Claim;
use crate::engine::journal::{GrantedShare, ShareRequest};
use crate::error::StoreError;
use crate::leases::BudgetKey;

type Answer = oneshot::Sender<Result<(), StoreError>>;

/// Waiting requests for shares of budgets.
#[derive(Default)]
pub(crate) struct Requests {
    budgets: HashMap<BudgetKey, Demand>,
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
            self.budgets.entry(key).or_default().add(now_ms, limit, amount);
        }
        self.answers.push(answer);
    }

    pub(crate) fn note_use(&mut self, now_ms: u64, claims: &[Claim]) {
        for claim in claims {
            if let Some(budget) = self.budgets.get_mut(&BudgetKey::of(claim)) {
                budget.note_use(now_ms);
            }
        }
    }

    /// Takes the shares to request now, and the callers that wait for them.
    pub(crate) fn take(&mut self, now_ms: u64, is_closing: bool) -> (Vec<ShareRequest>, Vec<Answer>) {
        let mut requests = Vec::new();
        self.budgets.retain(|key, demand| {
            let (wanted, is_kept) = demand.take(now_ms, is_closing);
            requests.extend(wanted.map(|wanted| ShareRequest { key: key.clone(), wanted }));
            is_kept
        });
        (requests, std::mem::take(&mut self.answers))
    }

    /// Keeps demands for budgets of calls in progress.
    pub(crate) fn keep(&mut self, now_ms: u64, keys: &[BudgetKey]) {
        for key in keys {
            self.budgets.entry(key.clone()).or_insert(Demand::in_progress(now_ms));
        }
    }

    /// Whether a caller waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether this budget is nearly used up.
    pub(crate) fn is_tight(&self, key: &BudgetKey) -> bool {
        self.budgets.get(key).is_some_and(Demand::is_tight)
    }

    /// Whether a budget of this instance is nearly used up: other instances wait for what is not in use here.
    pub(crate) fn has_tight(&self) -> bool {
        self.budgets.values().any(Demand::is_tight)
    }

    /// Notes the database's answer.
    pub(crate) fn note(&mut self, shares: &[GrantedShare]) {
        for share in shares {
            if let Some(budget) = self.budgets.get_mut(&share.key) {
                budget.note_tight(share.is_tight);
            } else if share.granted > share.used {
                self.budgets.insert(share.key.clone(), Demand::leftover(share.is_tight));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use endmark_context::budget::{Scope, Unit};

    use super::*;

    #[test]
    fn a_share_grows_until_it_lasts_for_seconds() {
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
