//! Keeps the records of cut replies that the store did not accept at once, and retries them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Maximum number of waiting records. Each has a few kilobytes, because its texts are not kept.
const MAX_LATE_CUTS: u32 = 1_024;

/// Interval between retries.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The records that wait for a retry.
#[derive(Debug)]
pub(crate) struct LateRecords {
    room: Arc<Semaphore>,
    closing: watch::Sender<bool>,
    lost_records: AtomicU64,
    lost_at_end: AtomicU64,
}

/// Permit to keep one late record.
pub(crate) type LatePermit = OwnedSemaphorePermit;

impl LateRecords {
    pub(crate) fn new() -> Self {
        Self {
            room: Arc::new(Semaphore::new(MAX_LATE_CUTS as usize)),
            closing: watch::Sender::new(false),
            lost_records: AtomicU64::new(0),
            lost_at_end: AtomicU64::new(0),
        }
    }

    /// Returns a permit for one more record, or counts the record as lost if there are too many.
    pub(crate) fn acquire_permit(&self) -> Option<LatePermit> {
        let place = Arc::clone(&self.room).try_acquire_owned().ok();
        if place.is_none() {
            self.count_lost();
        }
        place
    }

    /// Waits for the next retry. Returns whether that retry must be the last one, because the store is
    /// closing.
    pub(crate) async fn wait_to_retry(&self) -> bool {
        let mut closing = self.closing.subscribe();
        // This cannot fail, because the sender exists as long as `self`.
        tokio::time::timeout(RETRY_INTERVAL, closing.wait_for(|is_closing| *is_closing)).await.is_ok()
    }

    /// Counts a record as lost.
    pub(crate) fn count_lost(&self) {
        self.lost_records.fetch_add(1, Ordering::Relaxed);
        self.lost_at_end.fetch_add(u64::from(*self.closing.borrow()), Ordering::Relaxed);
    }

    /// Retries every record once, and returns when all retries are done.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        // This cannot fail, because the semaphore is never closed.
        let _ = self.room.acquire_many(MAX_LATE_CUTS).await;
    }

    /// Returns the number of waiting records.
    pub(crate) fn kept_records(&self) -> u64 {
        u64::from(MAX_LATE_CUTS).saturating_sub(self.room.available_permits() as u64)
    }

    /// Returns the number of lost records.
    pub(crate) fn lost_records(&self) -> u64 {
        self.lost_records.load(Ordering::Relaxed)
    }

    /// Returns the number of records that were lost because the store was closed.
    pub(crate) fn lost_at_close_records(&self) -> u64 {
        self.lost_at_end.load(Ordering::Relaxed)
    }
}
