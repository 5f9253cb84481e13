//! Keeps full values for later reading.

use std::time::Duration;

use endmark_store::{Handle, NewOutput, StoreError};
use tokio::time::timeout;

use super::Subject;

/// Long for a store that works. Clients should not notice more of a store that fails.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

impl Subject<'_> {
    /// Waits briefly for the store: a request continues without it.
    pub(super) async fn patient<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        timeout(STORE_PATIENCE, work).await.unwrap_or_else(|_| {
            let path = self.store.location().path().to_owned();
            Err(StoreError::Failed { path, detail: format!("no answer within {STORE_PATIENCE:?}") })
        })
    }

    /// Keeps a value under this handle.
    pub(super) async fn keep(&self, handle: &Handle, value: &[u8], format: &str) -> Result<(), StoreError> {
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
