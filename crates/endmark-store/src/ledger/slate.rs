//! The slate: a small file with a record of every call in progress, from which the calls of a killed process
//! are recovered.
//!
//! A call is written to its own slot before its request is sent, and again when the call ends. The slot is free after
//! its row is committed. A write only reaches the page cache and takes microseconds. Like a commit in WAL mode, it
//! survives the death of the process, so no request waits for a transaction.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::encoding::{SLOT_BYTES, decode, encode};
use super::patience::Patience;
use crate::calls::{Call, CallSettled, CallStarted};
use crate::owner::Owner;

/// Maximum number of calls that are in progress or wait for their commit. The slate then has 16 MiB, and the
/// rows need about as much memory while the store does not accept them.
pub(crate) const SLOTS: u32 = 16_384;

/// The slate of one process. Its lock also shows that the process is alive.
#[derive(Debug)]
pub(crate) struct Slate {
    owner: Owner,
    places: Mutex<Places>,
    patience: Mutex<Patience>,
    /// Whether the last write failed.
    failed: AtomicBool,
    /// Whether the file was removed and could not be recreated. The next start cannot find data that is written then.
    is_gone: AtomicBool,
}

#[derive(Debug, Default)]
struct Places {
    /// Free slots. The last one is reused first, so that few pages are in use.
    free: Vec<u32>,
    /// Number of slots that have ever been used.
    used: u32,
}

impl Slate {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            owner,
            places: Mutex::default(),
            patience: Mutex::default(),
            failed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
        }
    }

    /// Returns the owner name of the process.
    pub(crate) fn owner(&self) -> &str {
        self.owner.name()
    }

    /// Takes a free slot. The caller ensures that at most [`SLOTS`] slots are taken.
    pub(crate) fn take(&self) -> u32 {
        let mut places = self.lock();
        places.free.pop().unwrap_or_else(|| {
            places.used += 1;
            places.used - 1
        })
    }

    /// Frees a slot whose call is committed or was never written.
    pub(crate) fn give_back(&self, slot: u32) {
        self.lock().free.push(slot);
    }

    /// Returns the number of taken slots.
    pub(crate) fn taken_slots(&self) -> u32 {
        let places = self.lock();
        places.used.saturating_sub(u32::try_from(places.free.len()).unwrap_or(u32::MAX))
    }

    /// Overwrites the slot with a call, unless the slate is paused. Returns whether the slate contains the
    /// call now. If that changes, a line is logged.
    pub(crate) fn note(&self, slot: u32, started: &CallStarted, settled: Option<&CallSettled>) -> bool {
        if self.is_resting() || self.is_gone() {
            return false;
        }
        let began = Instant::now();
        let written = self.write(slot, started, settled);
        let ended = Instant::now();
        if self.patience().record_write(began, ended) {
            tracing::error!(
                took_seconds = (ended - began).as_secs_f64(),
                "the disk of the store hardly answers: a kill would lose calls under way"
            );
        }
        let failed_before = self.failed.swap(written.is_err(), Ordering::Relaxed);
        match &written {
            Err(error) if !failed_before => {
                tracing::error!(%error, "calls under way cannot be noted beside the store: a kill would lose them");
            }
            Ok(()) if failed_before => tracing::info!("calls under way are noted again"),
            Err(_) | Ok(()) => {}
        }
        written.is_ok()
    }

    /// Writes to the disk after a failure, so that the slate is known to work again before the next call needs it.
    pub(crate) fn probe(&self) {
        if !self.failed.load(Ordering::Relaxed) || self.is_resting() || self.is_gone() {
            return;
        }
        let slot = self.take();
        if self.clear(slot).is_ok() {
            self.failed.store(false, Ordering::Relaxed);
            tracing::info!("calls under way are noted again");
        }
        self.give_back(slot);
    }

    /// Whether the slate currently does not accept calls.
    pub(crate) fn fails(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.is_resting() || self.is_gone()
    }

    /// Ensures that the file is at the path where the next start looks for it. A removed file is recreated
    /// with its content.
    pub(crate) fn stay_in_place(&self) -> io::Result<()> {
        if self.owner.is_in_place() {
            return Ok(());
        }
        let renewed = self.owner.renew();
        let was_gone = self.is_gone.swap(renewed.is_err(), Ordering::Relaxed);
        match &renewed {
            Ok(()) => tracing::error!(
                "the file beside the store in which calls under way are noted was removed: a new one was created"
            ),
            Err(error) if !was_gone => {
                tracing::error!(%error, "calls under way cannot be noted beside the store, the file was removed: a kill would lose them");
            }
            Err(_) => {}
        }
        renewed
    }

    /// Whether the file was removed and could not be recreated.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    fn is_resting(&self) -> bool {
        self.patience().rests(Instant::now())
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
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
            self.owner.leave();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        // Both fields are consistent after each operation, so a panic elsewhere cannot have corrupted them.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the calls on the slate of a dead process. Some may already be committed; the key of the row detects
/// duplicates.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Call>> {
    // Do not open other kinds of files: opening a pipe would block.
    if !path.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let file = File::open(path)?;
    let slots = file.metadata()?.len().div_ceil(SLOT_BYTES as u64).min(u64::from(SLOTS));
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
