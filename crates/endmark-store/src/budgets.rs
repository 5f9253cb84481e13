//! Holds of calls in budgets (CX-7), their outcomes, and the state of budgets.

use endmark_context::budget::{Account, Level, RemainingRate, Scope, Unit};

/// A budget that a call counts towards, and the maximum amount that the call may cost in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Scope of the budget.
    pub scope: Scope,
    /// The session, key or model. Empty if the budget applies to all.
    pub subject: String,
    /// The window in which the call counts.
    pub window: String,
    /// Unit of the budget.
    pub unit: Unit,
    /// Configured limit of the budget.
    pub limit: u64,
    /// Maximum cost of the call.
    pub amount: u64,
    /// Maximum cost if this is the closing call of its session.
    pub closing_amount: u64,
}

/// A request to hold a call in all its budgets. If one of them does not admit the call, nothing is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The id of the request.
    pub request_id: String,
    /// Number of the call in the request, from 1.
    pub call: u32,
    /// The budgets of the call.
    pub claims: Vec<Claim>,
    /// Whether the call may become the closing call of its session if the session's budget does not admit it.
    pub may_close: bool,
}

/// A budget that does not admit a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusingBudget {
    /// The budget, and the amount that the call would hold.
    pub claim: Claim,
    /// State of the budget.
    pub account: Account,
}

/// A budget that reached a level for the first time in its window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWarning {
    /// The budget.
    pub claim: Claim,
    /// The level.
    pub level: Level,
}

/// Outcome of a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOutcome {
    /// The call fits into all its budgets and is held there.
    Fits {
        /// Budgets that reached a level through this call.
        warnings: Vec<BudgetWarning>,
        /// The remaining amount of the tightest budget, with its scope and unit.
        least_left: Option<(Scope, Unit, u64)>,
        /// The rate limits of the call, with the amounts that remain after it.
        rates: Vec<RemainingRate>,
    },
    /// The call exceeds the budget of its session, and is held as the session's only closing call.
    Closing,
    /// The call does not fit, and nothing is held.
    Exhausted(RefusingBudget),
}

impl HoldOutcome {
    /// Returns the outcome of a hold that fits. `accounts` have the state before the hold.
    pub(crate) fn fits<'a>(
        warnings: Vec<BudgetWarning>,
        accounts: impl Iterator<Item = (&'a Claim, Account)> + Clone,
    ) -> Self {
        let rates = accounts.clone().filter(|(claim, _)| claim.scope == Scope::Rate);
        let rates = rates.map(|(claim, account)| RemainingRate {
            unit: claim.unit,
            limit: account.limit,
            // Other instances may use the rest too, but they request only what they need.
            remaining: account.remaining_anywhere().saturating_sub(claim.amount),
        });
        Self::Fits { warnings, rates: rates.collect(), least_left: Self::tightest_budget(accounts) }
    }

    /// Returns the remaining amount of the tightest budget. The hold of this call is not subtracted, because
    /// most calls cost far less than they hold. Amounts that other instances may use count as remaining.
    fn tightest_budget<'a>(
        accounts: impl Iterator<Item = (&'a Claim, Account)>,
    ) -> Option<(Scope, Unit, u64)> {
        let accounts = accounts.filter(|(claim, _)| claim.scope != Scope::Rate);
        let share = |(_, account): &(&Claim, Account)| {
            u128::from(account.remaining_anywhere()) * 1_000 / u128::from(account.limit.max(1))
        };
        accounts
            .min_by_key(share)
            .map(|(claim, account)| (claim.scope, claim.unit, account.remaining_anywhere()))
    }
}

/// Maximum total addition to the limit of a budget, in tokens or nano-dollars.
pub const MAX_BUDGET_RAISE: u64 = 1 << 60;

/// Outcome of a request to raise the budget of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseOutcome {
    /// The budget was raised. Contains the total of this and earlier additions to the configured limit.
    Raised(u64),
    /// The addition is too large. Contains the maximum that can still be added.
    TooLarge(u64),
    /// The session has no budget in this unit.
    NoBudget,
}

impl RaiseOutcome {
    /// Decides whether `by` can be added to the earlier additions. `extra` is `None` if there is no budget.
    pub(crate) fn of(extra: Option<u64>, by: u64) -> Self {
        let Some(extra) = extra else { return Self::NoBudget };
        let most = MAX_BUDGET_RAISE.saturating_sub(extra);
        if by > most { Self::TooLarge(most) } else { Self::Raised(extra.saturating_add(by)) }
    }
}

/// State of a budget in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRow {
    /// Scope of the budget.
    pub scope: String,
    /// The session, key or model.
    pub subject: String,
    /// The window.
    pub window: String,
    /// The unit: `tokens` or `nano_usd`.
    pub unit: String,
    /// Cost of finished calls.
    pub spent: u64,
    /// Amount held by calls in progress.
    pub held: u64,
    /// Amount added to its limit.
    pub extra: u64,
    /// Whether its closing call was granted.
    pub is_closed: bool,
    /// Sums of the budget's entries. They equal `spent` and `held` unless the tables were modified from outside.
    pub recomputed: (u64, u64),
}
