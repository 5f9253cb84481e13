//! Standard error, which nobody has to read.
//!
//! What a command says there is written at once. A gateway has others to serve meanwhile: from the moment it is to be
//! served what is said waits in a bounded queue for a thread of its own, and what finds no room there is counted.

mod queue;

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use queue::Queue;

/// Bytes that may wait: about a thousand lines.
const QUEUE_LIMIT_BYTES: usize = 256 * 1024;

/// How long the end waits for what is still queued. A reader that is there has read it long before.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// From now on nobody waits for whoever reads standard error.
pub(crate) fn never_wait() -> io::Result<()> {
    if QUEUE.get().is_none() {
        // A second queue would be as good as the first, and goes with nothing in it.
        let _ = QUEUE.set(Queue::start(io::stderr(), QUEUE_LIMIT_BYTES, say_lost)?);
    }
    Ok(())
}

/// Writes a line or several; where standard error is closed there is nobody left to tell.
pub(crate) fn write(lines: Vec<u8>) {
    match QUEUE.get() {
        Some(queue) => queue.push(lines),
        None => {
            let _ = io::stderr().lock().write_all(&lines);
        }
    }
}

/// Lines that nobody was told so far.
pub(crate) fn lost() -> u64 {
    QUEUE.get().map_or(0, Queue::lost)
}

/// Waits a moment until what was said is written.
pub(crate) fn flush() {
    flush_within(FLUSH_TIMEOUT);
}

/// The same, for at most this long.
pub(crate) fn flush_within(timeout: Duration) {
    if let Some(queue) = QUEUE.get() {
        queue.flush(timeout);
    }
}

fn say_lost(lines: u64) {
    tracing::warn!(lines, "lines of the log were lost: standard error was not read in time");
}
