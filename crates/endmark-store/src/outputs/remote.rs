//! Reads outputs that other instances of a shared store keep.

use super::Handle;
use crate::engine::Reader;
use crate::engine::fetched_output::FetchedOutput;
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::shared::outputs;
use crate::store::Store;

impl Store {
    /// Runs `work` like [`Store::read`], with a reader that finds this output. If the store is shared and
    /// this instance does not have the output, fetches it from the database. The reader then finds no other
    /// output.
    ///
    /// # Errors
    /// [`StoreError::OutputNotHere`] if this instance does not have it and the database does not respond.
    pub async fn read_output<T: Send + 'static>(
        &self,
        handle: &Handle,
        work: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(shared) = &self.shared else { return self.read(work).await };
        let wanted_handle = handle.clone();
        if self.read(move |reader| reader.has_output(&wanted_handle)).await? {
            return self.read(work).await;
        }
        let fetched = shared.look_up(async |client| outputs::fetch(client, handle.as_str()).await).await;
        let (location, handle) = (self.location().clone(), handle.clone());
        let read = tokio::task::spawn_blocking(move || {
            run_on_fetched(Reader::open(&location), &location, &handle, fetched, work)
        });
        read.await.map_err(|_| StoreError::Closed)?
    }
}

impl Reader {
    /// Runs `work` with a reader that finds this output, whether this instance or another one keeps it. This
    /// function blocks: do not use it in an async task.
    ///
    /// # Errors
    /// [`StoreError::OutputNotHere`] if this instance does not have it and the shared database does not respond.
    pub fn read_output<T>(
        location: &StoreLocation,
        handle: &Handle,
        work: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let reader = Self::open(location);
        let Some(address) = location.postgres() else { return work(&reader?) };
        if let Ok(reader) = &reader
            && reader.has_output(handle)?
        {
            return work(reader);
        }
        let fetch = async {
            let client = address.connect().await?;
            let fetched = outputs::fetch(&client, handle.as_str()).await;
            fetched.map_err(|error| address.statement_error(&error))
        };
        let fetched = block_on(location, fetch);
        run_on_fetched(reader, location, handle, fetched, work)
    }
}

/// Runs `work` on the fetched output. If the database does not have it, uses this instance's reader, which
/// can tell whether the output has expired.
fn run_on_fetched<T>(
    reader: Result<Reader, StoreError>,
    location: &StoreLocation,
    handle: &Handle,
    fetched: Result<Option<FetchedOutput>, StoreError>,
    work: impl FnOnce(&Reader) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let unreachable = match fetched {
        Ok(Some(output)) => return work(&Reader::from_fetched(location.path(), &output)?),
        Ok(None) => None,
        Err(error) => Some(error),
    };
    let read = match reader {
        Ok(reader) => work(&reader),
        Err(StoreError::NoFile { .. }) => Err(StoreError::NoOutput { handle: handle.to_string() }),
        Err(error) => Err(error),
    };
    match (read, unreachable) {
        (Err(StoreError::NoOutput { .. }), Some(error)) => {
            Err(StoreError::OutputNotHere { handle: handle.to_string(), detail: error.to_string() })
        }
        (read, _) => read,
    }
}

/// Records in the database that an output was read, which restarts its retention time.
pub(super) fn record_read_in_database(location: &StoreLocation, handle: &Handle) -> Result<(), StoreError> {
    let Some(address) = location.postgres() else { return Ok(()) };
    block_on(location, async {
        let client = address.connect().await?;
        let touched = outputs::record_uses(&client, &[handle.as_str()]).await;
        touched.map(|_| ()).map_err(|error| address.statement_error(&error))
    })
}

/// Runs a future to its end in a program without a runtime.
fn block_on<T>(
    location: &StoreLocation,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| StoreError::from_io(location.path(), &error))?;
    runtime.block_on(work)
}
