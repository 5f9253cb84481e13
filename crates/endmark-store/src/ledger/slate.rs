//! The slate: a small file in which every call under way stands, so that a killed process leaves its calls behind.
//!
//! A call is written into a slot of its own before its request goes out, and over it when the call is over; once its
//! row is committed the slot is free again. A write goes into the system's memory and takes microseconds; it
//! survives the end of the process, as a commit in WAL mode does. So no request waits for a transaction.

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

/// The calls that may be under way or waiting for their commit at once: sixteen megabytes of slate, and about as much
/// memory while the store takes no rows.
pub(crate) const SLOTS: u32 = 16_384;

/// The slate of one process. It is also its sign of life.
#[derive(Debug)]
pub(crate) struct Slate {
    owner: Owner,
    places: Mutex<Places>,
    patience: Mutex<Patience>,
    /// Whether the last write failed.
    failed: AtomicBool,
    /// Whether its file was removed, and could not be made anew: what is written is found by nobody.
    gone: AtomicBool,
}

#[derive(Debug, Default)]
struct Places {
    /// Free again, the last one first: few pages are touched.
    free: Vec<u32>,
    /// Slots that were ever used.
    used: u32,
}

impl Slate {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            owner,
            places: Mutex::default(),
            patience: Mutex::default(),
            failed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }
    }

    /// The name of the process.
    pub(crate) fn owner(&self) -> &str {
        self.owner.name()
    }

    /// Takes a free slot; the caller sees to it that there are no more than [`SLOTS`].
    pub(crate) fn take(&self) -> u32 {
        let mut places = self.lock();
        places.free.pop().unwrap_or_else(|| {
            places.used += 1;
            places.used - 1
        })
    }

    /// Gives a slot back whose call is committed, or was never written.
    pub(crate) fn give_back(&self, slot: u32) {
        self.lock().free.push(slot);
    }

    /// Slots that are taken.
    pub(crate) fn taken(&self) -> u32 {
        let places = self.lock();
        places.used.saturating_sub(u32::try_from(places.free.len()).unwrap_or(u32::MAX))
    }

    /// Writes a call over whatever stood in the slot, unless the disk hangs; answers whether it stands there, and says
    /// so where that is news.
    pub(crate) fn note(&self, slot: u32, started: &CallStarted, settled: Option<&CallSettled>) -> bool {
        if self.is_resting() || self.is_gone() {
            return false;
        }
        let began = Instant::now();
        let written = self.write(slot, started, settled);
        let ended = Instant::now();
        if self.patience().wrote(began, ended) {
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

    /// Tries again where it failed, so that it is known to work before the next call needs it. Goes to the disk.
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

    /// Whether calls are not noted at the moment.
    pub(crate) fn fails(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.is_resting() || self.is_gone()
    }

    /// Sees to it that its file is where the next start looks for it: one that was removed is made anew, with all that
    /// stood in it.
    pub(crate) fn stay_in_place(&self) -> io::Result<()> {
        if self.owner.is_in_place() {
            return Ok(());
        }
        let renewed = self.owner.renew();
        let was_gone = self.gone.swap(renewed.is_err(), Ordering::Relaxed);
        match &renewed {
            Ok(()) => tracing::error!(
                "the file beside the store in which calls under way are noted was removed: it is made anew"
            ),
            Err(error) if !was_gone => {
                tracing::error!(%error, "calls under way cannot be noted beside the store, the file was removed: a kill would lose them");
            }
            Err(_) => {}
        }
        renewed
    }

    /// Whether its file was removed, and could not be made anew.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    fn is_resting(&self) -> bool {
        self.patience().rests(Instant::now())
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a call over whatever stood in the slot.
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

    /// Writes over what stood in a slot, so that nothing stands there.
    pub(crate) fn clear(&self, slot: u32) -> io::Result<()> {
        self.owner.file().write_all_at(&[0; SLOT_BYTES], u64::from(slot) * SLOT_BYTES as u64)
    }

    /// The process is done with the store: the file goes, unless calls still stand on it that the next start has to
    /// find.
    pub(crate) fn close(&self) {
        if self.taken() == 0 {
            self.owner.remove();
        } else {
            self.owner.leave();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        // Both are whole after every single operation, so a panic elsewhere cannot have spoilt them.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls on the slate that a dead process left. Some may be committed already: rows have a key for that.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Call>> {
    // Opening a pipe would block.
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
