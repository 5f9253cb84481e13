//! Derives from the configuration how outputs are limited and how full outputs are kept.

use endmark_context::cap::Unit;
use endmark_failure::CommandError;
use endmark_store::{CapRequest, Keeper};

use super::settings::Settings;

impl Settings {
    /// Returns the keeper that stores full outputs.
    pub fn keeper(&self) -> Keeper {
        let policy = &self.gateway.store_policy;
        Keeper::new(self.files.store.clone(), policy.keep_days, policy.outputs_max_bytes)
    }

    /// Returns a cap request with the given limits. Without them the configured limits apply, but at most
    /// `own_limit`, at which the reader itself would truncate.
    pub fn cap_request(
        &self,
        limit: Option<(u64, Unit)>,
        max_items: Option<u64>,
        own_limit: u64,
    ) -> Result<CapRequest, CommandError> {
        let cap = self.gateway.cap;
        let usual = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        CapRequest::new(limit, usual(cap.max_chars).min(own_limit), max_items.unwrap_or(usual(cap.max_items)))
    }
}
