//! Settings of budgets, and the behaviour if spending is unknown.

use std::time::{SystemTime, UNIX_EPOCH};

use endmark_context::Moment;
use endmark_context::budget::{BudgetRule, RateLimits, Zone};

use super::secret::Secret;

/// Settings of budgets (CX-7).
#[derive(Debug, Clone, Default)]
pub struct BudgetSettings {
    /// The budgets. If the list is empty, calls are not held.
    pub rules: Vec<BudgetRule>,
    /// The rate limits of clients whose key has none of its own.
    pub rates: RateLimits,
    /// The clock that determines the current window.
    pub clock: Clock,
    /// The time zone in which days begin.
    pub zone: Zone,
    /// Output tokens that are reserved for a call without a limit.
    pub assume_output_tokens: u64,
    /// Whether calls are refused if the store does not answer. Otherwise they are made without a hold.
    pub is_closed_on_store_error: bool,
    /// The URL that receives warnings about budgets that are nearly exhausted.
    pub webhook: Option<String>,
    /// The secret that signs the warnings.
    pub webhook_secret: Option<Secret>,
    /// Whether to forward paths whose cost is not counted. Otherwise they are refused if a budget or a list of models
    /// applies.
    pub passes_unknown_paths: bool,
    /// Whether a model without a price is admitted, and counted only in tokens. Otherwise it is refused if a budget
    /// is in dollars.
    pub admits_unpriced: bool,
}

/// A clock. The default is the system's clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock(pub fn() -> Moment);

impl Default for Clock {
    fn default() -> Self {
        Self(|| {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Moment::from_unix_seconds(since_epoch.as_secs())
        })
    }
}
