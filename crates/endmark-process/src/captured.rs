//! Runs a command, keeps the head and tail of its output, and passes its standard error on. (EN-1)

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::capture::{Capture, Captured};
use crate::child::{Listener, ListenerDecision, Plan, run};
use crate::passing::ErrorWriter;
use crate::patience::{End, ForcedEnd, OutputLeft};
use crate::signals::Signals;

/// Bytes of standard error that are kept for an error message.
const ERROR_BYTES: usize = 16 << 10;

/// How many bytes to store, and how many to forward.
#[derive(Debug, Clone, Copy)]
pub struct CaptureLimits {
    /// Bytes of standard output that are stored in memory.
    pub output: usize,
    /// Bytes of standard error that are forwarded.
    pub passed_errors: u64,
    /// Whether all of standard output is also copied into an unnamed file.
    pub copies_output: bool,
}

/// How a command ended, and its output.
#[derive(Debug)]
pub struct FinishedCommand {
    /// How its process ended.
    pub end: End,
    /// Why the command was forced to end, if it was.
    pub forced: Option<ForcedEnd>,
    /// Its standard output.
    pub output: Captured,
    /// All of its standard output, from its beginning, if a copy was requested. The error is why it does not exist.
    pub copy: Option<io::Result<File>>,
    /// Its standard error.
    pub errors: Captured,
    /// The state of its standard output when reading stopped.
    pub output_left: OutputLeft,
}

/// Runs a command to its end and keeps its output. The error means that it could not be started.
pub async fn run_captured(
    plan: Plan<'_>,
    limits: CaptureLimits,
    signals: &mut Signals,
) -> io::Result<FinishedCommand> {
    let mut captures = CapturedStreams {
        output: Capture::new(limits.output),
        errors: Capture::new(ERROR_BYTES),
        copy: limits.copies_output.then(tempfile::tempfile),
        passing: ErrorWriter::start(limits.passed_errors)?,
    };
    let ended = run(plan, &mut captures, signals).await?;
    captures.passing.finish();
    Ok(FinishedCommand {
        end: ended.end,
        forced: ended.forced,
        output: captures.output.finish(),
        copy: captures.copy.map(|copy| {
            let mut copy = copy?;
            copy.seek(SeekFrom::Start(0))?;
            Ok(copy)
        }),
        errors: captures.errors.finish(),
        output_left: ended.output_left,
    })
}

struct CapturedStreams {
    output: Capture,
    errors: Capture,
    copy: Option<io::Result<File>>,
    passing: ErrorWriter,
}

impl Listener for CapturedStreams {
    fn read_output(&mut self, bytes: &[u8]) -> ListenerDecision {
        self.output.push(bytes);
        // A full disk costs the copy and not the run.
        if let Some(Err(error)) =
            self.copy.as_mut().and_then(|copy| copy.as_mut().ok()).map(|copy| copy.write_all(bytes))
        {
            self.copy = Some(Err(error));
        }
        ListenerDecision::Continue
    }

    fn read_errors(&mut self, bytes: &[u8]) {
        self.passing.push(bytes);
        self.errors.push(bytes);
    }
}
