//! The handle that requests hold.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::calls::CallStarted;
use crate::connection::{BUSY_TIMEOUT, open_for_writing};
use crate::error::StoreError;
use crate::late::Late;
use crate::ledger::{self, Ledger, OpenCall, Slate};
use crate::location::StoreLocation;
use crate::owner::{self, Owner};
use crate::reader::{LogFilter, Reader};
use crate::records::{Condition, CutId, CutSettled, CutStarted, Health, Leftover, LogRow, Recovery};
use crate::writer::{QUEUE, Writer, probe};
use crate::{capabilities, migrate, recoveries, usage};

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
    ledger: Arc<Ledger>,
    late: Arc<Late>,
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
        let slate = Arc::new(Slate::new(owner));
        let name = Arc::from(slate.owner());
        let writer = Writer::start(connection, Arc::clone(&slate), path, tuning.queue)?;
        let ledger = Arc::new(Ledger::new(slate, writer.queue()));
        Ok(Self {
            writer: Arc::new(writer),
            ledger,
            late: Arc::new(Late::new()),
            owner: name,
            location: Arc::new(location.clone()),
        })
    }

    /// Notes an upstream call that is about to be made. Once this returns, the call has its row whatever happens: when
    /// it is settled or dropped, or as interrupted at the next start. Waits only while more calls than there is room
    /// for are under way; never fails, since a reply is worth more than its row.
    pub async fn open_call(&self, started: CallStarted) -> OpenCall {
        self.ledger.open(started).await
    }

    /// How the store does at the moment. Answers at once, without going to the disk.
    pub fn condition(&self) -> Condition {
        let counts = self.writer.counts();
        let (writes_waiting, rows_waiting) = self.writer.waiting();
        let (unrecorded, unnoted) = self.ledger.losses();
        Condition {
            failure: self.writer.failure(),
            calls_not_noted: self.ledger.slate_fails(),
            calls_open: u64::from(self.ledger.taken())
                .saturating_sub(rows_waiting as u64)
                .saturating_sub(counts.rows_left + counts.rows_lost),
            rows_waiting: rows_waiting as u64 + counts.rows_left,
            writes_waiting: writes_waiting as u64 + self.late.waiting(),
            commits: counts.commits,
            failures: counts.failures,
            rows_committed: counts.rows,
            rows_lost: unrecorded + counts.refused_rows + counts.rows_lost,
            cuts_lost: self.late.lost(),
            calls_unnoted: unnoted,
        }
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

    /// Has the outcome of a cut reply written as soon as the store works again: with the intent where there is one, or
    /// without. It is kept without its texts, and no more than a thousand at once: one beyond that is lost, and counted
    /// ([`Condition::cuts_lost`]), as is one that [`Store::close`] finds when the store still fails. The work is done
    /// by the answer, which is to be spawned.
    #[must_use = "nothing is tried before it is polled"]
    pub fn keep_cut(
        &self,
        intent: Option<CutId>,
        cut: CutStarted,
        mut settled: CutSettled,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (writer, late) = (Arc::clone(&self.writer), Arc::clone(&self.late));
        // Before anything is polled, so that a close in between waits for it.
        let place = late.place();
        for piece in &mut settled.pieces {
            piece.text = None;
        }
        let kept = Arc::new((cut, settled));
        async move {
            let Some(_place) = place else { return };
            loop {
                let is_last = late.rest().await;
                // The writer finds out by itself whether the store works again.
                if writer.failure().is_some() && !is_last {
                    continue;
                }
                let work = Arc::clone(&kept);
                let written = writer.write(move |connection| match intent {
                    Some(id) => recoveries::settle(connection, id, &work.1),
                    None => recoveries::log_whole(connection, &work.0, &work.1),
                });
                match written.await {
                    Ok(_) | Err(StoreError::NoSuchCut(_)) => return,
                    Err(error) if is_last || error == StoreError::Closed => {
                        late.lose();
                        tracing::error!(request = kept.0.request_id, %error, "the record of a cut reply is lost");
                        return;
                    }
                    Err(_) => {}
                }
            }
        }
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

    /// Forgets cut replies, with their pieces, and upstream calls that are older than so many days; answers how many
    /// rows that were.
    pub async fn forget_after(&self, keep_days: u32) -> Result<u64, StoreError> {
        let mut forgotten =
            self.writer.write(move |connection| recoveries::forget(connection, keep_days)).await?;
        loop {
            match self.writer.write(move |connection| usage::forget(connection, keep_days)).await? {
                0 => return Ok(forgotten),
                calls => forgotten += calls,
            }
        }
    }

    /// Goes once through the queue, the writer and the file, for a readiness check.
    pub async fn health(&self) -> Result<Health, StoreError> {
        // Where it failed, only a write that changes something shows that it works again.
        let failed = self.writer.failure().is_some();
        let look = move |connection: &Connection| {
            if failed {
                probe(connection)?;
            }
            Ok(recoveries::open_cuts(connection)?)
        };
        let open_cuts = self.writer.write(look).await?;
        let counts = self.writer.counts();
        Ok(Health { schema: migrate::known(), open_cuts, commits: counts.commits, writes: counts.writes })
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
    /// clone, answer [`StoreError::Closed`]. Rows of calls that cannot be committed are left to the next start where
    /// that is possible; answers how many, also to whoever closes it once more.
    pub async fn close(&self) -> Leftover {
        self.late.close().await;
        let leftover = self.writer.close().await;
        Leftover { cuts_lost: self.late.lost_at_end(), ..leftover }
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
    let io_failed = |error| StoreError::of_io(path, &error);
    let dead = owner::dead(path).map_err(io_failed)?;
    for left in &dead {
        for call in ledger::read(left.path()).map_err(io_failed)? {
            usage::record(&transaction, &call).map_err(failed)?;
        }
    }
    let owner = Owner::register(path).map_err(io_failed)?;
    transaction.commit().map_err(failed)?;
    // What stood on their slates is safe now.
    for left in dead {
        left.bury().map_err(io_failed)?;
    }
    Ok(owner)
}
