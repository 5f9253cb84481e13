//! The store handle that requests share.

use std::fmt;
use std::sync::Arc;

use endmark_context::budget::Unit;

use crate::budgets::RaiseOutcome;
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
use crate::records::{Recovery, RecoveryRow, StoreCondition, UncommittedRecords, WriterHealth};
use crate::refusals::{Refusals, RefusedRequest};
use crate::scrub::Scrub;
use crate::shared::publisher::Publisher;
use crate::shared::usage::SharedSums;
use crate::shared::work::random_text;
use crate::shared::{Shared, database};
use crate::writer::{MAX_QUEUED_WRITES, Writer, WriterSettings};

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
    /// The connection to the shared database, if there is one.
    pub(crate) shared: Option<Arc<Shared>>,
    /// Publishes supervised runs in the shared database.
    publisher: Option<Arc<Publisher>>,
    pub(crate) owner: Arc<str>,
    pub(crate) refusals: Arc<Refusals>,
    location: Arc<StoreLocation>,
}

impl Store {
    /// Opens the store. Creates a missing file (mode 0600), migrates its tables, and logs the open recoveries of dead
    /// processes as `EXHAUSTED` (PC-7). It blocks: do not call it in an async task.
    pub fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        Self::open_with(
            location,
            WriterSettings { busy_timeout: BUSY_TIMEOUT, queue: MAX_QUEUED_WRITES },
            true,
        )
    }

    /// Opens the store to record supervised runs. Calls cannot be held in budgets. With PostgreSQL, a gateway
    /// may be using the journal at the same time, and runs do not wait for the database.
    pub fn open_for_runs(location: &StoreLocation) -> Result<Self, StoreError> {
        Self::open_with(
            location,
            WriterSettings { busy_timeout: BUSY_TIMEOUT, queue: MAX_QUEUED_WRITES },
            false,
        )
    }

    /// Opens the store. With `is_instance`, it takes part in the shared budgets, if there are any.
    pub(crate) fn open_with(
        location: &StoreLocation,
        tuning: WriterSettings,
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
                Some(postgres) => Ok(Some((postgres, journal::open(connection, path, &random_text())?))),
                None => journal::fail_if_journal(connection, path).map(|()| None),
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
    pub fn condition(&self) -> StoreCondition {
        let counts = self.writer.counts();
        let (writes_waiting, rows_waiting) = self.writer.waiting_counts();
        let (unrecorded, unnoted) = self.ledger.loss_counts();
        StoreCondition {
            failure: self.writer.failure().or_else(|| self.shared.as_ref()?.failure()),
            slate_rejects_calls: self.ledger.slate_fails(),
            calls_open: u64::from(self.ledger.open_calls())
                .saturating_sub(rows_waiting as u64)
                .saturating_sub(counts.rows_left + counts.rows_lost),
            rows_waiting: rows_waiting as u64 + counts.rows_left,
            rows_unreported: self.shared.as_ref().map_or(0, |shared| shared.unreported_rows()),
            writes_waiting: writes_waiting as u64 + self.late_records.kept_records(),
            renewals: counts.renewals,
            was_renewed_lately: counts.renewed_lately,
            commits: counts.commits,
            failures: counts.failures,
            rows_committed: counts.rows,
            rows_lost: unrecorded + counts.refused_rows + counts.rows_lost,
            cuts_lost: self.late_records.lost_records(),
            unprotected_calls: unnoted,
        }
    }

    /// Deletes cut replies with their pieces, upstream calls and runs older than `keep_days`, and outputs whose own
    /// retention is over. Returns the number of deleted rows. In a shared database, calls, runs and ended budgets are
    /// deleted soon after.
    pub async fn delete_older_than(&self, keep_days: u32) -> Result<u64, StoreError> {
        let mut forgotten =
            self.writer.write(move |session| recoveries::delete_old(session, keep_days)).await?;
        forgotten += self.writer.write(|session| outputs::delete_expired(session)).await?;
        forgotten += self.writer.write(move |session| runs::delete_old(session, keep_days)).await?;
        forgotten += self.writer.write(|session| compactions::delete_expired(session)).await?;
        loop {
            match self.writer.write(move |session| usage::delete_old(session, keep_days)).await? {
                0 => break,
                calls => forgotten += calls,
            }
        }
        self.writer.write(|session| budgets::delete_old_entries(session)).await?;
        if let Some(shared) = &self.shared {
            shared.schedule_deletion(keep_days);
            let day = usage::first_kept_day(keep_days);
            self.writer.write(move |session| journal::delete_ended_shares(session, &day)).await?;
        }
        self.writer.write(|session| sums::delete_unused_classes(session)).await?;
        Ok(forgotten)
    }

    /// Adds calls that are not summed yet to the sums, and returns their number. It uses short transactions,
    /// so other writers wait only briefly. Sums make reads faster, but do not change their results.
    pub async fn sum_calls(&self) -> Result<u64, StoreError> {
        let mut summed = 0;
        loop {
            match self.writer.write(|session| sums::sum_oldest_calls(session)).await? {
                0 => break,
                calls => summed += calls,
            }
        }
        while self.writer.write(|session| cuts::sum_one_day(session)).await? {}
        Ok(summed)
    }

    /// Raises the budget of a session (CX-7), and reopens the session if its budget was exhausted.
    pub async fn raise_budget(&self, session: &str, unit: Unit, by: u64) -> Result<RaiseOutcome, StoreError> {
        if let Some(shared) = &self.shared {
            return shared
                .look_up(async |client| database::raise_budget(client, session, unit, by).await)
                .await;
        }
        let session = session.to_owned();
        self.writer.write(move |engine| budgets::raise(engine, &session, unit.name(), by)).await
    }

    /// Fails if the store is shared, because the operation would change only this instance.
    pub(crate) fn fail_if_shared(&self, what: &'static str) -> Result<(), StoreError> {
        if self.shared.is_some() { Err(StoreError::UnsupportedWhenShared { what }) } else { Ok(()) }
    }

    /// Schedules the upload of new outputs and summaries, if instances share the store.
    pub(crate) fn schedule_uploads(&self) {
        if let Some(shared) = &self.shared {
            shared.schedule_uploads();
        }
    }

    /// Schedules the publication of changed runs, if instances share the store.
    pub(crate) fn schedule_publication(&self) {
        if let Some(publisher) = &self.publisher {
            publisher.wake();
        }
    }

    /// Returns the error of the last publication of runs in the shared database, if it failed. Unpublished
    /// runs stay in the journal.
    pub fn publication_failure(&self) -> Option<StoreError> {
        self.publisher.as_ref()?.failure()
    }

    /// Passes once through the queue, the writer and the file, for a readiness check.
    pub async fn health(&self) -> Result<WriterHealth, StoreError> {
        let has_failed = self.writer.failure().is_some();
        let open_cuts = move |session: &Session| {
            if has_failed {
                session.test_write()?;
            }
            Ok(recoveries::open_cuts(session)?)
        };
        let open_cuts = self.writer.write(open_cuts).await?;
        let counts = self.writer.counts();
        Ok(WriterHealth {
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
        // The task is never cancelled. It can fail only with a panic, which was already reported, or when the
        // runtime ends.
        read.await.map_err(|_| StoreError::Closed)?
    }

    /// Reads sums as [`shared_sums`](crate::shared_sums) does. Fails at once while the database fails.
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
    pub fn recent(&self, limit: u32, filter: &LogFilter) -> Result<Vec<RecoveryRow>, StoreError> {
        self.reader()?.recent(limit, filter)
    }

    /// See [`Reader::show`]. It blocks.
    pub fn show(&self, id: &str) -> Result<Option<Recovery>, StoreError> {
        self.reader()?.show(id)
    }

    /// Returns the location of the store.
    pub fn location(&self) -> &StoreLocation {
        &self.location
    }

    /// Accepts no more writes, and returns when all queued writes are committed. Later writes through any
    /// clone fail with [`StoreError::Closed`]. Rows of calls that cannot be committed are left to the next
    /// start if possible. Returns their numbers, also when it is called again.
    pub async fn close(&self) -> UncommittedRecords {
        self.late_records.close().await;
        if let Some(publisher) = &self.publisher {
            publisher.close().await;
        }
        if let Some(shared) = &self.shared {
            shared.close().await;
        }
        let leftover = self.writer.close().await;
        if let Some(shared) = &self.shared {
            shared.release_journal();
        }
        UncommittedRecords { cuts_lost: self.late_records.lost_at_close_records(), ..leftover }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Store").field("location", &self.location).finish_non_exhaustive()
    }
}
