//! Records of cut replies that the store did not take at once: they are kept, and tried again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How many are kept at once. They are kept without texts, so that each takes a few kilobytes.
const MAX_LATE_CUTS: u32 = 1_024;

/// How often it is looked whether the store works again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// What is known of all that are kept.
#[derive(Debug)]
pub(crate) struct Late {
    room: Arc<Semaphore>,
    closing: watch::Sender<bool>,
    lost: AtomicU64,
    lost_at_end: AtomicU64,
}

/// The right to be kept.
pub(crate) type Place = OwnedSemaphorePermit;

impl Late {
    pub(crate) fn new() -> Self {
        Self {
            room: Arc::new(Semaphore::new(MAX_LATE_CUTS as usize)),
            closing: watch::Sender::new(false),
            lost: AtomicU64::new(0),
            lost_at_end: AtomicU64::new(0),
        }
    }

    /// A place for one more. Where there is none the record is lost, and counted.
    pub(crate) fn place(&self) -> Option<Place> {
        let place = Arc::clone(&self.room).try_acquire_owned().ok();
        if place.is_none() {
            self.lose();
        }
        place
    }

    /// Waits a moment; answers whether the next try has to be the last one.
    pub(crate) async fn rest(&self) -> bool {
        let mut closing = self.closing.subscribe();
        // The sender lives as long as this does.
        tokio::time::timeout(RETRY_INTERVAL, closing.wait_for(|is_closing| *is_closing)).await.is_ok()
    }

    /// One is given up.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        self.lost_at_end.fetch_add(u64::from(*self.closing.borrow()), Ordering::Relaxed);
    }

    /// Has every one tried once more, and returns when all are through.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        // It is never closed: an error cannot be.
        let _ = self.room.acquire_many(MAX_LATE_CUTS).await;
    }

    /// Records that are kept.
    pub(crate) fn waiting(&self) -> u64 {
        u64::from(MAX_LATE_CUTS).saturating_sub(self.room.available_permits() as u64)
    }

    /// Records that were given up.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Those of them that were given up for the store was closed.
    pub(crate) fn lost_at_end(&self) -> u64 {
        self.lost_at_end.load(Ordering::Relaxed)
    }
}
