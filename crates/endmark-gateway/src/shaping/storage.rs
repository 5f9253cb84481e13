//! Stores values that a request no longer contains in full, so that they can be read later.

use std::time::Duration;

use endmark_store::{Handle, NewOutput, StoreError};
use tokio::time::timeout;

use super::ShapingContext;

/// How long to wait for the store. A working store is far faster, and clients should hardly notice a failing one.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

impl ShapingContext<'_> {
    /// Waits briefly for the store. If it does not answer in time, the request continues without it.
    pub(super) async fn wait_for_store<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        timeout(STORE_TIMEOUT, work).await.unwrap_or_else(|_| {
            let path = self.store.location().path().to_owned();
            Err(StoreError::Failed { path, detail: format!("no answer within {STORE_TIMEOUT:?}") })
        })
    }

    /// Stores a value under a handle.
    pub(super) async fn store_output(
        &self,
        handle: &Handle,
        value: &[u8],
        format: &str,
    ) -> Result<(), StoreError> {
        let new = NewOutput {
            handle: handle.clone(),
            owner: self.owner(),
            keep_days: self.settings.store_policy.keep_days,
            max_bytes: self.settings.store_policy.outputs_max_bytes,
        };
        let mut draft = self.store.begin_output(new).await?;
        draft.push(value).await?;
        draft.keep(format).await
    }
}
