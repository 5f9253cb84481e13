//! The slate: a small file in which every call under way stands, so that a killed process leaves its calls behind.
//!
//! A call is written into a slot of its own before its request goes out, and over it when the call is over; once its
//! row is committed the slot is free again. A write goes into the system's memory and takes microseconds; it
//! survives the end of the process, as a commit in WAL mode does. So no request waits for a transaction.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::encoding::{SLOT, decode, encode};
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
        Self { owner, places: Mutex::default() }
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

    /// Writes a call over whatever stood in the slot.
    pub(crate) fn write(
        &self,
        slot: u32,
        started: &CallStarted,
        settled: Option<&CallSettled>,
    ) -> io::Result<()> {
        let record = encode(started, settled);
        if record.len() > SLOT {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a call does not fit into its slot"));
        }
        self.owner.file().write_all_at(&record, u64::from(slot) * SLOT as u64)
    }

    /// Writes over what stood in a slot, so that nothing stands there.
    pub(crate) fn clear(&self, slot: u32) -> io::Result<()> {
        self.owner.file().write_all_at(&[0; SLOT], u64::from(slot) * SLOT as u64)
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Places> {
        // Both are whole after every single operation, so a panic elsewhere cannot have spoilt them.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls on the slate that a dead process left. Some may be committed already: rows have a key for that.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Call>> {
    let file = File::open(path)?;
    let slots = file.metadata()?.len().div_ceil(SLOT as u64).min(u64::from(SLOTS));
    let mut calls = Vec::new();
    for slot in 0..slots {
        let mut bytes = [0; SLOT];
        let mut filled = 0;
        while filled < SLOT {
            match file.read_at(&mut bytes[filled..], slot * SLOT as u64 + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        calls.extend(decode(&bytes[..filled]));
    }
    Ok(calls)
}
