//! Runs a command, captures the head and tail of its output, and forwards its standard error. (EN-1)

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::capture::{CapturedStream, StreamCapture};
use crate::child::{CommandPlan, ListenerDecision, OutputListener, run};
use crate::passing::ErrorWriter;
use crate::patience::{ForcedEnd, OutputState, ProcessExit};
use crate::signals::EndSignals;

/// Number of bytes of standard error that are captured for error messages.
const ERROR_BYTES: usize = 16 << 10;

/// How much of the output is captured, and how much of standard error is forwarded.
#[derive(Debug, Clone, Copy)]
pub struct CaptureLimits {
    /// Maximum bytes of standard output that are kept in memory.
    pub max_captured_output_bytes: usize,
    /// Maximum bytes of standard error that are forwarded.
    pub max_forwarded_error_bytes: u64,
    /// Whether the complete standard output is also copied to an unnamed file.
    pub copies_output: bool,
}

/// How a command ended, and its output.
#[derive(Debug)]
pub struct FinishedCommand {
    /// How its process ended.
    pub end: ProcessExit,
    /// Why the command was forced to end. `None` if it ended by itself.
    pub forced: Option<ForcedEnd>,
    /// The captured standard output.
    pub output: CapturedStream,
    /// The complete standard output in a file, positioned at its start, if a copy was requested. The error
    /// states why there is no copy.
    pub copy: Option<io::Result<File>>,
    /// The captured standard error.
    pub errors: CapturedStream,
    /// The state of standard output when reading stopped.
    pub output_left: OutputState,
}

/// Runs a command until it ends, and captures its output. Fails if the command cannot be started.
pub async fn run_captured(
    plan: CommandPlan<'_>,
    limits: CaptureLimits,
    signals: &mut EndSignals,
) -> io::Result<FinishedCommand> {
    let mut captures = CapturedStreams {
        output: StreamCapture::new(limits.max_captured_output_bytes),
        errors: StreamCapture::new(ERROR_BYTES),
        copy: limits.copies_output.then(tempfile::tempfile),
        error_writer: ErrorWriter::start(limits.max_forwarded_error_bytes)?,
    };
    let ended = run(plan, &mut captures, signals).await?;
    captures.error_writer.finish();
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
    output: StreamCapture,
    errors: StreamCapture,
    copy: Option<io::Result<File>>,
    error_writer: ErrorWriter,
}

impl OutputListener for CapturedStreams {
    fn read_output(&mut self, bytes: &[u8]) -> ListenerDecision {
        self.output.push(bytes);
        // If the disk is full, only the copy is lost, and the run continues.
        if let Some(Err(error)) =
            self.copy.as_mut().and_then(|copy| copy.as_mut().ok()).map(|copy| copy.write_all(bytes))
        {
            self.copy = Some(Err(error));
        }
        ListenerDecision::Continue
    }

    fn read_errors(&mut self, bytes: &[u8]) {
        self.error_writer.push(bytes);
        self.errors.push(bytes);
    }
}
