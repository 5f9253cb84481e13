//! The slate: a small file with a record of each call in progress. After a kill, the next start recovers the
//! calls from it.
//!
//! Each call is written to its own slot before its request is sent, and again when it ends. The slot is free
//! after the call's row is committed. A write only reaches the page cache and needs microseconds. Like a
//! commit in WAL mode, it survives the death of the process, so no request has to wait for a transaction.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::encoding::{SLOT_BYTES, decode, encode};
use super::patience::SlowWriteDetector;
use crate::calls::{Call, CallSettled, CallStarted};
use crate::owner::Owner;

/// Maximum number of calls that are in progress or wait for their commit. A slate of this size has 16 MiB.
/// Rows that the store does not accept need about as much memory.
pub(crate) const MAX_SLOTS: u32 = 16_384;

/// The slate of one process. Its lock also shows that the process is alive.
#[derive(Debug)]
pub(crate) struct Slate {
    owner: Owner,
    slots: Mutex<Slots>,
    slow_writes: Mutex<SlowWriteDetector>,
    /// Whether the last write failed.
    failed: AtomicBool,
    /// Whether the file was removed and could not be recreated. The next start cannot find data that is
    /// written in this state.
    is_gone: AtomicBool,
}

#[derive(Debug, Default)]
struct Slots {
    /// Free slots. The last one is reused first, so that few pages are in use.
    free: Vec<u32>,
    /// Number of slots that have ever been used.
    used: u32,
}

impl Slate {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            owner,
            slots: Mutex::default(),
            slow_writes: Mutex::default(),
            failed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
        }
    }

    /// Returns the owner name of the process.
    pub(crate) fn owner(&self) -> &str {
        self.owner.name()
    }

    /// Acquires a free slot. The caller ensures that at most [`MAX_SLOTS`] slots are in use.
    pub(crate) fn acquire_slot(&self) -> u32 {
        let mut places = self.lock();
        places.free.pop().unwrap_or_else(|| {
            places.used += 1;
            places.used - 1
        })
    }

    /// Frees a slot after its call was committed, or if its call was never written.
    pub(crate) fn free_slot(&self, slot: u32) {
        self.lock().free.push(slot);
    }

    /// Returns the number of slots in use.
    pub(crate) fn taken_slots(&self) -> u32 {
        let places = self.lock();
        places.used.saturating_sub(u32::try_from(places.free.len()).unwrap_or(u32::MAX))
    }

    /// Overwrites the slot with a call, unless the slate is paused. Returns whether the slate contains the
    /// call now. Logs a line whenever that changes.
    pub(crate) fn record_call(
        &self,
        slot: u32,
        started: &CallStarted,
        settled: Option<&CallSettled>,
    ) -> bool {
        if self.is_paused() || self.is_gone() {
            return false;
        }
        let began = Instant::now();
        let written = self.write(slot, started, settled);
        let ended = Instant::now();
        if self.lock_slow_writes().record_write(began, ended) {
            tracing::error!(
                took_seconds = (ended - began).as_secs_f64(),
                "the disk of the store is very slow: a kill would lose calls in progress"
            );
        }
        let failed_before = self.failed.swap(written.is_err(), Ordering::Relaxed);
        match &written {
            Err(error) if !failed_before => {
                tracing::error!(%error, "calls in progress cannot be recorded next to the store: a kill would lose them");
            }
            Ok(()) if failed_before => tracing::info!("calls in progress are recorded again"),
            Err(_) | Ok(()) => {}
        }
        written.is_ok()
    }

    /// Writes to the disk after a failure, to find out whether the slate works again before the next call
    /// needs it.
    pub(crate) fn test_write(&self) {
        if !self.failed.load(Ordering::Relaxed) || self.is_paused() || self.is_gone() {
            return;
        }
        let slot = self.acquire_slot();
        if self.clear(slot).is_ok() {
            self.failed.store(false, Ordering::Relaxed);
            tracing::info!("calls in progress are recorded again");
        }
        self.free_slot(slot);
    }

    /// Whether the slate currently does not accept calls.
    pub(crate) fn is_failing(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.is_paused() || self.is_gone()
    }

    /// Ensures that the file is where the next start looks for it. A removed file is recreated with its
    /// content.
    pub(crate) fn restore_if_removed(&self) -> io::Result<()> {
        if self.owner.is_in_place() {
            return Ok(());
        }
        let renewed = self.owner.renew();
        let was_gone = self.is_gone.swap(renewed.is_err(), Ordering::Relaxed);
        match &renewed {
            Ok(()) => tracing::error!(
                "the file next to the store that records calls in progress was removed: a new one was created"
            ),
            Err(error) if !was_gone => {
                tracing::error!(%error, "calls in progress cannot be recorded next to the store, because the file was removed: a kill would lose them");
            }
            Err(_) => {}
        }
        renewed
    }

    /// Whether the file was removed and could not be recreated.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    fn is_paused(&self) -> bool {
        self.lock_slow_writes().is_paused(Instant::now())
    }

    fn lock_slow_writes(&self) -> MutexGuard<'_, SlowWriteDetector> {
        self.slow_writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Overwrites the slot with a call.
    pub(crate) fn write(
        &self,
        slot: u32,
        started: &CallStarted,
        settled: Option<&CallSettled>,
    ) -> io::Result<()> {
        let record = encode(started, settled);
        if record.len() > SLOT_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a call does not fit into its slot"));
        }
        self.owner.file().write_all_at(&record, u64::from(slot) * SLOT_BYTES as u64)
    }

    /// Clears the content of a slot.
    pub(crate) fn clear(&self, slot: u32) -> io::Result<()> {
        self.owner.file().write_all_at(&[0; SLOT_BYTES], u64::from(slot) * SLOT_BYTES as u64)
    }

    /// Removes the file, unless it contains calls that the next start needs.
    pub(crate) fn close(&self) {
        if self.taken_slots() == 0 {
            self.owner.remove();
        } else {
            self.owner.disable_removal_on_drop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // Both fields are consistent after each operation, so a panic elsewhere cannot have corrupted them.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the calls on the slate of a dead process. Some may already be committed; the key of their rows
/// prevents duplicates.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Call>> {
    // Do not open special files: opening a pipe would block.
    if !path.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let file = File::open(path)?;
    let slots = file.metadata()?.len().div_ceil(SLOT_BYTES as u64).min(u64::from(MAX_SLOTS));
    let mut calls = Vec::new();
    for slot in 0..slots {
        let mut bytes = [0; SLOT_BYTES];
        let mut filled = 0;
        while filled < SLOT_BYTES {
            match file.read_at(&mut bytes[filled..], slot * SLOT_BYTES as u64 + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        calls.extend(decode(&bytes[..filled]));
    }
    Ok(calls)
}
