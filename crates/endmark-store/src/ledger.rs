//! The ledger of upstream calls. Each call is recorded before it starts, and gets one row when it has ended.

pub(crate) mod encoding;
mod patience;
pub(crate) mod slate;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use encoding::clip;
use slate::{MAX_SLOTS, Slate};

use crate::budgets::{Hold, HoldOutcome};
use crate::calls::{Call, CallSettled, CallStarted};
use crate::leases::{LeasedAmount, Leases};
use crate::queue::Queue;
use crate::scrub::{Scrub, remove_secrets};

/// How often a request that waits for a slot checks whether the store has failed.
const SLOT_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The ledger of calls in progress.
#[derive(Debug)]
pub(crate) struct Ledger {
    slate: Arc<Slate>,
    queue: Arc<Queue>,
    leases: Arc<Leases>,
    room: Arc<Semaphore>,
    /// Number of calls that get no row, because the store failed and no slot was free.
    lost_rows: AtomicU64,
    /// Number of calls that a kill of the process would have lost, because the slate did not accept them.
    unprotected_calls: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(slate: Arc<Slate>, queue: Arc<Queue>, leases: Arc<Leases>) -> Self {
        Self {
            slate,
            queue,
            leases,
            room: Arc::new(Semaphore::new(MAX_SLOTS as usize)),
            lost_rows: AtomicU64::new(0),
            unprotected_calls: AtomicU64::new(0),
        }
    }

    /// Records a call that is about to start. Waits for a free slot unless the store fails.
    pub(crate) async fn open(
        self: &Arc<Self>,
        mut started: CallStarted,
        secrets: Arc<dyn Scrub>,
    ) -> OpenCall {
        // The model's name can be as long as the request, and stays in memory until the call has ended.
        started.model = clip(&started.model).to_owned();
        let Some(room) = self.acquire_slot_permit().await else {
            self.lost_rows.fetch_add(1, Ordering::Relaxed);
            return OpenCall { ledger: Arc::clone(self), secrets, started: Some(started), place: None };
        };
        let mut place =
            SlotPermit { slot: self.slate.acquire_slot(), content: SlotContent::Empty, _room: room };
        if self.write_to_slate(place.slot, &started, None) {
            place.content = SlotContent::StartOnly;
        }
        OpenCall { ledger: Arc::clone(self), secrets, started: Some(started), place: Some(place) }
    }

    async fn acquire_slot_permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_owned() {
            return Some(room);
        }
        loop {
            if self.queue.is_failing() || self.queue.is_closed() {
                return None;
            }
            let waiting = tokio::time::timeout(SLOT_POLL_INTERVAL, Arc::clone(&self.room).acquire_owned());
            if let Ok(room) = waiting.await {
                return room.ok();
            }
        }
    }

    /// Writes the data of a call to the slate. Returns whether the slate accepted it.
    fn write_to_slate(&self, slot: u32, started: &CallStarted, settled: Option<&CallSettled>) -> bool {
        let noted = self.slate.record_call(slot, started, settled);
        if !noted {
            self.unprotected_calls.fetch_add(1, Ordering::Relaxed);
            // The writer retries the slate later, even if no other call follows.
            self.queue.retry_later();
        }
        noted
    }

    /// Holds a call in leases, without a transaction. Returns `None` if the store has to decide, or if the
    /// store or the slate may be failing. If the process is killed, only the slate knows the amounts held in leases.
    pub(crate) fn hold(&self, hold: &Hold) -> Option<HoldOutcome> {
        if self.queue.is_failing() || self.queue.is_closed() || self.slate.is_failing() {
            return None;
        }
        let (outcome, is_news) = self.leases.hold(hold)?;
        if is_news {
            self.queue.schedule_write();
        }
        Some(outcome)
    }

    /// Releases a call that did not start. Returns whether it was held in leases.
    pub(crate) fn release(&self, request_id: &str, call: u32) -> bool {
        let released = self.leases.release(request_id, call);
        if released {
            self.queue.schedule_write();
        }
        released
    }

    /// Whether the slate currently does not accept calls.
    pub(crate) fn slate_fails(&self) -> bool {
        self.slate.is_failing()
    }

    /// Returns the number of calls that are in progress or wait for their commit.
    pub(crate) fn open_calls(&self) -> u32 {
        self.slate.taken_slots()
    }

    /// Returns the number of calls without a row, and of calls that a kill would have lost.
    pub(crate) fn loss_counts(&self) -> (u64, u64) {
        (self.lost_rows.load(Ordering::Relaxed), self.unprotected_calls.load(Ordering::Relaxed))
    }
}

/// A slot of the slate, with its permit.
#[derive(Debug)]
pub(crate) struct SlotPermit {
    pub(crate) slot: u32,
    /// What the slot contains.
    pub(crate) content: SlotContent,
    _room: OwnedSemaphorePermit,
}

/// Which data of a call its slot contains. The next start recovers the call from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotContent {
    /// No data: the slate did not accept it.
    Empty,
    /// The data from the start of the call, without its end.
    StartOnly,
    /// All data of the row.
    Complete,
}

/// A call in progress. It gets one row when it is settled or dropped.
pub struct OpenCall {
    ledger: Arc<Ledger>,
    secrets: Arc<dyn Scrub>,
    started: Option<CallStarted>,
    /// The slot; `None` if no slot was free.
    place: Option<SlotPermit>,
}

impl OpenCall {
    /// Returns the data from the start of the call.
    pub fn call_started(&self) -> Option<&CallStarted> {
        self.started.as_ref()
    }

    /// Returns a text from the reply without secrets, shortened to the stored length.
    pub fn clean(&self, text: &str) -> String {
        clip(&self.secrets.scrub(text)).to_owned()
    }

    /// Records how the call ended. From then on the row survives a kill of the process. It is committed
    /// shortly afterwards.
    pub fn settle(mut self, settled: CallSettled) {
        self.finish(settled);
    }

    fn finish(&mut self, settled: CallSettled) {
        let mut settled = remove_secrets(settled, &*self.secrets);
        settled.answered_model = settled.answered_model.map(|model| clip(&model).to_owned());
        let (Some(started), Some(mut place)) = (self.started.take(), self.place.take()) else { return };
        if self.ledger.write_to_slate(place.slot, &started, Some(&settled)) {
            place.content = SlotContent::Complete;
        }
        let call = Call { started, settled: Some(settled) };
        let leased = self.ledger.leases.settle(&call);
        let row = LedgerRow { call, place, leased };
        if let Some(row) = self.ledger.queue.push_row(row)
            && row.place.content == SlotContent::Empty
        {
            self.ledger.lost_rows.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenCall").field("started", &self.started).finish_non_exhaustive()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let gone = CallSettled { ending: "cancelled".into(), ..CallSettled::default() };
        self.finish(gone);
    }
}

/// A finished call that waits for its commit.
#[derive(Debug)]
pub(crate) struct LedgerRow {
    pub(crate) call: Call,
    pub(crate) place: SlotPermit,
    /// The amounts that the call held in leases, with its cost.
    pub(crate) leased: Vec<LeasedAmount>,
}
