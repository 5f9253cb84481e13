//! Requests for shares of budgets, and how much of each budget an instance should have available.

use std::collections::HashMap;

use tokio::sync::oneshot;

use crate::budgets::Claim;
use crate::engine::journal::{GrantedShare, ShareRequest};
use crate::error::StoreError;
use crate::leases::BudgetKey;

/// A share that was not used for this long is returned.
const UNUSED_MS: u64 = 2_000;
/// Requests that follow each other faster ask for twice as much ahead.
const HURRY_MS: u64 = 1_000;
/// Requests that follow each other more slowly ask for half as much. In between a share lasts for seconds, as it should.
const LEISURE_MS: u64 = 4_000;

type Answer = oneshot::Sender<Result<(), StoreError>>;

/// Waiting requests for shares of budgets.
#[derive(Default)]
pub(crate) struct Requests {
    budgets: HashMap<BudgetKey, AskedBudget>,
    answers: Vec<Answer>,
}

#[derive(Default)]
struct AskedBudget {
    limit: u64,
    least: u64,
    waiting: u64,
    ahead: u64,
    asked_ms: u64,
    used_ms: u64,
    is_tight: bool,
}

impl Requests {
    pub(crate) fn add(
        &mut self,
        now_ms: u64,
        claims: impl Iterator<Item = (BudgetKey, u64, u64)>,
        answer: Answer,
    ) {
        for (key, limit, amount) in claims {
            let budget = self.budgets.entry(key).or_default();
            // A call that costs nothing needs a share, too: without one this instance does not know what others
            // spent.
            let amount = amount.max(1);
            budget.limit = limit;
            budget.least = if budget.least == 0 { amount } else { budget.least.min(amount) };
            budget.waiting = budget.waiting.saturating_add(amount);
            budget.used_ms = now_ms;
        }
        self.answers.push(answer);
    }

    pub(crate) fn note_use(&mut self, now_ms: u64, claims: &[Claim]) {
        for claim in claims {
            if let Some(budget) = self.budgets.get_mut(&BudgetKey::of(claim)) {
                budget.used_ms = now_ms;
            }
        }
    }

    /// Takes the shares to request now, and the callers that wait for them.
    pub(crate) fn take(&mut self, now_ms: u64, is_closing: bool) -> (Vec<ShareRequest>, Vec<Answer>) {
        let mut requests = Vec::new();
        self.budgets.retain(|key, budget| {
            let is_unused = is_closing || now_ms.saturating_sub(budget.used_ms) >= UNUSED_MS;
            let is_asked = budget.least > 0;
            if is_asked {
                let most = budget.ahead.saturating_mul(2).max(budget.waiting.saturating_mul(2));
                budget.ahead = match now_ms.saturating_sub(budget.asked_ms) {
                    _ if budget.is_tight => 0,
                    ..HURRY_MS => most,
                    HURRY_MS..LEISURE_MS => budget.ahead,
                    LEISURE_MS.. => budget.ahead / 2,
                };
                budget.asked_ms = now_ms;
            }
            if is_asked || is_unused || budget.is_tight {
                requests.push(ShareRequest {
                    key: key.clone(),
                    limit: budget.limit,
                    least: budget.least,
                    waiting: budget.waiting,
                    ahead: budget.ahead,
                    returns: is_unused || budget.is_tight,
                });
            }
            (budget.least, budget.waiting) = (0, 0);
            is_asked || !is_unused
        });
        (requests, std::mem::take(&mut self.answers))
    }

    /// Whether a caller waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether this budget is nearly used up.
    pub(crate) fn is_tight(&self, key: &BudgetKey) -> bool {
        self.budgets.get(key).is_some_and(|budget| budget.is_tight)
    }

    /// Whether a budget of this instance is nearly used up: other instances wait for what is not in use here.
    pub(crate) fn has_tight(&self) -> bool {
        self.budgets.values().any(|budget| budget.is_tight)
    }

    /// Notes the database's answer.
    pub(crate) fn note(&mut self, shares: &[GrantedShare]) {
        for share in shares {
            if let Some(budget) = self.budgets.get_mut(&share.key) {
                budget.is_tight = share.is_tight;
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
            requests.take(now_ms, false).0[0].ahead
        };
        assert_eq!([5_000, 5_500, 5_900, 7_800, 13_000].map(ask), [0, 20, 40, 40, 20]);
    }
}
