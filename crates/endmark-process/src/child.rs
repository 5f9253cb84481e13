//! Runs a command in a process group, and hands on what it says, in bounded memory and time. (EN-1, CG-3)

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, sleep_until};

use crate::keeper::Keeper;
use crate::patience::{End, Forced, Next, OutputLeft, Patience, Times};
use crate::signals::Signals;

/// How much is read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// What is to be run, and how long it may take.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The command.
    pub program: &'a OsString,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Variables besides those of this process.
    pub variables: &'a [(String, OsString)],
    /// Variables of this process that the command does not get.
    pub withheld: &'a [String],
    /// Where it works; none: where this process does.
    pub folder: Option<&'a Path>,
    /// What it reads.
    pub stdin: Stdin,
    /// How long it is waited for.
    pub times: Times,
    /// Whose group it belongs to; none: a group of its own, and what it leaves behind by itself is left alone.
    pub keeper: Option<&'a Keeper>,
}

/// What a command reads.
#[derive(Debug)]
pub enum Stdin {
    /// A file, from where it stands.
    File(File),
    /// Ours, as it is.
    Inherited,
    /// Nothing.
    Empty,
}

/// Who hears what a command says.
pub trait Listener {
    /// It was started, and has this number.
    fn started(&mut self, _process: Option<u32>) {}

    /// Takes the next bytes of standard output.
    fn output(&mut self, bytes: &[u8]) -> Hearing;

    /// Takes the next bytes of standard error.
    fn errors(&mut self, bytes: &[u8]);
}

/// What is to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// Go on.
    GoOn,
    /// It has said its last word, and is to end by itself soon, unless it goes on.
    Over,
    /// It is to be ended.
    Stop,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How its process did.
    pub end: End,
    /// Why it was made to end, if it was.
    pub forced: Option<Forced>,
    /// How its standard output was when it was listened to no more.
    pub output_left: OutputLeft,
}

/// Runs a command to its end; the error is that it could not be started.
pub async fn run(plan: Plan<'_>, listener: &mut dyn Listener, signals: &mut Signals) -> io::Result<Ended> {
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
    listener.started(child.id());
    let mut output = Stream::new(child.stdout.take());
    let mut errors = Stream::new(child.stderr.take());
    let group = plan.keeper.map(Keeper::group).or_else(|| child.id().and_then(|id| i32::try_from(id).ok()));
    let mut patience = Patience::new(group, plan.times, plan.keeper.is_some());
    let mut status = None;
    while !(status.is_some() && !output.is_open() && !errors.is_open()) {
        let deadline = patience.deadline();
        tokio::select! {
            length = output.read() => {
                patience.heard(length);
                match listener.output(output.bytes(length)) {
                    Hearing::GoOn => patience.goes_on(),
                    Hearing::Over => patience.is_over(),
                    Hearing::Stop => patience.stop(),
                }
                output.close_at_end(length);
            }
            length = errors.read() => {
                patience.heard(length);
                listener.errors(errors.bytes(length));
                errors.close_at_end(length);
            }
            ended = child.wait(), if status.is_none() => {
                status = Some(ended.ok());
                patience.ended();
            }
            signal = signals.next() => {
                if patience.signalled(signal, status.is_some()) == Next::Stop { break }
            }
            () = until(deadline) => if patience.ran_out() == Next::Stop { break },
        }
    }
    patience.leave();
    Ok(Ended {
        end: End::of(status.flatten()),
        forced: patience.forced(),
        output_left: patience.output_left(output.is_open()),
    })
}

async fn until(deadline: Option<Instant>) {
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

    /// Waits for the next bytes, and says how many are in the buffer: none at the end, for ever behind it.
    async fn read(&mut self) -> usize {
        match &mut self.pipe {
            // A pipe that cannot be read is at its end, too.
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => std::future::pending().await,
        }
    }

    fn bytes(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Nothing is the end.
    fn close_at_end(&mut self, length: usize) {
        if length == 0 {
            self.pipe = None;
        }
    }
}
