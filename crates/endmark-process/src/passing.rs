//! Passes a tool's standard error on as it arrives, up to a limit. (EN-1)
//!
//! A reader of our standard error that does not read must not block the tool: bytes that find the queue full are
//! counted and not written.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

/// Maximum number of pieces in the queue.
const QUEUE: usize = 64;
/// How long the end waits for the queue to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes to standard error from a separate thread.
#[derive(Debug)]
pub struct ErrorWriter {
    pieces: SyncSender<Vec<u8>>,
    written_signal: Receiver<()>,
    remaining: u64,
    omitted: Arc<AtomicU64>,
}

impl ErrorWriter {
    /// Starts to forward at most `limit` bytes.
    pub fn start(limit: u64) -> io::Result<Self> {
        let (pieces, to_write) = mpsc::sync_channel::<Vec<u8>>(QUEUE);
        let (done, written) = mpsc::channel();
        let omitted = Arc::new(AtomicU64::new(0));
        let all_omitted = Arc::clone(&omitted);
        std::thread::Builder::new().name("standard error".to_owned()).spawn(move || {
            for piece in to_write {
                // If standard error is closed, nothing can be reported.
                let _ = io::stderr().lock().write_all(&piece);
            }
            // Reported by the writing thread, which needs no room in the queue.
            let omitted = all_omitted.load(Ordering::Acquire);
            if omitted > 0 {
                let note = format!("\n[endmark: {omitted} more bytes of standard error not shown]\n");
                let _ = io::stderr().lock().write_all(note.as_bytes());
            }
            let _ = done.send(());
        })?;
        Ok(Self { pieces, written_signal: written, remaining: limit, omitted })
    }

    /// Passes on as much as the limit and the reader permit.
    pub fn push(&mut self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let fitting = usize::try_from(self.remaining.min(length)).unwrap_or(bytes.len());
        // Once bytes are missing, later ones would seem to follow directly.
        let is_passed = self.omitted.load(Ordering::Relaxed) == 0
            && fitting > 0
            && self.pieces.try_send(bytes[..fitting].to_vec()).is_ok();
        let passed = if is_passed { u64::try_from(fitting).unwrap_or(length) } else { 0 };
        self.remaining -= passed;
        self.omitted.fetch_add(length - passed, Ordering::Release);
    }

    /// Waits briefly until everything is written, including the number of missing bytes.
    pub fn finish(self) {
        drop(self.pieces);
        let _ = self.written_signal.recv_timeout(FLUSH_TIMEOUT);
    }
}
