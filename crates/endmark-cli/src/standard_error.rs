//! Writes to standard error, whose reader may be slow or gone.
//!
//! Most commands write to it synchronously. A gateway must keep serving, so its messages go through a bounded queue to
//! a separate thread. Messages that do not fit are counted as lost.

mod queue;

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use queue::Queue;

/// Capacity of the queue: about a thousand lines.
const QUEUE_LIMIT_BYTES: usize = 256 * 1024;

/// How long the process waits for queued lines when it ends. An active reader needs far less.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Sends all further writes through a queue, so that they never wait for the reader.
pub(crate) fn make_nonblocking() -> io::Result<()> {
    if QUEUE.get().is_none() {
        // If another thread set the queue meanwhile, this empty one is dropped.
        let _ = QUEUE.set(Queue::start(io::stderr(), QUEUE_LIMIT_BYTES, report_lost)?);
    }
    Ok(())
}

/// Writes one or more lines. Ignores errors, because they cannot be reported without standard error.
pub(crate) fn write(lines: Vec<u8>) {
    match QUEUE.get() {
        Some(queue) => queue.push(lines),
        None => {
            let _ = io::stderr().lock().write_all(&lines);
        }
    }
}

/// Returns the number of writes lost so far.
pub(crate) fn lost_writes() -> u64 {
    QUEUE.get().map_or(0, Queue::lost_pushes)
}

/// Waits up to [`FLUSH_TIMEOUT`] until queued lines are written.
pub(crate) fn flush() {
    flush_within(FLUSH_TIMEOUT);
}

/// Waits up to `timeout` until queued lines are written.
pub(crate) fn flush_within(timeout: Duration) {
    if let Some(queue) = QUEUE.get() {
        queue.flush(timeout);
    }
}

fn report_lost(lines: u64) {
    tracing::warn!(lines, "lines of the log were lost because standard error was not read in time");
}
