//! The handle that requests hold.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::connection::{BUSY_TIMEOUT, open_for_writing};
use crate::error::StoreError;
use crate::location::StoreLocation;
use crate::owner::{self, Owner};
use crate::reader::{LogFilter, Reader};
use crate::records::{CutId, CutSettled, CutStarted, Health, LogRow, Recovery};
use crate::writer::{QUEUE, Writer};
use crate::{capabilities, migrate, recoveries};

/// An open store. Cloning it is cheap; all clones share one writer.
///
/// Call [`Store::close`] before the process ends; dropping the last clone writes out what is queued too, but
/// blocks meanwhile.
///
/// ```
/// use endmark_store::{CutSettled, CutStarted, FinalStatus, LogFilter, Store, StoreLocation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("endmark.db");
/// let store = Store::open(&StoreLocation::sqlite(path))?;
/// let id = store
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
/// let row = store
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
    owner: Arc<str>,
    location: Arc<StoreLocation>,
}

/// What only tests choose differently.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) busy_timeout: Duration,
    pub(crate) queue: usize,
}

impl Store {
    /// Opens the store, creating its file (mode 0600) when it is not there, brings its tables up to date, and
    /// logs as `EXHAUSTED` what processes that are no longer alive left open (PC-7). It blocks: not for an
    /// async task.
    pub fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        Self::open_with(location, Tuning { busy_timeout: BUSY_TIMEOUT, queue: QUEUE })
    }

    pub(crate) fn open_with(location: &StoreLocation, tuning: Tuning) -> Result<Self, StoreError> {
        let path = location.path();
        let mut connection = open_for_writing(path, tuning.busy_timeout)?;
        let owner = move_in(&mut connection, path)?;
        let name = Arc::from(owner.name());
        let writer = Writer::start(connection, owner, path, tuning.queue)?;
        Ok(Self { writer: Arc::new(writer), owner: name, location: Arc::new(location.clone()) })
    }

    /// Leaves a durable intent: a reply was cut, and its outcome is to follow. Answers once it is committed.
    pub async fn begin_cut(&self, cut: CutStarted) -> Result<CutId, StoreError> {
        let owner = Arc::clone(&self.owner);
        self.writer.write(move |connection| recoveries::begin(connection, &owner, &cut)).await
    }

    /// Writes the outcome, with its pieces, and removes the intent, in one transaction (PC-7). Answers the
    /// row's number once it is committed; [`StoreError::NoSuchCut`] if it was settled before.
    pub async fn settle_cut(&self, id: CutId, settled: CutSettled) -> Result<i64, StoreError> {
        self.writer.write(move |connection| recoveries::settle(connection, id, &settled)).await
    }

    /// What was learned about prefill at this upstream with this model, if anything.
    pub async fn capability(&self, upstream: &str, model: &str) -> Result<Option<String>, StoreError> {
        let (upstream, model) = (upstream.to_owned(), model.to_owned());
        self.writer.write(move |connection| capabilities::prefill(connection, &upstream, &model)).await
    }

    /// Remembers what was learned about prefill, in place of what was known before.
    pub async fn remember_capability(
        &self,
        upstream: &str,
        model: &str,
        prefill: &str,
    ) -> Result<(), StoreError> {
        let (upstream, model, prefill) = (upstream.to_owned(), model.to_owned(), prefill.to_owned());
        self.writer
            .write(move |connection| capabilities::remember(connection, &upstream, &model, &prefill))
            .await
    }

    /// Forgets rows, with their pieces, that are older than so many days; answers how many.
    pub async fn forget_after(&self, keep_days: u32) -> Result<u64, StoreError> {
        self.writer.write(move |connection| recoveries::forget(connection, keep_days)).await
    }

    /// Goes once through the queue, the writer and the file, for a readiness check.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let open_cuts = self.writer.write(|connection| Ok(recoveries::open_cuts(connection)?)).await?;
        let (commits, writes) = self.writer.counts();
        Ok(Health { schema: migrate::known(), open_cuts, commits, writes })
    }

    /// Opens a reader on the same file. It blocks, as do all its methods.
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

    /// Where the store is.
    pub fn location(&self) -> &StoreLocation {
        &self.location
    }

    /// Takes no more writes and returns when all that were queued are committed. Later writes, through any
    /// clone, answer [`StoreError::Closed`].
    pub async fn close(&self) {
        self.writer.close().await;
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Store").field("location", &self.location).finish_non_exhaustive()
    }
}

/// Migrates, takes over what the dead left open, and registers, all under the database's write lock: two
/// processes that start at once do it one after the other.
fn move_in(connection: &mut Connection, path: &Path) -> Result<Owner, StoreError> {
    let failed = |error| StoreError::of_sqlite(path, &error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    migrate::migrate(&transaction, path)?;
    recoveries::settle_interrupted(&transaction, path).map_err(failed)?;
    owner::sweep(path).map_err(|error| StoreError::of_io(path, &error))?;
    let owner = Owner::register(path).map_err(|error| StoreError::of_io(path, &error))?;
    transaction.commit().map_err(failed)?;
    Ok(owner)
}
