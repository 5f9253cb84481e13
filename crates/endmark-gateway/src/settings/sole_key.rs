//! The only key of a gateway that serves a single client.

use endmark_store::KeyBudget;

use super::Secret;

/// The only key that a gateway accepts. It exists in memory alone: keys of the store do not work in this gateway, and
/// this key does not work in any other gateway on the same store.
#[derive(Debug, Clone)]
pub struct SoleKey {
    /// The secret that its client sends.
    pub secret: Secret,
    /// The name of the key in the ledger, in usage and in budgets.
    pub name: String,
    /// Its budget.
    pub budget: Option<KeyBudget>,
}
