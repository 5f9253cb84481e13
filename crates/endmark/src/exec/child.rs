//! Runs a tool in a process group of its own, and keeps what it says, in bounded memory and time. (EN-1)

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until};

use super::capture::{Capture, Captured};
use super::passing::Passing;
use super::signals::Signals;

/// How much is read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// How much of standard error is kept for the message of an error, in bytes.
const ERROR_BYTES: usize = 16 << 10;
/// How long an output may stay open in silence after the tool itself has ended. Whoever holds it then is a
/// process that it left behind, and may hold it for ever.
const LINGER: Duration = Duration::from_secs(1);

/// What is to be run, and how long it may take.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) program: &'a OsString,
    pub(crate) arguments: &'a [OsString],
    pub(crate) stdin: ToolInput,
    /// None: for ever.
    pub(crate) timeout: Option<Duration>,
    /// Between asking it to end and ending it.
    pub(crate) grace: Duration,
    pub(crate) max_captured_bytes: usize,
    pub(crate) max_stderr_bytes: u64,
}

/// What the tool reads.
#[derive(Debug)]
pub(crate) enum ToolInput {
    /// What was read and found within its limit.
    Spooled(File),
    /// Ours, as it is.
    Inherited,
    /// Nothing.
    Empty,
}

/// How a tool ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: End,
    /// Why it was made to end, if it was.
    pub(crate) forced: Option<Forced>,
    pub(crate) output: Captured,
    pub(crate) errors: Captured,
    pub(crate) output_left: OutputLeft,
}

/// How the tool's standard output was when it was listened to no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputLeft {
    /// Nobody held it any more.
    Closed,
    /// A process that the tool left behind held it, and had been silent for a while.
    Silent,
    /// A process that the tool left behind still wrote.
    Written,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// Not at all, not even when it was killed, or nobody knows how.
    Unknown,
}

/// Why a tool was made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forced {
    /// It took too long.
    TimedOut,
    /// This signal came to us, and was passed on.
    Signalled(Signal),
}

impl End {
    fn of(status: Option<ExitStatus>) -> Self {
        match status {
            None => Self::Unknown,
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Self::Exited(code),
                (None, Some(signal)) => Self::Killed(signal),
                (None, None) => Self::Unknown,
            },
        }
    }
}

/// Runs a tool to its end; the error is that it could not be started.
pub(crate) async fn run(plan: Plan<'_>, signals: &mut Signals) -> io::Result<Ran> {
    let passing = Passing::start(plan.max_stderr_bytes)?;
    let mut child = Command::new(plan.program)
        .args(plan.arguments)
        .process_group(0)
        .stdin(match plan.stdin {
            ToolInput::Spooled(file) => Stdio::from(file),
            ToolInput::Inherited => Stdio::inherit(),
            ToolInput::Empty => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut streams = Streams {
        output: Stream::new(child.stdout.take(), plan.max_captured_bytes),
        errors: Stream::new(child.stderr.take(), ERROR_BYTES),
        passing,
    };
    let mut patience = Patience::new(&child, plan.timeout, plan.grace);
    let mut status = None;
    while !(status.is_some() && streams.are_closed()) {
        let deadline = patience.deadline;
        tokio::select! {
            length = streams.output.read() => {
                patience.heard(length);
                streams.output.keep(length);
            }
            length = streams.errors.read() => {
                patience.heard(length);
                streams.passing.push(streams.errors.bytes(length));
                streams.errors.keep(length);
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
    let output_left = match (streams.output.is_open(), patience.is_silent) {
        (false, _) => OutputLeft::Closed,
        (true, true) => OutputLeft::Silent,
        (true, false) => OutputLeft::Written,
    };
    streams.passing.finish();
    Ok(Ran {
        end: End::of(status.flatten()),
        forced: patience.forced,
        output: streams.output.capture.finish(),
        errors: streams.errors.capture.finish(),
        output_left,
    })
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The tool.
    Running,
    /// What a tool that has ended left in its pipes.
    Draining,
    /// A tool that was asked to end.
    Asked,
    /// What a killed tool left in its pipes.
    Killed,
}

/// How long to wait for what, and what happens then.
#[derive(Debug)]
struct Patience {
    group: Option<Pid>,
    grace: Duration,
    phase: Phase,
    deadline: Option<Instant>,
    /// Until when what a tool left behind is listened to at most: as long as the tool itself might have taken.
    latest: Option<Instant>,
    /// Whether the last deadline that passed was one of silence.
    is_silent: bool,
    forced: Option<Forced>,
}

impl Patience {
    fn new(child: &Child, timeout: Option<Duration>, grace: Duration) -> Self {
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self {
            group,
            grace,
            phase: Phase::Running,
            deadline,
            latest: deadline,
            is_silent: true,
            forced: None,
        }
    }

    /// Something was read; silence begins anew.
    fn heard(&mut self, length: usize) {
        if self.phase == Phase::Draining && length > 0 {
            self.listen();
        }
    }

    /// Waits for silence, but not beyond the latest time.
    fn listen(&mut self) {
        let silence = Instant::now() + LINGER;
        let latest = self.latest.filter(|latest| *latest < silence);
        self.is_silent = latest.is_none();
        self.deadline = Some(latest.unwrap_or(silence));
    }

    /// The tool has ended.
    fn ended(&mut self) {
        match self.phase {
            Phase::Running => {
                self.phase = Phase::Draining;
                // What is in the pipes already is read, however little of the time is left.
                self.latest = self.latest.map(|latest| latest.max(Instant::now() + LINGER));
                self.listen();
            }
            // The others of its group have as long as it had itself.
            Phase::Asked | Phase::Draining | Phase::Killed => {}
        }
    }

    /// A signal came to us; the second one is not waited for any more.
    fn signalled(&mut self, signal: Signal, has_ended: bool) -> Next {
        self.forced = self.forced.or(Some(Forced::Signalled(signal)));
        match self.phase {
            Phase::Running => self.ask(signal),
            Phase::Asked => self.kill(),
            Phase::Draining | Phase::Killed if has_ended => return Next::Stop,
            Phase::Draining | Phase::Killed => {}
        }
        Next::GoOn
    }

    /// The deadline has passed.
    fn ran_out(&mut self) -> Next {
        match self.phase {
            Phase::Running => {
                self.forced = Some(Forced::TimedOut);
                self.ask(Signal::TERM);
                Next::GoOn
            }
            Phase::Asked => {
                self.kill();
                Next::GoOn
            }
            Phase::Draining | Phase::Killed => Next::Stop,
        }
    }

    fn ask(&mut self, signal: Signal) {
        self.send(signal);
        // A process that is stopped would not hear it.
        self.send(Signal::CONT);
        self.phase = Phase::Asked;
        self.deadline = Some(Instant::now() + self.grace);
    }

    fn kill(&mut self) {
        self.send(Signal::KILL);
        self.phase = Phase::Killed;
        self.deadline = Some(Instant::now() + LINGER);
    }

    /// Of a tool that was made to end nothing stays behind that has not left its group, whether it holds a pipe or not.
    fn leave(&self) {
        if self.forced.is_some() {
            self.send(Signal::KILL);
        }
    }

    /// A group that is gone has nobody to tell.
    fn send(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// What a tool writes.
struct Streams {
    output: Stream<tokio::process::ChildStdout>,
    errors: Stream<tokio::process::ChildStderr>,
    passing: Passing,
}

impl Streams {
    fn are_closed(&self) -> bool {
        !self.output.is_open() && !self.errors.is_open()
    }
}

/// One of the tool's pipes, and what is kept of it.
struct Stream<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    capture: Capture,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn new(pipe: Option<R>, limit: usize) -> Self {
        Self { pipe, buffer: vec![0; BUFFER_BYTES], capture: Capture::new(limit) }
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

    /// Keeps what was read; nothing is the end.
    fn keep(&mut self, length: usize) {
        if length == 0 {
            self.pipe = None;
        }
        self.capture.push(&self.buffer[..length]);
    }
}
