//! What a tool says on standard error goes on to ours as it comes, up to a limit. (EN-1)
//!
//! A reader of ours that does not read must not keep the tool waiting: what finds the way full is counted, not written.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

/// How many pieces may wait to be written.
const QUEUE: usize = 64;
/// How long the end waits for what is still to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes to standard error from a thread of its own.
#[derive(Debug)]
pub struct Passing {
    pieces: SyncSender<Vec<u8>>,
    written: Receiver<()>,
    left: u64,
    omitted: Arc<AtomicU64>,
}

impl Passing {
    /// Begins; at most `limit` bytes are passed on.
    pub fn start(limit: u64) -> io::Result<Self> {
        let (pieces, to_write) = mpsc::sync_channel::<Vec<u8>>(QUEUE);
        let (done, written) = mpsc::channel();
        let omitted = Arc::new(AtomicU64::new(0));
        let all_omitted = Arc::clone(&omitted);
        std::thread::Builder::new().name("standard error".to_owned()).spawn(move || {
            for piece in to_write {
                // Where nobody can be told, nobody needs to be.
                let _ = io::stderr().lock().write_all(&piece);
            }
            // Said by the thread that writes, so that no queue can be too full for it.
            let omitted = all_omitted.load(Ordering::Acquire);
            if omitted > 0 {
                let note = format!("\n[endmark: {omitted} more bytes of standard error not shown]\n");
                let _ = io::stderr().lock().write_all(note.as_bytes());
            }
            let _ = done.send(());
        })?;
        Ok(Self { pieces, written, left: limit, omitted })
    }

    /// Passes on as much as the limit and the reader allow.
    pub fn push(&mut self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let fitting = usize::try_from(self.left.min(length)).unwrap_or(bytes.len());
        // Once anything is missing, what follows would look as if it stood right behind what came before.
        let is_passed = self.omitted.load(Ordering::Relaxed) == 0
            && fitting > 0
            && self.pieces.try_send(bytes[..fitting].to_vec()).is_ok();
        let passed = if is_passed { u64::try_from(fitting).unwrap_or(length) } else { 0 };
        self.left -= passed;
        self.omitted.fetch_add(length - passed, Ordering::Release);
    }

    /// Waits a little until everything is written, and how much is missing.
    pub fn finish(self) {
        drop(self.pieces);
        let _ = self.written.recv_timeout(PATIENCE);
    }
}
