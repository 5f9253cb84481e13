//! Forwards a tool's standard error while it arrives, up to a limit. (EN-1)
//!
//! A slow reader of our own standard error must not block the tool. If the queue is full, bytes are counted
//! instead of written.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

/// Maximum number of pieces in the queue.
const MAX_QUEUED_PIECES: usize = 64;
/// At the end, wait at most this long until the queue is written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes to standard error in a separate thread.
#[derive(Debug)]
pub struct ErrorWriter {
    pieces: SyncSender<Vec<u8>>,
    written_signal: Receiver<()>,
    remaining: u64,
    omitted: Arc<AtomicU64>,
}

impl ErrorWriter {
    /// Starts the thread. At most `limit` bytes are forwarded.
    pub fn start(limit: u64) -> io::Result<Self> {
        let (pieces, to_write) = mpsc::sync_channel::<Vec<u8>>(MAX_QUEUED_PIECES);
        let (done, written) = mpsc::channel();
        let omitted = Arc::new(AtomicU64::new(0));
        let all_omitted = Arc::clone(&omitted);
        std::thread::Builder::new().name("standard error".to_owned()).spawn(move || {
            for piece in to_write {
                // If standard error is closed, the failure cannot be reported anywhere.
                let _ = io::stderr().lock().write_all(&piece);
            }
            // The writing thread reports omitted bytes itself, so this needs no room in the queue.
            let omitted = all_omitted.load(Ordering::Acquire);
            if omitted > 0 {
                let note = format!("\n[endmark: {omitted} more bytes of standard error not shown]\n");
                let _ = io::stderr().lock().write_all(note.as_bytes());
            }
            let _ = done.send(());
        })?;
        Ok(Self { pieces, written_signal: written, remaining: limit, omitted })
    }

    /// Forwards as many bytes as the limit and the queue allow.
    pub fn push(&mut self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let fitting = usize::try_from(self.remaining.min(length)).unwrap_or(bytes.len());
        // After bytes were omitted, nothing more is forwarded. Otherwise the gap would be invisible.
        let is_passed = self.omitted.load(Ordering::Relaxed) == 0
            && fitting > 0
            && self.pieces.try_send(bytes[..fitting].to_vec()).is_ok();
        let passed = if is_passed { u64::try_from(fitting).unwrap_or(length) } else { 0 };
        self.remaining -= passed;
        self.omitted.fetch_add(length - passed, Ordering::Release);
    }

    /// Waits for a limited time until everything is written, including a note about omitted bytes.
    pub fn finish(self) {
        drop(self.pieces);
        let _ = self.written_signal.recv_timeout(FLUSH_TIMEOUT);
    }
}
