//! From the configuration to how outputs are capped, and how they are kept in full.

use endmark_context::cap::Unit;
use endmark_failure::CommandError;
use endmark_store::{CapRequest, Keeper};

use super::settings::{Cap, Settings};

impl Settings {
    /// What keeps full outputs in the store.
    pub fn keeper(&self) -> Keeper {
        let keep_days = u32::try_from(self.store_policy.keep_days).unwrap_or(u32::MAX);
        Keeper::new(self.store.clone(), keep_days, self.store_policy.outputs_max_bytes)
    }
}

impl Cap {
    /// A request with the limits that are given; else with those of the configuration, as far as they stay below the
    /// `own_limit` at which the reader itself would cut.
    pub fn request(
        &self,
        limit: Option<(u64, Unit)>,
        max_items: Option<u64>,
        own_limit: u64,
    ) -> Result<CapRequest, CommandError> {
        CapRequest::new(limit, self.max_chars.min(own_limit), max_items.unwrap_or(self.max_items))
    }
}
