//! Budgets as they are asked and answered (CX-7): what a call holds before it is made, and how budgets stand.

use endmark_context::budget::{Account, Level, Scope, Unit};

/// One budget that a call is counted in, and the most that it can cost there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whose budget it is.
    pub scope: Scope,
    /// The session, key or model that is meant; empty for all.
    pub subject: String,
    /// The window that the call is in.
    pub window: String,
    /// What is counted.
    pub unit: Unit,
    /// How much the budget has, as configured.
    pub limit: u64,
    /// The most that the call can cost.
    pub amount: u64,
    /// The most that it can cost as the closing call of its session.
    pub closing_amount: u64,
}

/// A call that is to be held, in all its budgets or in none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The id of the request.
    pub request_id: String,
    /// Which call of the request it is, from 1.
    pub call: u32,
    /// Its budgets.
    pub claims: Vec<Claim>,
    /// Whether it may be the closing call of a session whose budget does not admit it.
    pub may_close: bool,
}

/// A budget that does not admit a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    /// The budget, and what the call would hold.
    pub claim: Claim,
    /// How it stands.
    pub account: Account,
}

/// A budget that came to a level for the first time in its window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWarning {
    /// The budget.
    pub claim: Claim,
    /// The level.
    pub level: Level,
}

/// What became of a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// It fits into all its budgets, and is held there.
    Fits {
        /// Budgets that came to a level by it.
        warnings: Vec<BudgetWarning>,
        /// What is left of the budget of which least is left, in its unit and in percent of its limit.
        least_left: Option<(Scope, Unit, u64)>,
    },
    /// It does not, and is the closing call of its session, once: it is held beyond the budget.
    Closing,
    /// Nothing is held.
    UsedUp(UsedUp),
}

impl Held {
    /// The budget of which least is left, before the hold of a call: most calls cost far less than they hold.
    pub(crate) fn least_left<'a>(
        accounts: impl Iterator<Item = (&'a Claim, Account)>,
    ) -> Option<(Scope, Unit, u64)> {
        let share = |(_, account): &(&Claim, Account)| {
            u128::from(account.left()) * 1_000 / u128::from(account.limit.max(1))
        };
        accounts.min_by_key(share).map(|(claim, account)| (claim.scope, claim.unit, account.left()))
    }
}

/// How a budget stands in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRow {
    /// Whose it is.
    pub scope: String,
    /// Which session, key or model.
    pub subject: String,
    /// The window.
    pub window: String,
    /// What is counted: `tokens` or `nano_usd`.
    pub unit: String,
    /// What calls that are over did cost.
    pub spent: u64,
    /// What calls under way hold.
    pub held: u64,
    /// What was added to its limit.
    pub extra: u64,
    /// Whether its closing call was granted.
    pub is_closed: bool,
    /// What its entries come to: the same as `spent` and `held`, unless somebody changed the tables.
    pub recomputed: (u64, u64),
}
