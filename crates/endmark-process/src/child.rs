//! Runs a command in a process group and forwards its output, in bounded memory and time. (EN-1, CG-3)

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, sleep_until};

use crate::keeper::Keeper;
use crate::patience::{End, ForcedEnd, Next, OutputLeft, Patience, Times};
use crate::signals::Signals;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// What to run, and how long it may take.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The command.
    pub program: &'a OsString,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Variables in addition to those of this process.
    pub variables: &'a [(String, OsString)],
    /// Variables of this process that the command does not get.
    pub withheld: &'a [String],
    /// Its working directory; `None` for that of this process.
    pub folder: Option<&'a Path>,
    /// Its standard input.
    pub stdin: Stdin,
    /// Its time limits.
    pub times: Times,
    /// The keeper whose group it joins. With `None` it has its own group, and processes that it leaves running are
    /// not ended.
    pub keeper: Option<&'a Keeper>,
}

/// The standard input of a command.
#[derive(Debug)]
pub enum Stdin {
    /// A file, from its current position.
    File(File),
    /// The standard input of this process.
    Inherited,
    /// Nothing.
    Empty,
}

/// Receives the output of a command.
pub trait Listener {
    /// The command was started, with this process id.
    fn note_start(&mut self, _process: Option<u32>) {}

    /// Receives the next bytes of standard output.
    fn read_output(&mut self, bytes: &[u8]) -> ListenerDecision;

    /// Receives the next bytes of standard error.
    fn read_errors(&mut self, bytes: &[u8]);
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerDecision {
    /// Continue.
    Continue,
    /// The output is complete. The process should end by itself soon, unless it writes more.
    OutputComplete,
    /// End the process.
    Stop,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandEnd {
    /// How its process ended.
    pub end: End,
    /// Why the command was forced to end, if it was.
    pub forced: Option<ForcedEnd>,
    /// The state of its standard output when reading stopped.
    pub output_left: OutputLeft,
}

/// Runs a command to its end. The error means that it could not be started.
pub async fn run(
    plan: Plan<'_>,
    listener: &mut dyn Listener,
    signals: &mut Signals,
) -> io::Result<CommandEnd> {
    let mut command = Command::new(plan.program);
    for name in plan.withheld {
        command.env_remove(name);
    }
    command
        .args(plan.arguments)
        .envs(plan.variables.iter().map(|(name, value)| (name, value)))
        .process_group(plan.keeper.map_or(0, Keeper::group))
        .stdin(match plan.stdin {
            Stdin::File(file) => Stdio::from(file),
            Stdin::Inherited => Stdio::inherit(),
            Stdin::Empty => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(folder) = plan.folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn()?;
    listener.note_start(child.id());
    let mut output = Stream::new(child.stdout.take());
    let mut errors = Stream::new(child.stderr.take());
    let group = plan.keeper.map(Keeper::group).or_else(|| child.id().and_then(|id| i32::try_from(id).ok()));
    let mut patience = Patience::new(group, plan.times, plan.keeper.is_some());
    let mut status = None;
    while !(status.is_some() && !output.is_open() && !errors.is_open()) {
        let deadline = patience.deadline();
        tokio::select! {
            length = output.read() => {
                patience.note_output(length);
                match listener.read_output(output.bytes(length)) {
                    ListenerDecision::Continue => patience.note_incomplete(),
                    ListenerDecision::OutputComplete => patience.is_over(),
                    ListenerDecision::Stop => patience.stop(),
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
                if patience.note_signal(signal, status.is_some()) == Next::Stop { break }
            }
            () = wait_until(deadline) => if patience.note_timeout() == Next::Stop { break },
        }
    }
    patience.leave();
    Ok(CommandEnd {
        end: End::from_status(status.flatten()),
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

/// One of the command's pipes.
struct Stream<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn new(pipe: Option<R>) -> Self {
        Self { pipe, buffer: vec![0; BUFFER_BYTES] }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for the next bytes, and returns their number: zero at the end, and never after it.
    async fn read(&mut self) -> usize {
        match &mut self.pipe {
            // A pipe that cannot be read has ended as well.
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => std::future::pending().await,
        }
    }

    fn bytes(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Zero bytes are the end.
    fn close_at_end(&mut self, length: usize) {
        if length == 0 {
            self.pipe = None;
        }
    }
}
