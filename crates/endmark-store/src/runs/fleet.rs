//! Runs of all machines that share a database, as each machine last reported them.

use std::sync::Arc;

use tokio_postgres::{Client, Error};

use super::{RunCursor, RunMachine, StoredRun, StoredRunEvent};
use crate::engine::Reader;
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::shared::publisher::machine_name;
use crate::shared::{Shared, database, runs};
use crate::store::Store;

/// Reads the runs of all machines that share a store. Without a shared database, reads those of the store.
#[derive(Debug, Clone)]
pub struct Fleet {
    location: StoreLocation,
    shared: Option<Arc<Shared>>,
}

/// Runs of all machines, the newest first.
#[derive(Debug)]
pub struct FleetRuns {
    /// The runs.
    pub runs: Vec<StoredRun>,
    /// The error of the shared database, if it fails. In that case only the runs of this machine are returned.
    pub failure: Option<StoreError>,
}

impl Fleet {
    /// Returns the fleet of an open store. While its database fails, nothing waits for it.
    pub fn of(store: &Store) -> Self {
        Self { location: store.location().clone(), shared: store.shared.clone() }
    }

    /// Returns the fleet of a store that this process does not open. The journal may be in use, or missing.
    pub fn at(location: &StoreLocation) -> Self {
        Self { location: location.clone(), shared: None }
    }

    /// Returns the newest runs after this position, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if this machine's file fails. An error of the database is in the result.
    pub async fn runs(&self, before: Option<RunCursor>, limit: u32) -> Result<FleetRuns, StoreError> {
        let cursor = before.clone();
        let own =
            self.own(move |reader| Ok((reader.runs_before(cursor.as_ref(), limit)?, reader.instance()?)));
        let (mut runs, instance) = own.await?.unwrap_or_default();
        let lookup =
            async |client: &mut Client| runs::elsewhere(client, &instance, before.as_ref(), limit).await;
        let mut failure = None;
        if let Some(elsewhere) = self.look_up(lookup).await {
            let machine = RunMachine::own(&instance);
            for run in &mut runs {
                run.machine = Some(machine.clone());
            }
            match elsewhere {
                Ok(elsewhere) => runs.extend(elsewhere),
                Err(error) => failure = Some(error),
            }
            runs.sort_by(|a, b| (&b.started_at, &b.run.id).cmp(&(&a.started_at, &a.run.id)));
            runs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(FleetRuns { runs, failure })
    }

    /// Returns a run by its id, or by a unique prefix of it, with at most `max_events` events. Runs of other machines
    /// are searched only if this machine has no such run.
    ///
    /// # Errors
    /// [`StoreError::RunNotHere`] if this machine has no such run, and the database does not answer.
    pub async fn run(
        &self,
        id: &str,
        max_events: u32,
    ) -> Result<Option<(StoredRun, Vec<StoredRunEvent>)>, StoreError> {
        let asked = id.to_owned();
        let own = self.own(move |reader| {
            let Some(run) = reader.run(&asked)? else { return Ok((None, reader.instance()?)) };
            let events = reader.run_events(Some(&run.run.id), 0, max_events)?;
            Ok((Some((run, events)), reader.instance()?))
        });
        let (own, instance) = own.await?.unwrap_or_default();
        if let Some((mut run, events)) = own {
            run.machine = self.location.postgres().map(|_| RunMachine::own(&instance));
            return Ok(Some((run, events)));
        }
        if id.is_empty() {
            return Ok(None);
        }
        let lookup = async |client: &mut Client| runs::find(client, &instance, id, max_events).await;
        let Some(found) = self.look_up(lookup).await else { return Ok(None) };
        found.map_err(|error| StoreError::RunNotHere { id: id.to_owned(), detail: error.to_string() })
    }

    /// Reads this machine's file. Returns `None` if the journal does not exist yet.
    async fn own<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let location = self.location.clone();
        let read = tokio::task::spawn_blocking(move || {
            let has_file = location.postgres().is_none() || location.path().exists();
            has_file.then(|| read(&Reader::open(&location)?)).transpose()
        });
        // The task is not cancelled: an error is a panic, reported where it happened, or the end of the runtime.
        read.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs a lookup in the shared database, which has nothing before a gateway or a supervisor first started. Returns
    /// `None` if the store is not shared.
    async fn look_up<T: Default>(
        &self,
        lookup: impl AsyncFnOnce(&mut Client) -> Result<T, Error>,
    ) -> Option<Result<T, StoreError>> {
        let address = self.location.postgres()?;
        let lookup = async |client: &mut Client| match database::schema(client).await? {
            Some(_) => lookup(client).await,
            None => Ok(T::default()),
        };
        Some(match &self.shared {
            Some(shared) => shared.look_up(lookup).await,
            None => address.look_up(lookup).await,
        })
    }
}

impl RunMachine {
    fn own(instance: &str) -> Self {
        Self { name: machine_name(), instance: instance.to_owned(), last_known_at: None }
    }
}
