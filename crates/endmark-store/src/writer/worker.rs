//! The writer thread. It commits writes in groups, moves the write-ahead log into the database, and saves
//! uncommitted rows when it ends.

mod renewal;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use endmark_context::budget::Scope;

use crate::calls::Call;
use crate::engine::{RowOutcome, Session};
use crate::error::StoreError;
use crate::files::DatabaseFiles;
use crate::leases::{BudgetKey, LeasedCall, Leases};
use crate::ledger::slate::Slate;
use crate::ledger::{LedgerRow, SlotContent};
use crate::queue::{Batch, Queue, Write};
use crate::records::UncommittedRecords;
use crate::writer::Counters;

/// Pause after a failed attempt to move the write-ahead log.
const CHECKPOINT_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Number of times that a closing writer retries a failed commit before it leaves the rows on the slate.
const CLOSING_RETRIES: u32 = 1;

/// State of the writer thread.
pub(crate) struct WriterThread {
    /// The session; `None` if the files are gone and could not be recreated.
    session: Option<Session>,
    files: DatabaseFiles,
    busy_timeout: Duration,
    path: Arc<Path>,
    counters: Arc<Counters>,
    queue: Arc<Queue>,
    leases: Arc<Leases>,
    /// Whether the store is the journal of an instance. A journal cannot be recreated.
    is_journal: bool,
}

impl WriterThread {
    /// Creates the writer state for an open session.
    pub(crate) fn new(
        session: Session,
        busy_timeout: Duration,
        path: &Arc<Path>,
        counters: Arc<Counters>,
        queue: Arc<Queue>,
        leases: Arc<Leases>,
        is_journal: bool,
    ) -> Self {
        let (files, path) = (DatabaseFiles::snapshot(path), Arc::clone(path));
        Self { session: Some(session), files, busy_timeout, path, counters, queue, leases, is_journal }
    }

    /// Writes until the queue is closed and empty.
    pub(crate) fn run(mut self, slate: &Slate) {
        let mut last_tries = 0;
        let mut resting_until: Option<Instant> = None;
        loop {
            let Batch { writes, rows, is_closing, is_last } = self.queue.wait_for_batch();
            let placed = self.restore_if_removed(slate);
            slate.test_write();
            let before = self.changes();
            self.leases.sweep();
            let is_idle = writes.is_empty() && rows.is_empty() && !is_closing;
            let mut failure = if is_idle && self.queue.is_failing() && resting_until.is_none() {
                self.test_write().err()
            } else {
                self.commit(writes, rows, slate)
            };
            // A transaction without changes writes nothing, so its success does not prove that the store
            // works again.
            failure = placed.err().or(failure);
            if failure.is_none() && self.changes() == before {
                failure = self.queue.failure().filter(|_| resting_until.is_none());
            }
            let rests = resting_until.is_some_and(|until| Instant::now() < until);
            if failure.is_none() && self.session.as_ref().is_some_and(Session::is_wal_long) {
                if rests {
                    failure = self.queue.failure();
                } else if let Err(error) = self.checkpoint() {
                    self.counters.failures.fetch_add(1, Ordering::Relaxed);
                    resting_until = Some(Instant::now() + CHECKPOINT_RETRY_PAUSE);
                    failure = Some(error);
                } else {
                    resting_until = None;
                }
            }
            let failed = failure.is_some();
            if failed || slate.is_failing() {
                self.queue.retry_later();
            }
            self.report_health(failure);
            // Rows that cannot be committed remain on the slate for the next start.
            last_tries += u32::from(is_closing && failed);
            if (is_last && !failed) || last_tries > CLOSING_RETRIES {
                break;
            }
        }
        let rows_left = self.queue.take_remaining_rows();
        self.return_leases(&rows_left, slate.owner());
        // If another process prevents this, SQLite moves the log later.
        let _ = self.checkpoint();
        // The function logs its own failures. After a failure, the records on the slate are lost.
        let _ = slate.restore_if_removed();
        let leftover = save_to_slate(&rows_left, slate);
        let closers = self.queue.finish_with(leftover);
        drop(self.session);
        slate.close();
        for closer in closers {
            // The receiver may have stopped waiting.
            let _ = closer.send(());
        }
    }

    /// Returns the number of rows that this session has changed.
    fn changes(&self) -> u64 {
        self.session.as_ref().map_or(0, Session::changes)
    }

    /// Returns the session for the files at the path.
    fn session(&self) -> Result<&Session, StoreError> {
        self.session
            .as_ref()
            .ok_or_else(|| self.files_gone_error("they were not there when it was last tried"))
    }

    /// Logs when the store begins to fail and when it works again.
    fn report_health(&self, failure: Option<StoreError>) {
        let message = failure.as_ref().map(ToString::to_string);
        if !self.queue.record_result(failure) {
            return;
        }
        if let Some(error) = message {
            tracing::error!(error, "the store fails: records wait until it works again");
        } else {
            tracing::info!("the store accepts records again");
        }
    }

    /// Writes to the store as a test. With an empty queue, nothing else shows that the store works again.
    fn test_write(&self) -> Result<(), StoreError> {
        let probed = self.session().and_then(Session::test_write);
        if probed.is_err() {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
        }
        probed
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.session().and_then(Session::checkpoint)
    }

    /// Commits a batch in one transaction. If one write fails, only that write is rolled back. If the
    /// transaction fails, all writes are answered with its error, and the rows stay in the queue.
    fn commit(
        &mut self,
        mut writes: Vec<Box<dyn Write>>,
        rows: Vec<LedgerRow>,
        slate: &Slate,
    ) -> Option<StoreError> {
        if writes.is_empty() && rows.is_empty() && !self.leases.has_touched() {
            return None;
        }
        let mut result = self.transact(&mut writes, &rows, slate.owner());
        if result.is_ok() && !self.files.are_in_place() {
            // The data was written to files that are no longer at their paths, so other processes cannot find
            // it.
            result = Err(self.files_gone_error("a new store is started"));
        }
        self.leases.finish_transaction(result.is_ok());
        if result.is_ok() {
            self.counters.commits.fetch_add(1, Ordering::Relaxed);
            self.counters.writes.fetch_add(writes.len() as u64, Ordering::Relaxed);
            self.counters.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
            for row in &rows {
                slate.free_slot(row.place.slot);
            }
        } else {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
            self.queue.put_back(rows);
        }
        for write in writes {
            write.answer(result.as_ref().err());
        }
        result.err()
    }

    fn transact(
        &self,
        writes: &mut [Box<dyn Write>],
        rows: &[LedgerRow],
        owner: &str,
    ) -> Result<(), StoreError> {
        let session = self.session()?;
        session.begin()?;
        let mut costs: HashMap<Arc<BudgetKey>, u64> = HashMap::new();
        let mut entries = Vec::new();
        // Write finished calls before new requests, so that a new hold sees the costs of all finished calls.
        let calls: Vec<&Call> = rows.iter().map(|row| &row.call).collect();
        for (row, recorded) in rows.iter().zip(session.record(&calls)?) {
            let recorded = match recorded {
                RowOutcome::Kept if row.leased.is_empty() => session.settle(&row.call)?,
                recorded => recorded,
            };
            if let RowOutcome::Refused(error) = recorded {
                self.counters.refused_rows.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    request = row.call.started.request_id,
                    error,
                    "the store refuses the row of a call"
                );
            }
            if row.leased.is_empty() {
                // Until the lease of such a budget is planned again, it counts the hold of this call instead
                // of its cost.
                budget_keys(&row.call).for_each(|key| self.leases.schedule_plan(&key));
            }
            for amount in &row.leased {
                // Rate limits need no entries, because they are never recomputed.
                if amount.key.scope != Scope::Rate {
                    entries.push((&row.call, amount));
                }
                let sum = costs.entry(Arc::clone(&amount.key)).or_default();
                *sum = sum.saturating_add(amount.cost);
            }
        }
        session.settle_leased(&entries)?;
        session.charge_leased(&costs)?;
        self.leases.record_flush(&costs);
        for write in writes {
            session.write(|session| write.run(session))?;
        }
        let changed = self.leases.take_touched();
        session.write_leases(owner, &self.leases, &changed)?;
        session.commit()
    }

    /// Returns all leases at the end of the thread. If the store fails, the next start returns them. Calls
    /// without a row stay held.
    fn return_leases(&self, rows_left: &VecDeque<LedgerRow>, owner: &str) {
        let mut calls = self.leases.take_calls();
        calls.extend(rows_left.iter().map(|row| LeasedCall {
            request_id: row.call.started.request_id.clone(),
            call: row.call.started.call,
            amounts: row.leased.clone(),
        }));
        let Some(session) = self.session.as_ref().filter(|_| !self.queue.is_failing()) else { return };
        if let Err(error) = session.return_leases(owner, &calls) {
            tracing::warn!(%error, "the next start returns the leases of budgets");
        }
    }
}

/// Returns the budgets that a call is charged to.
fn budget_keys(call: &Call) -> impl Iterator<Item = BudgetKey> {
    call.started.charges.iter().map(|charge| BudgetKey {
        scope: charge.scope,
        subject: call.started.subject(charge.scope).to_owned(),
        window: charge.window.clone(),
        unit: charge.unit,
    })
}

/// Ensures that rows that could not be committed are on the slate. Returns the numbers of kept and lost rows.
fn save_to_slate(rows: &VecDeque<LedgerRow>, slate: &Slate) -> UncommittedRecords {
    let mut leftover = UncommittedRecords::default();
    for LedgerRow { call, place, .. } in rows {
        let is_found = match place.content {
            // The next start cannot find a removed slate.
            _ if slate.is_gone() => false,
            SlotContent::Complete => true,
            // The slate may accept the complete row now. If it does not, and contains the start of the call,
            // the next start recovers that.
            SlotContent::StartOnly | SlotContent::Empty => {
                let written = slate.write(place.slot, &call.started, call.settled.as_ref());
                written.is_ok() || place.content == SlotContent::StartOnly
            }
        };
        leftover.rows_left += u64::from(is_found);
        leftover.rows_lost += u64::from(!is_found);
    }
    let UncommittedRecords { rows_left, rows_lost, .. } = leftover;
    if rows_lost > 0 {
        tracing::error!(
            rows_left,
            rows_lost,
            "rows of calls are lost: neither the store nor its slate accepted them"
        );
    } else if rows_left > 0 {
        tracing::warn!(rows_left, "rows of calls wait on the slate: the next start commits them");
    }
    leftover
}
