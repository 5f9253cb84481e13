//! The only key of a gateway for a single client.

use endmark_store::KeyBudget;

use super::Secret;

/// The only key that a gateway accepts, which exists only in memory. Keys in the store do not work at this gateway.
/// This key does not work at other gateways with the same store.
#[derive(Debug, Clone)]
pub struct SoleKey {
    /// The secret that the client sends.
    pub secret: Secret,
    /// The name of the key in the ledger, in usage and in budgets.
    pub name: String,
    /// The budget of the key.
    pub budget: Option<KeyBudget>,
}
