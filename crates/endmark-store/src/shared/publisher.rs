//! Publishes the supervised runs of a journal in the database. It has its own thread and connection, so that no run
//! waits for it. Unpublished data stays in the journal, and the next process that opens the journal publishes it.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::Client;

use super::address::PostgresAddress;
use super::{database, lock_state, runs};
use crate::engine::journal::runs as journal;
use crate::error::StoreError;
use crate::machine::machine_name;
use crate::writer::Writer;

/// Minimum time between two publications. People read them, so more often is not useful.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a supervised run is reported as alive. A run without a report for a minute counts as silent.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How often to look for unpublished data of other processes in the journal.
const LEFTOVER_INTERVAL: Duration = Duration::from_mins(1);
/// Pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Maximum time of one publication.
const DEADLINE: Duration = Duration::from_secs(8);
/// How long a closing process waits for its last publication.
const CLOSING_TIME: Duration = Duration::from_secs(2);

/// Owns the thread that publishes runs.
pub(crate) struct Publisher {
    state: Arc<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct State {
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
        let state = Arc::new(State {
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
            // A DNS lookup may still be running. Nothing waits for it.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("endmark-runs".to_owned()).spawn(work).map_err(failed)?;
        Ok(Self { state, thread: Mutex::new(Some(thread)) })
    }

    /// Schedules the publication of changed runs.
    pub(crate) fn wake(&self) {
        self.state.wake.notify_one();
    }

    /// Publishes the remaining data within a time limit, and ends the thread.
    pub(crate) async fn close(&self) {
        self.state.is_closing.store(true, Ordering::Release);
        if let Some(thread) = self.stop() {
            // A panic of the thread was already reported.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    /// Returns the error of the last publication, if it failed.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        lock_state(&self.state.failure).clone()
    }

    fn stop(&self) -> Option<JoinHandle<()>> {
        self.state.end.notify_one();
        lock_state(&self.thread).take()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if let Some(thread) = self.stop() {
            let _ = thread.join();
        }
    }
}

impl State {
    async fn run(&self) {
        let mut client = None;
        tokio::select! {
            biased;
            () = self.end.notified() => {}
            () = self.publish_for_ever(&mut client) => {}
        }
        if self.is_closing.load(Ordering::Acquire) {
            let last = tokio::time::timeout(CLOSING_TIME, self.publish_all(&mut client)).await;
            self.note(last.unwrap_or_else(|_| Err(self.address.unanswered(CLOSING_TIME))).err());
        }
    }

    async fn publish_for_ever(&self, client: &mut Option<Client>) {
        loop {
            let published = tokio::time::timeout(DEADLINE, self.publish_all(client)).await;
            let published = published.unwrap_or_else(|_| Err(self.address.unanswered(DEADLINE)));
            let pause = if published.is_ok() { PAUSE } else { RETRY_PAUSE };
            let interval = match &published {
                Ok(true) => HEARTBEAT,
                Ok(false) => LEFTOVER_INTERVAL,
                Err(StoreError::Closed) => return pending().await,
                Err(_) => Duration::ZERO,
            };
            if !matches!(published, Ok(true)) {
                *client = None;
            }
            self.note(published.err());
            tokio::time::sleep(pause).await;
            let _ = tokio::time::timeout(interval, self.wake.notified()).await;
        }
    }

    /// Publishes all changes. Returns whether this process supervises a run.
    async fn publish_all(&self, client: &mut Option<Client>) -> Result<bool, StoreError> {
        loop {
            let owner = Arc::clone(&self.owner);
            let due = self.writer.write(move |session| journal::collect(session, &owner)).await?;
            let supervises = !due.supervised.is_empty();
            if due.is_empty() && !supervises {
                return Ok(false);
            }
            let connected = match client.take() {
                Some(client) => client,
                None => self.connect().await?,
            };
            // After a failure, the next attempt connects again.
            let connected = client.insert(connected);
            let published = runs::publish(connected, &self.instance, &self.machine, &due).await;
            published.map_err(|error| self.address.statement_error(&error))?;
            let is_more = due.is_more;
            self.writer.write(move |session| journal::note(session, &due)).await?;
            if !is_more {
                return Ok(supervises);
            }
        }
    }

    /// Connects, and creates missing tables.
    async fn connect(&self) -> Result<Client, StoreError> {
        let client = self.address.connect().await?;
        let found = database::make_tables(&client).await;
        self.address.check_schema(found.map_err(|error| self.address.statement_error(&error))?)?;
        Ok(client)
    }

    /// Records the result, and logs a change.
    fn note(&self, failure: Option<StoreError>) {
        let mut known = lock_state(&self.failure);
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
