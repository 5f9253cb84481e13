//! Derives from the configuration how outputs are shortened and how full outputs are stored.

use endmark_context::cap::Unit;
use endmark_failure::CommandError;
use endmark_store::{CapRequest, OutputKeeper};

use super::settings::Settings;

impl Settings {
    /// Returns the keeper that stores full outputs, with the configured limits of age and size.
    pub fn keeper(&self) -> OutputKeeper {
        let policy = &self.gateway.store_policy;
        OutputKeeper::new(self.files.store.clone(), policy.keep_days, policy.outputs_max_bytes)
    }

    /// Returns a cap request with the given limits. If there is no `limit`, the configured one applies, but at most
    /// `own_limit` characters, because the reader would truncate a longer output itself.
    pub fn cap_request(
        &self,
        limit: Option<(u64, Unit)>,
        max_items: Option<u64>,
        own_limit: u64,
    ) -> Result<CapRequest, CommandError> {
        let cap = self.gateway.cap;
        let as_u64 = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        CapRequest::new(
            limit,
            as_u64(cap.max_chars).min(own_limit),
            max_items.unwrap_or(as_u64(cap.max_items)),
        )
    }
}
