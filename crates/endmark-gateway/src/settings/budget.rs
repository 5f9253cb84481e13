//! What may be spent, and what is done where that cannot be known.

use endmark_context::budget::{Rule, Zone};

use super::secret::Secret;

/// What may be spent (CX-7).
#[derive(Debug, Clone, Default)]
pub struct BudgetSettings {
    /// The budgets; without any nothing is held.
    pub rules: Vec<Rule>,
    /// The zone in which their days begin.
    pub zone: Zone,
    /// Tokens of output that are held for a call that names no limit.
    pub assume_output_tokens: u64,
    /// Where the store does not answer, calls are refused; else they go on unheld.
    pub is_closed_on_store_error: bool,
    /// Where it is reported that a budget is nearly used up.
    pub webhook: Option<String>,
    /// What reports are signed with.
    pub webhook_secret: Option<Secret>,
    /// Paths whose cost is not counted pass; else they are refused where a budget or a list of models applies.
    pub passes_unknown_paths: bool,
    /// A model without a price is counted in tokens alone; else it is refused where a budget is in dollars.
    pub admits_unpriced: bool,
}
