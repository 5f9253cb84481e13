//! Shows the progress of long-running work: a line at a terminal, or messages.

use std::io::{self, IsTerminal as _, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::arguments::Command;
use crate::standard_error;
use crate::view::terminal::Terminal;

/// Shorter work shows no progress.
const DISPLAY_DELAY: Duration = Duration::from_secs(2);
const REDRAW_INTERVAL: Duration = Duration::from_millis(500);
const CLEAR_LINE: &str = "\r\x1b[K";

/// Progress messages for long-running work that reads no input.
pub(crate) struct ProgressMessages {
    terminal: Terminal,
    last_shown: Instant,
}

impl ProgressMessages {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self { terminal, last_shown: Instant::now() }
    }

    /// Shows the message if enough time has passed since the last message or the start.
    pub(crate) fn show(&mut self, message: impl FnOnce() -> String) {
        if self.last_shown.elapsed() > DISPLAY_DELAY {
            self.last_shown = Instant::now();
            self.terminal.progress(&message());
        }
    }
}

/// Bytes of input read so far.
static BYTES_READ: AtomicU64 = AtomicU64::new(0);

/// A reader that counts its bytes.
pub(crate) struct CountedInput(pub(crate) Box<dyn Read>);

impl Read for CountedInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        BYTES_READ.fetch_add(u64::try_from(read).unwrap_or_default(), Ordering::Relaxed);
        Ok(read)
    }
}

/// The progress line, which is cleared when this is dropped.
pub(crate) struct Progress {
    end: Option<Sender<()>>,
    drawer: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts showing the progress of a command that may take long for a large input.
    ///
    /// Shows nothing unless standard error is a terminal. Also shows nothing while the user may be typing: standard
    /// input is a terminal, and less than a megabyte was read. A batch may serve another program for hours, so its line
    /// appears only while more megabytes arrive, and never if its answers go to a terminal.
    pub(crate) fn start(command: &Command, terminal: Terminal) -> Option<Self> {
        let (work, is_batch) = match command {
            Command::Detect(arguments) => ("detect", arguments.batch),
            Command::Cap(arguments) => ("cap", arguments.batch),
            Command::Compact(arguments) => ("compact", arguments.batch),
            Command::Stitch(arguments) if arguments.batch => ("stitch", true),
            Command::Guard(arguments) if arguments.batch => ("guard", true),
            Command::Count(_) => ("count", false),
            Command::Findings(_) => ("findings", false),
            _ => return None,
        };
        if terminal.quiet || !io::stderr().is_terminal() || is_batch && io::stdout().is_terminal() {
            return None;
        }
        let (end, ended) = mpsc::channel::<()>();
        let began = Instant::now();
        let draw = move || {
            let (mut wait, mut shown) = (DISPLAY_DELAY, 0);
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = REDRAW_INTERVAL;
                let megabytes = BYTES_READ.load(Ordering::Relaxed) / 1_000_000;
                if megabytes == 0 && io::stdin().is_terminal() || is_batch && megabytes == shown {
                    continue;
                }
                shown = megabytes;
                let seconds = began.elapsed().as_secs();
                standard_error::write(
                    format!("{CLEAR_LINE}{work}: {megabytes} MB read, {seconds} s").into_bytes(),
                );
            }
            if wait == REDRAW_INTERVAL {
                standard_error::write(CLEAR_LINE.as_bytes().to_vec());
            }
        };
        // If the thread cannot start, only the line is missing.
        let drawing = thread::Builder::new().name("progress".to_owned()).spawn(draw).ok()?;
        Some(Self { end: Some(end), drawer: Some(drawing) })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(drawing) = self.drawer.take() {
            // A thread that panicked has nothing to clear.
            let _ = drawing.join();
        }
    }
}
