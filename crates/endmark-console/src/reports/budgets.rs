//! The state of budgets (CX-7).

use endmark_context::budget::{BudgetRule, Period, Scope};
use endmark_store::{BudgetRow, Key, KeyBudget};
use serde::Serialize;

/// The state of budgets, by window.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetsReport {
    /// The budgets, newest window first.
    pub rows: Vec<BudgetEntry>,
}

/// The state of one budget in one window.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetEntry {
    /// The scope of the budget: `session`, `key`, `model` or `all`.
    pub scope: String,
    /// The session, key or model to which the budget applies. Empty if it applies to all.
    pub subject: String,
    /// The window: `ever`, or the day.
    pub window: String,
    /// The unit: `tokens` or `nano_usd`.
    pub unit: String,
    /// The configured limit. Null if the budget is not configured any more.
    pub limit: Option<u64>,
    /// The amount that was added to the limit.
    pub extra: u64,
    /// The cost of finished calls, in the budget's unit.
    pub spent: u64,
    /// The amount reserved for calls in progress.
    pub held: u64,
    /// Whether the closing call was made.
    pub closed: bool,
}

impl BudgetEntry {
    /// Builds the report of a row, with its rule or key.
    pub fn new(row: &BudgetRow, rules: &[BudgetRule], keys: &[Key]) -> Self {
        let of_key = keys
            .iter()
            .filter(|key| row.scope == Scope::Key.name() && row.subject == key.identity())
            .filter_map(|key| key.budget.map(KeyBudget::rule));
        let rules = of_key.chain(rules.iter().copied());
        let rule = rules.into_iter().find(|rule| {
            rule.scope.name() == row.scope
                && rule.unit.name() == row.unit
                && Period::from_window(&row.window) == rule.period
        });
        Self {
            scope: row.scope.clone(),
            subject: row.subject.clone(),
            window: row.window.clone(),
            unit: row.unit.clone(),
            limit: rule.map(|rule| rule.limit),
            extra: row.extra,
            spent: row.spent,
            held: row.held,
            closed: row.is_closed,
        }
    }
}
