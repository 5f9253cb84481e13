//! The ledger of upstream calls: each is noted before it is made, and has one row when it is over.

pub(crate) mod encoding;
mod patience;
pub(crate) mod slate;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use encoding::clipped;
use slate::{SLOTS, Slate};

use crate::budgets::{Held, Hold};
use crate::calls::{Call, CallSettled, CallStarted};
use crate::leases::{LeasedAmount, Leases};
use crate::queue::Queue;
use crate::scrub::{Scrub, clean};

/// How often a request that waits for a slot looks whether the store has failed meanwhile.
const SLOT_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What calls are noted in while they are under way.
#[derive(Debug)]
pub(crate) struct Ledger {
    slate: Arc<Slate>,
    queue: Arc<Queue>,
    leases: Arc<Leases>,
    room: Arc<Semaphore>,
    /// Calls of which no row will be: there was no room, and the store took none.
    unrecorded: AtomicU64,
    /// Calls that a kill would lose: the slate did not take them.
    unnoted: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(slate: Arc<Slate>, queue: Arc<Queue>, leases: Arc<Leases>) -> Self {
        Self {
            slate,
            queue,
            leases,
            room: Arc::new(Semaphore::new(SLOTS as usize)),
            unrecorded: AtomicU64::new(0),
            unnoted: AtomicU64::new(0),
        }
    }

    /// Notes a call that is about to be made. Waits for room while the store takes rows, and not where it fails.
    pub(crate) async fn open(
        self: &Arc<Self>,
        mut started: CallStarted,
        secrets: Arc<dyn Scrub>,
    ) -> OpenCall {
        // It may be as long as a request, and is kept for as long as the call goes on.
        started.model = clipped(&started.model).to_owned();
        let Some(room) = self.room().await else {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
            return OpenCall { ledger: Arc::clone(self), secrets, started: Some(started), place: None };
        };
        let mut place = Place { slot: self.slate.take(), noted: Noted::Nothing, _room: room };
        if self.note(place.slot, &started, None) {
            place.noted = Noted::Start;
        }
        OpenCall { ledger: Arc::clone(self), secrets, started: Some(started), place: Some(place) }
    }

    async fn room(&self) -> Option<OwnedSemaphorePermit> {
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

    /// Notes what is known of a call; answers whether the slate took it.
    fn note(&self, slot: u32, started: &CallStarted, settled: Option<&CallSettled>) -> bool {
        let noted = self.slate.note(slot, started, settled);
        if !noted {
            self.unnoted.fetch_add(1, Ordering::Relaxed);
            // The slate is tried again though no call may come that does so.
            self.queue.look_again();
        }
        noted
    }

    /// Holds a call in leases, without a transaction; `None` if the store has to decide, or it is not certain that it works:
    /// a hold in a lease has nothing but the slate that survives a kill.
    pub(crate) fn hold(&self, hold: &Hold) -> Option<Held> {
        if self.queue.is_failing() || self.queue.is_closed() || self.slate.fails() {
            return None;
        }
        let (outcome, is_news) = self.leases.hold(hold)?;
        if is_news {
            self.queue.set_due();
        }
        Some(outcome)
    }

    /// Lets go of a call that was not made; answers whether it was held in leases.
    pub(crate) fn release(&self, request_id: &str, call: u32) -> bool {
        let released = self.leases.release(request_id, call);
        if released {
            self.queue.set_due();
        }
        released
    }

    /// Whether calls under way are not noted at the moment.
    pub(crate) fn slate_fails(&self) -> bool {
        self.slate.fails()
    }

    /// Calls under way, and those that wait for their commit.
    pub(crate) fn taken(&self) -> u32 {
        self.slate.taken()
    }

    /// Calls without a row, and calls that a kill would have lost.
    pub(crate) fn losses(&self) -> (u64, u64) {
        (self.unrecorded.load(Ordering::Relaxed), self.unnoted.load(Ordering::Relaxed))
    }
}

/// A slot of the slate, and the right to it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    /// What of the call stands in it.
    pub(crate) noted: Noted,
    _room: OwnedSemaphorePermit,
}

/// How much of a call its slot holds, for the next start to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Nothing: the slate did not take it.
    Nothing,
    /// That it was made, and not how it ended.
    Start,
    /// All that its row has.
    End,
}

/// A call under way. It has one row when it is over, whether it is settled or dropped.
pub struct OpenCall {
    ledger: Arc<Ledger>,
    secrets: Arc<dyn Scrub>,
    started: Option<CallStarted>,
    /// None where there was no room for it.
    place: Option<Place>,
}

impl OpenCall {
    /// What is known of it.
    pub fn started(&self) -> Option<&CallStarted> {
        self.started.as_ref()
    }

    /// A text of its answer without secrets, as much as is kept of it.
    pub fn clean(&self, text: &str) -> String {
        clipped(&self.secrets.scrub(text)).to_owned()
    }

    /// Says how it ended. The row is safe from a kill when this returns, and committed soon after.
    pub fn settle(mut self, settled: CallSettled) {
        self.over(settled);
    }

    fn over(&mut self, settled: CallSettled) {
        let mut settled = clean(settled, &*self.secrets);
        settled.answered_model = settled.answered_model.map(|model| clipped(&model).to_owned());
        let (Some(started), Some(mut place)) = (self.started.take(), self.place.take()) else { return };
        if self.ledger.note(place.slot, &started, Some(&settled)) {
            place.noted = Noted::End;
        }
        let call = Call { started, settled: Some(settled) };
        let leased = self.ledger.leases.settle(&call);
        let row = Row { call, place, leased };
        if let Some(row) = self.ledger.queue.push(row)
            && row.place.noted == Noted::Nothing
        {
            self.ledger.unrecorded.fetch_add(1, Ordering::Relaxed);
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
        self.over(gone);
    }
}

/// A call that is over and waits for its commit.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) call: Call,
    pub(crate) place: Place,
    /// What it held in leases, and what it cost there.
    pub(crate) leased: Vec<LeasedAmount>,
}
