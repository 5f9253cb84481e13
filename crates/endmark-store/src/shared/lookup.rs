//! Looks up data in the database that this instance's file does not contain. Lookups use a separate
//! connection, so that budgets do not wait for them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::Shared;
use super::address::PostgresAddress;
use crate::error::StoreError;

/// Maximum time of one lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

impl PostgresAddress {
    /// Connects and runs one lookup.
    pub(crate) async fn look_up<T>(
        &self,
        lookup: impl AsyncFnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        let lookup = async |mut client: Client| {
            lookup(&mut client).await.map_err(|error| self.statement_error(&error))
        };
        self.connected(lookup).await
    }

    /// Runs a lookup over a separate connection.
    pub(crate) async fn connected<T>(
        &self,
        lookup: impl AsyncFnOnce(Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = tokio::time::timeout(LOOKUP_TIMEOUT, async { lookup(self.connect().await?).await });
        answer.await.unwrap_or_else(|_| Err(self.timeout_error(LOOKUP_TIMEOUT)))
    }
}

impl Shared {
    /// Runs a lookup as [`connected`](Self::connected) does.
    pub(crate) async fn look_up<T>(
        &self,
        lookup: impl AsyncFnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        let address = &self.state.address;
        self.connected(async |mut client: Client| {
            lookup(&mut client).await.map_err(|error| address.statement_error(&error))
        })
        .await
    }

    /// Runs a lookup over a separate connection. Only one runs at a time, so an instance has at most two
    /// connections. Fails at once while the database fails.
    pub(crate) async fn connected<T>(
        &self,
        lookup: impl AsyncFnOnce(Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let address = &self.state.address;
        let answer = tokio::time::timeout(LOOKUP_TIMEOUT, async {
            let _turn = self.lookups.lock().await;
            address.connected(lookup).await
        });
        answer.await.unwrap_or_else(|_| Err(address.timeout_error(LOOKUP_TIMEOUT)))
    }

    /// Schedules the upload of new outputs and summaries.
    pub(crate) fn schedule_uploads(&self) {
        self.state.has_uploads.store(true, Ordering::Release);
        self.state.wake.notify_one();
    }
}
