//! The only key of a gateway for a single client.

use endmark_store::KeyBudget;

use super::Secret;

/// The only key that a gateway accepts. It exists only in memory. Keys in the store do not work in this
/// gateway, and this key does not work in any other gateway on the same store.
#[derive(Debug, Clone)]
pub struct SoleKey {
    /// The secret that the client sends.
    pub secret: Secret,
    /// The name of the key in the ledger, in usage and in budgets.
    pub name: String,
    /// The budget of the key.
    pub budget: Option<KeyBudget>,
}
