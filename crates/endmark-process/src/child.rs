//! Runs a command in a process group, and forwards its output in bounded memory and time. (EN-1, CG-3)

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, sleep_until};

use crate::keeper::GroupKeeper;
use crate::patience::{CommandTimer, ForcedEnd, OutputState, ProcessExit, TimeLimits, WaitDecision};
use crate::signals::EndSignals;

/// At most this many bytes are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The command to run, its environment, and its time limits.
#[derive(Debug)]
pub struct CommandPlan<'a> {
    /// The program to run.
    pub program: &'a OsString,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Variables that the command gets in addition to those of this process.
    pub variables: &'a [(String, OsString)],
    /// Variables of this process that are not passed to the command.
    pub withheld: &'a [String],
    /// The working directory. `None` means that of this process.
    pub folder: Option<&'a Path>,
    /// The standard input of the command.
    pub stdin: CommandInput,
    /// The time limits of the command.
    pub limits: TimeLimits,
    /// The keeper of the process group that the command joins. Without a keeper, the command gets its own
    /// group, and processes that it leaves running are not ended.
    pub keeper: Option<&'a GroupKeeper>,
}

/// The standard input of a command.
#[derive(Debug)]
pub enum CommandInput {
    /// A file, read from its current position.
    File(File),
    /// The standard input of this process.
    Inherited,
    /// An empty input.
    Empty,
}

/// Receives the output of a command while it runs.
pub trait OutputListener {
    /// Receives the process id after the command was started.
    fn note_start(&mut self, _process: Option<u32>) {}

    /// Receives the next bytes of standard output, and returns what to do next.
    fn read_output(&mut self, bytes: &[u8]) -> ListenerDecision;

    /// Receives the next bytes of standard error.
    fn read_errors(&mut self, bytes: &[u8]);
}

/// What to do after some output was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerDecision {
    /// Let the command continue.
    Continue,
    /// The output is complete, so the process should end soon by itself. More output cancels this.
    OutputComplete,
    /// End the process.
    Stop,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandEnd {
    /// How the process ended.
    pub end: ProcessExit,
    /// Why the command was forced to end. `None` if it ended by itself.
    pub forced: Option<ForcedEnd>,
    /// The state of standard output when reading stopped.
    pub output_left: OutputState,
}

/// Runs a command until it ends. Fails if the command cannot be started.
pub async fn run(
    plan: CommandPlan<'_>,
    listener: &mut dyn OutputListener,
    signals: &mut EndSignals,
) -> io::Result<CommandEnd> {
    let mut command = Command::new(plan.program);
    for name in plan.withheld {
        command.env_remove(name);
    }
    command
        .args(plan.arguments)
        .envs(plan.variables.iter().map(|(name, value)| (name, value)))
        .process_group(plan.keeper.map_or(0, GroupKeeper::group_id))
        .stdin(match plan.stdin {
            CommandInput::File(file) => Stdio::from(file),
            CommandInput::Inherited => Stdio::inherit(),
            CommandInput::Empty => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(folder) = plan.folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn()?;
    listener.note_start(child.id());
    let mut output = OutputPipe::new(child.stdout.take());
    let mut errors = OutputPipe::new(child.stderr.take());
    let group =
        plan.keeper.map(GroupKeeper::group_id).or_else(|| child.id().and_then(|id| i32::try_from(id).ok()));
    let mut patience = CommandTimer::new(group, plan.limits, plan.keeper.is_some());
    let mut status = None;
    while !(status.is_some() && !output.is_open() && !errors.is_open()) {
        let deadline = patience.deadline();
        tokio::select! {
            length = output.read() => {
                patience.note_output(length);
                match listener.read_output(output.bytes(length)) {
                    ListenerDecision::Continue => patience.note_incomplete(),
                    ListenerDecision::OutputComplete => patience.note_complete(),
                    ListenerDecision::Stop => patience.note_stop_request(),
                }
                output.close_at_end(length);
            }
            length = errors.read() => {
                patience.note_output(length);
                listener.read_errors(errors.bytes(length));
                errors.close_at_end(length);
            }
            ended = child.wait(), if status.is_none() => {
                status = Some(ended.ok());
                patience.note_end();
            }
            signal = signals.next() => {
                if patience.note_signal(signal, status.is_some()) == WaitDecision::Stop { break }
            }
            () = wait_until(deadline) => if patience.note_timeout() == WaitDecision::Stop { break },
        }
    }
    patience.end_remaining_processes();
    Ok(CommandEnd {
        end: ProcessExit::from_status(status.flatten()),
        forced: patience.forced_end(),
        output_left: patience.output_left(output.is_open()),
    })
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A pipe with the output of the command.
struct OutputPipe<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> OutputPipe<R> {
    fn new(pipe: Option<R>) -> Self {
        Self { pipe, buffer: vec![0; BUFFER_BYTES] }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for the next bytes, and returns their number. Returns zero at the end of the stream. After the
    /// end, never returns.
    async fn read(&mut self) -> usize {
        match &mut self.pipe {
            // A pipe that cannot be read counts as ended.
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => std::future::pending().await,
        }
    }

    fn bytes(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Closes the pipe if zero bytes were read, which means the end of the stream.
    fn close_at_end(&mut self, length: usize) {
        if length == 0 {
            self.pipe = None;
        }
    }
}
