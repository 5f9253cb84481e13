//! The store handle that requests share.

use std::fmt;
use std::sync::Arc;

use endmark_context::budget::Unit;

use crate::budgets::Raised;
use crate::engine::journal::Instance;
use crate::engine::{
    self, BUSY_TIMEOUT, Dimension, LogFilter, Reader, Session, budgets, compactions, cuts, journal, outputs,
    recoveries, runs, sums, usage,
};
use crate::error::StoreError;
use crate::late::LateRecords;
use crate::leases::Leases;
use crate::ledger::Ledger;
use crate::ledger::slate::Slate;
use crate::location::StoreLocation;
use crate::recorder::Recorder;
use crate::records::{Condition, Health, Leftover, LogRow, Recovery};
use crate::refusals::{Refusals, RefusedRequest};
use crate::scrub::Scrub;
use crate::shared::publisher::Publisher;
use crate::shared::usage::SharedSums;
use crate::shared::work::random;
use crate::shared::{Shared, database};
use crate::writer::{QUEUE, Tuning, Writer};

/// An open store. Cloning it is cheap; all clones share one writer.
///
/// Call [`Store::close`] before the process ends. Dropping the last clone also writes the queue, but blocks.
///
/// ```
/// use endmark_store::{CutSettled, CutStarted, FinalStatus, LogFilter, NoSecrets, Store, StoreLocation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("endmark.db");
/// let store = Store::open(&StoreLocation::sqlite(path))?;
/// let recorder = store.recorder(NoSecrets);
/// let id = recorder
///     .begin_cut(CutStarted {
///         request_id: "req_1".to_owned(),
///         slot: "choice 0".to_owned(),
///         task_id: "task".to_owned(),
///         turn_number: 1,
///         truncation_index: Some(17),
///         initial_chunk_length: 20,
///         model: "m".to_owned(),
///         provider: "local".to_owned(),
///         cut_kind: "limit".to_owned(),
///     })
///     .await?;
/// let row = recorder
///     .settle_cut(id, CutSettled {
///         final_status: FinalStatus::Resolved,
///         resume_attempts: 1,
///         outcome: "resumed".to_owned(),
///         seam_style: Some("exact".to_owned()),
///         extra_prompt_tokens: 40,
///         extra_output_tokens: 12,
///         reason: "the text is whole JSON".to_owned(),
///         pieces: Vec::new(),
///     })
///     .await?;
/// let recent = store.recent(10, &LogFilter::default())?;
/// assert_eq!((recent.len(), recent[0].id), (1, row));
/// store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) writer: Arc<Writer>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) late_records: Arc<LateRecords>,
    /// The database that it shares with other instances.
    pub(crate) shared: Option<Arc<Shared>>,
    /// Publishes its runs there.
    publisher: Option<Arc<Publisher>>,
    pub(crate) owner: Arc<str>,
    pub(crate) refusals: Arc<Refusals>,
    location: Arc<StoreLocation>,
}

impl Store {
    /// Opens the store. Creates a missing file (mode 0600), migrates its tables, and logs the open recoveries of dead
    /// processes as `EXHAUSTED` (PC-7). It blocks: do not call it in an async task.
    pub fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        Self::open_with(location, Tuning { busy_timeout: BUSY_TIMEOUT, queue: QUEUE }, true)
    }

    /// Opens the store to record supervised runs. With PostgreSQL the journal may be in use by a gateway, nothing waits
    /// for the database, and calls cannot be held in budgets.
    pub fn open_for_runs(location: &StoreLocation) -> Result<Self, StoreError> {
        Self::open_with(location, Tuning { busy_timeout: BUSY_TIMEOUT, queue: QUEUE }, false)
    }

    /// Opens the store. `is_instance` takes part in the shared budgets, if there are any.
    pub(crate) fn open_with(
        location: &StoreLocation,
        tuning: Tuning,
        is_instance: bool,
    ) -> Result<Self, StoreError> {
        if location.postgres().is_some() && location.path().as_os_str().is_empty() {
            return Err(StoreError::NoJournal);
        }
        let location = location.absolute();
        location.make_folder()?;
        let path = location.path();
        let (session, owner, shared) =
            Session::open(path, tuning.busy_timeout, |connection| match location.postgres() {
                Some(postgres) => Ok(Some((postgres, journal::open(connection, path, &random())?))),
                None => journal::refuse(connection, path).map(|()| None),
            })
            .map_err(|error| location.error_at_location(error))?;
        let slate = Arc::new(Slate::new(owner));
        let name = Arc::from(slate.owner());
        let leases = Arc::new(Leases::new());
        let writer =
            Arc::new(Writer::start(session, Arc::clone(&slate), Arc::clone(&leases), &location, tuning)?);
        let ledger = Arc::new(Ledger::new(slate, writer.queue(), Arc::clone(&leases)));
        let publish = |(postgres, instance): &(&_, Instance)| {
            Publisher::start(postgres, instance.id.clone(), Arc::clone(&name), Arc::clone(&writer))
        };
        let publisher = shared.as_ref().map(publish).transpose()?.map(Arc::new);
        let start = |(postgres, instance)| {
            Shared::start(postgres, path, instance, Arc::clone(&writer), Arc::clone(&leases))
        };
        let shared = shared.filter(|_| is_instance).map(start).transpose()?.map(Arc::new);
        Ok(Self {
            writer,
            shared,
            publisher,
            ledger,
            leases,
            late_records: Arc::new(LateRecords::new()),
            owner: name,
            refusals: Arc::default(),
            location: Arc::new(location),
        })
    }

    /// Returns the newest requests that were refused since the store was opened, the oldest first.
    pub fn refusals(&self) -> Vec<RefusedRequest> {
        self.refusals.all_refusals()
    }

    /// Returns a recorder that removes these secrets from texts. All texts enter the store through a recorder, except
    /// outputs, which are kept unchanged ([`Store::begin_output`]).
    pub fn recorder(&self, secrets: impl Scrub + 'static) -> Recorder {
        Recorder { store: self.clone(), secrets: Arc::new(secrets) }
    }

    /// Returns the current condition of the store, without accessing the disk.
    pub fn condition(&self) -> Condition {
        let counts = self.writer.counts();
        let (writes_waiting, rows_waiting) = self.writer.waiting_counts();
        let (unrecorded, unnoted) = self.ledger.losses();
        Condition {
            failure: self.writer.failure().or_else(|| self.shared.as_ref()?.failure()),
            calls_not_noted: self.ledger.slate_fails(),
            calls_open: u64::from(self.ledger.open_calls())
                .saturating_sub(rows_waiting as u64)
                .saturating_sub(counts.rows_left + counts.rows_lost),
            rows_waiting: rows_waiting as u64 + counts.rows_left,
            rows_unreported: self.shared.as_ref().map_or(0, |shared| shared.unreported_rows()),
            writes_waiting: writes_waiting as u64 + self.late_records.kept_records(),
            renewals: counts.renewals,
            renewed_lately: counts.renewed_lately,
            commits: counts.commits,
            failures: counts.failures,
            rows_committed: counts.rows,
            rows_lost: unrecorded + counts.refused_rows + counts.rows_lost,
            cuts_lost: self.late_records.lost_records(),
            calls_unnoted: unnoted,
        }
    }

    /// Deletes cut replies with their pieces, upstream calls and runs older than `keep_days`, and outputs whose own
    /// retention is over. Returns the number of deleted rows. In a shared database, calls, runs and ended budgets are
    /// deleted soon after.
    pub async fn forget_after(&self, keep_days: u32) -> Result<u64, StoreError> {
        let mut forgotten = self.writer.write(move |session| recoveries::forget(session, keep_days)).await?;
        forgotten += self.writer.write(|session| outputs::forget(session)).await?;
        forgotten += self.writer.write(move |session| runs::forget(session, keep_days)).await?;
        forgotten += self.writer.write(|session| compactions::forget(session)).await?;
        loop {
            match self.writer.write(move |session| usage::forget(session, keep_days)).await? {
                0 => break,
                calls => forgotten += calls,
            }
        }
        self.writer.write(|session| budgets::forget(session)).await?;
        if let Some(shared) = &self.shared {
            shared.forget_after(keep_days);
            let day = usage::first_kept_day(keep_days);
            self.writer.write(move |session| journal::forget_ended(session, &day)).await?;
        }
        self.writer.write(|session| sums::forget_classes(session)).await?;
        Ok(forgotten)
    }

    /// Sums the calls that are in no sum yet, and returns how many. Short transactions keep other writers from
    /// waiting. Reads return the same results before and after, but are faster after.
    pub async fn sum_calls(&self) -> Result<u64, StoreError> {
        let mut summed = 0;
        loop {
            match self.writer.write(|session| sums::step(session)).await? {
                0 => break,
                calls => summed += calls,
            }
        }
        while self.writer.write(|session| cuts::step(session)).await? {}
        Ok(summed)
    }

    /// Raises the budget of a session (CX-7), and reopens the session if its budget was exhausted.
    pub async fn raise_budget(&self, session: &str, unit: Unit, by: u64) -> Result<Raised, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.look_up(async |client| database::raise(client, session, unit, by).await).await;
        }
        let session = session.to_owned();
        self.writer.write(move |engine| budgets::raise(engine, &session, unit.name(), by)).await
    }

    /// Error if the store is shared: the operation would change this instance alone.
    pub(crate) fn alone(&self, what: &'static str) -> Result<(), StoreError> {
        if self.shared.is_some() { Err(StoreError::NotShared { what }) } else { Ok(()) }
    }

    /// Has new outputs and summaries uploaded soon, if instances share the store.
    pub(crate) fn note_uploads(&self) {
        if let Some(shared) = &self.shared {
            shared.note_uploads();
        }
    }

    /// Has changed runs published soon, if instances share the store.
    pub(crate) fn note_runs(&self) {
        if let Some(publisher) = &self.publisher {
            publisher.wake();
        }
    }

    /// Returns the error that keeps runs from being published in the shared database, if there is one. They wait in the
    /// journal.
    pub fn unpublished(&self) -> Option<StoreError> {
        self.publisher.as_ref()?.failure()
    }

    /// Passes once through the queue, the writer and the file, for a readiness check.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let has_failed = self.writer.failure().is_some();
        let open_cuts = move |session: &Session| {
            if has_failed {
                session.probe()?;
            }
            Ok(recoveries::open_cuts(session)?)
        };
        let open_cuts = self.writer.write(open_cuts).await?;
        let counts = self.writer.counts();
        Ok(Health {
            schema: engine::known_schema(),
            open_cuts,
            commits: counts.commits,
            writes: counts.writes,
        })
    }

    /// Reads in an async task: runs `work` on a blocking thread, with a reader on the same file.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let location = Arc::clone(&self.location);
        let read = tokio::task::spawn_blocking(move || work(&Reader::open(&location)?));
        // The task is not cancelled: an error is a panic, reported where it happened, or the end of the runtime.
        read.await.map_err(|_| StoreError::Closed)?
    }

    /// Reads sums as [`shared_sums`](crate::shared_sums) does, with an error at once while the database fails.
    ///
    /// # Errors
    /// [`StoreError`] if the database cannot be reached or fails.
    pub async fn shared_sums(
        &self,
        by: Dimension,
        since: &str,
        until: &str,
    ) -> Result<Option<SharedSums>, StoreError> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let sums =
            shared.look_up(async |client| crate::shared::usage::query_sums(client, by, since, until).await);
        sums.await.map(Some)
    }

    /// Opens a reader on the same file. It and all its methods block.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.location)
    }

    /// See [`Reader::recent`]. It blocks.
    pub fn recent(&self, limit: u32, filter: &LogFilter) -> Result<Vec<LogRow>, StoreError> {
        self.reader()?.recent(limit, filter)
    }

    /// See [`Reader::show`]. It blocks.
    pub fn show(&self, id: &str) -> Result<Option<Recovery>, StoreError> {
        self.reader()?.show(id)
    }

    /// The location of the store.
    pub fn location(&self) -> &StoreLocation {
        &self.location
    }

    /// Accepts no more writes, and returns when all queued writes are committed. Later writes through any clone
    /// return [`StoreError::Closed`]. Rows of calls that cannot be committed are left to the next start if possible.
    /// Returns how many, also to every later caller.
    pub async fn close(&self) -> Leftover {
        self.late_records.close().await;
        if let Some(publisher) = &self.publisher {
            publisher.close().await;
        }
        if let Some(shared) = &self.shared {
            shared.close().await;
        }
        let leftover = self.writer.close().await;
        if let Some(shared) = &self.shared {
            shared.release();
        }
        Leftover { cuts_lost: self.late_records.lost_at_close(), ..leftover }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Store").field("location", &self.location).finish_non_exhaustive()
    }
}
