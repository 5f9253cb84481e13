//! Reads the records of all machines that share a database.

use std::sync::Arc;

use tokio_postgres::{Client, Error};

use crate::engine::{Reader, RequestRecords};
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::records::Recovery;
use crate::shared::reader::SharedReader;
use crate::shared::{Shared, database};
use crate::store::Store;

/// Reads the records of all machines that share a store. If the store is not shared, reads the records of
/// this machine.
#[derive(Debug, Clone)]
pub struct Fleet {
    pub(crate) location: StoreLocation,
    shared: Option<Arc<Shared>>,
}

/// Records of all machines.
#[derive(Debug)]
pub struct FleetRecords<T> {
    /// The records.
    pub records: T,
    /// The error of the shared database, if it fails. The records are then those of this machine alone.
    pub failure: Option<StoreError>,
}

impl Fleet {
    /// Returns the fleet of an open store. While the shared database fails, reads do not wait for it.
    pub fn of(store: &Store) -> Self {
        Self { location: store.location().clone(), shared: store.shared.clone() }
    }

    /// Returns the fleet of a store that this process does not open. The journal may be in use, or missing.
    pub fn at(location: &StoreLocation) -> Self {
        Self { location: location.clone(), shared: None }
    }

    /// Reads records from the shared database, or from this machine's file if the database fails or the store is not shared.
    /// Records of the last second may be missing in the database.
    ///
    /// # Errors
    /// [`StoreError`] if this machine's file fails. An error of the database is in the result, unless this machine has no
    /// file.
    pub async fn read<T: Send + 'static>(
        &self,
        shared: impl AsyncFnOnce(SharedReader) -> Result<T, StoreError>,
        own: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<FleetRecords<T>, StoreError> {
        let failure = match self.read_database(shared).await {
            Some(Ok(records)) => return Ok(FleetRecords { records, failure: None }),
            Some(Err(failure)) => Some(failure),
            None => None,
        };
        match (self.read_own(own).await, failure) {
            (Ok(Some(records)), failure) => Ok(FleetRecords { records, failure }),
            // If this machine's file cannot be read, report the error of the database.
            (Ok(None) | Err(_), Some(failure)) => Err(failure),
            // A store that is not shared always has a file.
            (Ok(None), None) => Err(StoreError::Closed),
            (Err(error), None) => Err(error),
        }
    }

    /// Returns everything about a recovery by its number on this machine, or about a request by its id. The
    /// pieces of other machines' requests have no texts.
    ///
    /// # Errors
    /// [`StoreError::RecordNotHere`] if this machine has no such record, and the database does not answer.
    pub async fn request(&self, id: &str) -> Result<RequestRecords, StoreError> {
        let asked = id.to_owned();
        let own = match self.read_own(move |reader| reader.request_records(&asked)).await {
            Err(error) if self.location.postgres().is_none() => return Err(error),
            own => own.ok().flatten().unwrap_or_default(),
        };
        // Recovery numbers are valid only on this machine.
        if own.recovery.is_some() || own.request.is_some() || id.parse::<i64>().is_ok() {
            return Ok(own);
        }
        let found = self
            .read_database(async |reader: SharedReader| {
                let rows = reader.requests_by_id(&[id]).await?;
                let request = rows.into_iter().next();
                let cuts = reader.cuts(&[id]).await?;
                let recovery = (!cuts.is_empty()).then(|| Recovery { rows: cuts, pieces: Vec::new() });
                Ok(RequestRecords { recovery, request })
            })
            .await;
        let not_here =
            |error: StoreError| StoreError::RecordNotHere { id: id.to_owned(), detail: error.to_string() };
        found.map_or(Ok(own), |found| found.map_err(not_here))
    }

    /// Reads from the shared database, if the store is shared.
    async fn read_database<T>(
        &self,
        read: impl AsyncFnOnce(SharedReader) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let address = self.location.postgres()?;
        // If the journal cannot be read, all records count as those of other machines.
        let instance = self.read_own(Reader::instance).await.ok().flatten().unwrap_or_default();
        let read = async |client: Client| {
            let reader = SharedReader { client, address: address.clone(), instance };
            reader.check_schema().await?;
            read(reader).await
        };
        Some(match &self.shared {
            Some(shared) => shared.connected(read).await,
            None => address.connected(read).await,
        })
    }

    /// Reads this machine's file. Returns `None` if the journal does not exist yet.
    pub(crate) async fn read_own<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let location = self.location.clone();
        let read = tokio::task::spawn_blocking(move || {
            let has_file = location.postgres().is_none() || location.path().exists();
            has_file.then(|| read(&Reader::open(&location)?)).transpose()
        });
        // The task is never cancelled. It can fail only with a panic, which was already reported, or when the
        // runtime ends.
        read.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs a lookup in the shared database. Before the first gateway or supervisor starts, the database has
    /// no tables, and the result is the default value. Returns `None` if the store is not shared.
    pub(crate) async fn look_up<T: Default>(
        &self,
        lookup: impl AsyncFnOnce(&mut Client) -> Result<T, Error>,
    ) -> Option<Result<T, StoreError>> {
        let address = self.location.postgres()?;
        let lookup = async |client: &mut Client| match database::query_schema_version(client).await? {
            Some(_) => lookup(client).await,
            None => Ok(T::default()),
        };
        Some(match &self.shared {
            Some(shared) => shared.look_up(lookup).await,
            None => address.look_up(lookup).await,
        })
    }
}
