//! Publishes the supervised runs of a journal in the database. A separate thread and connection do this, so
//! that no run waits for it. Unpublished data stays in the journal, and the next process that opens the
//! journal publishes it.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::Client;

use super::address::PostgresAddress;
use super::{database, lock_ignoring_poison, runs};
use crate::engine::journal::runs as journal;
use crate::error::StoreError;
use crate::machine::machine_name;
use crate::writer::Writer;

/// Minimum time between two publications. People read the runs, so shorter intervals are not useful.
const MIN_PUBLICATION_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the reports that a supervised run is alive. After a minute without a report, the run counts as
/// silent.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the checks for unpublished data that other processes left in the journal.
const LEFTOVER_CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// Pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Maximum time of one publication.
const PUBLICATION_TIMEOUT: Duration = Duration::from_secs(8);
/// How long a closing process waits for its last publication.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(2);

/// Owns the thread that publishes runs.
pub(crate) struct Publisher {
    state: Arc<PublisherState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct PublisherState {
    address: PostgresAddress,
    instance: String,
    machine: String,
    owner: Arc<str>,
    writer: Arc<Writer>,
    wake: Notify,
    end: Notify,
    /// Whether `close` waits for a last publication.
    is_closing: AtomicBool,
    /// The error of the last publication, if it failed.
    failure: Mutex<Option<StoreError>>,
}

impl Publisher {
    /// Starts the thread. The thread connects only when there is something to publish.
    pub(crate) fn start(
        address: &PostgresAddress,
        instance: String,
        owner: Arc<str>,
        writer: Arc<Writer>,
    ) -> Result<Self, StoreError> {
        let state = Arc::new(PublisherState {
            address: address.clone(),
            instance,
            machine: machine_name(),
            owner,
            writer,
            wake: Notify::new(),
            end: Notify::new(),
            is_closing: AtomicBool::new(false),
            failure: Mutex::default(),
        });
        let failed = |error: std::io::Error| address.store_error(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let of_thread = Arc::clone(&state);
        let work = move || {
            runtime.block_on(of_thread.run());
            // A DNS lookup may still be running. Do not wait for it.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("endmark-runs".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self { state, thread: Mutex::new(Some(thread)) })
    }

    /// Schedules the publication of changed runs.
    pub(crate) fn wake(&self) {
        self.state.wake.notify_one();
    }

    /// Publishes the remaining data within a time limit, then ends the thread.
    pub(crate) async fn close(&self) {
        self.state.is_closing.store(true, Ordering::Release);
        if let Some(thread) = self.stop() {
            // A panic of the thread was already reported.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    /// Returns the error of the last publication, if it failed.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        lock_ignoring_poison(&self.state.failure).clone()
    }

    fn stop(&self) -> Option<JoinHandle<()>> {
        self.state.end.notify_one();
        lock_ignoring_poison(&self.thread).take()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if let Some(thread) = self.stop() {
            let _ = thread.join();
        }
    }
}

impl PublisherState {
    async fn run(&self) {
        let mut client = None;
        tokio::select! {
            biased;
            () = self.end.notified() => {}
            () = self.publish_repeatedly(&mut client) => {}
        }
        if self.is_closing.load(Ordering::Acquire) {
            let last = tokio::time::timeout(CLOSING_TIMEOUT, self.publish_all(&mut client)).await;
            self.store_result(
                last.unwrap_or_else(|_| Err(self.address.timeout_error(CLOSING_TIMEOUT))).err(),
            );
        }
    }

    async fn publish_repeatedly(&self, client: &mut Option<Client>) {
        loop {
            let published = tokio::time::timeout(PUBLICATION_TIMEOUT, self.publish_all(client)).await;
            let published =
                published.unwrap_or_else(|_| Err(self.address.timeout_error(PUBLICATION_TIMEOUT)));
            let pause = if published.is_ok() { MIN_PUBLICATION_INTERVAL } else { RETRY_PAUSE };
            let interval = match &published {
                Ok(true) => HEARTBEAT_INTERVAL,
                Ok(false) => LEFTOVER_CHECK_INTERVAL,
                Err(StoreError::Closed) => return pending().await,
                Err(_) => Duration::ZERO,
            };
            if !matches!(published, Ok(true)) {
                *client = None;
            }
            self.store_result(published.err());
            tokio::time::sleep(pause).await;
            let _ = tokio::time::timeout(interval, self.wake.notified()).await;
        }
    }

    /// Publishes all changes. Returns whether this process supervises a run.
    async fn publish_all(&self, client: &mut Option<Client>) -> Result<bool, StoreError> {
        loop {
            let owner = Arc::clone(&self.owner);
            let due = self.writer.write(move |session| journal::collect(session, &owner)).await?;
            let supervises = !due.supervised_ids.is_empty();
            if due.is_empty() && !supervises {
                return Ok(false);
            }
            let connected = match client.take() {
                Some(client) => client,
                None => self.connect().await?,
            };
            // After a failure the client is gone, so the next attempt connects again.
            let connected = client.insert(connected);
            let published = runs::publish(connected, &self.instance, &self.machine, &due).await;
            published.map_err(|error| self.address.statement_error(&error))?;
            let is_more = due.is_more;
            self.writer.write(move |session| journal::mark_published(session, &due)).await?;
            if !is_more {
                return Ok(supervises);
            }
        }
    }

    /// Connects, and creates missing tables.
    async fn connect(&self) -> Result<Client, StoreError> {
        let client = self.address.connect().await?;
        let found = database::create_tables(&client).await;
        self.address.check_schema(found.map_err(|error| self.address.statement_error(&error))?)?;
        Ok(client)
    }

    /// Stores the result of a publication, and logs a change.
    fn store_result(&self, failure: Option<StoreError>) {
        let mut known = lock_ignoring_poison(&self.failure);
        match (&*known, &failure) {
            (None, Some(error)) => {
                tracing::warn!(%error, "runs wait in the journal: they cannot be published now");
            }
            (Some(_), None) => tracing::info!("runs are published again"),
            _ => {}
        }
        *known = failure;
    }
}
