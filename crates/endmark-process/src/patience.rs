//! Decides how long to wait for a command, and what to do when the time is over.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;

/// After a command has ended, its output may stay open without data for this long. A process that the command
/// left running could keep it open forever.
const OPEN_OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// The time limits of a command.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Maximum duration of the whole command. `None` means unlimited.
    pub total: Option<Duration>,
    /// Maximum time without output. `None` means unlimited.
    pub max_silence: Option<Duration>,
    /// Maximum time that the command may run after its output is complete.
    pub exit_grace: Duration,
    /// Time between asking the command to end and killing it.
    pub grace: Duration,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// It did not end even after it was killed, or ended in an unknown way.
    Unknown,
}

impl ProcessExit {
    pub(crate) fn from_status(status: Option<ExitStatus>) -> Self {
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

/// The reason why a command was forced to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForcedEnd {
    /// The command exceeded its time limit.
    TimedOut,
    /// The command wrote no output for too long.
    Silent,
    /// The command did not end after its output was complete.
    OutputHeldOpen,
    /// The listener requested the end.
    Stopped,
    /// This process received this signal, and forwarded it.
    Signalled(Signal),
}

/// The state of a command's standard output when reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputState {
    /// The output was closed.
    Closed,
    /// A process that the command left running had the output open, but wrote nothing.
    Silent,
    /// A process that the command left running was still writing.
    StillWriting,
}

/// Whether to continue reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitDecision {
    Continue,
    Stop,
}

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitPhase {
    /// The end of the command.
    Running,
    /// The rest of the output, after the command has ended.
    Draining,
    /// The end of the command, after it was asked to end.
    AskedToEnd,
    /// The rest of the output, after the command was killed.
    Killed,
}

/// What is being waited for, and until when.
#[derive(Debug)]
pub(crate) struct CommandTimer {
    group: Option<Pid>,
    times: TimeLimits,
    phase: WaitPhase,
    /// The deadline of the current phase. Not used while the command is running.
    deadline: Option<Instant>,
    /// The deadlines while the command is running: for the whole command, for silence, and for its end after
    /// the output is complete.
    total_deadline: Option<Instant>,
    silence_deadline: Option<Instant>,
    exit_deadline: Option<Instant>,
    /// Whether the output was waited for until it was silent. Otherwise the time of the whole command was
    /// over first.
    is_silent: bool,
    forced: Option<ForcedEnd>,
    /// Whether all processes of the group must be ended, even if the command ends by itself.
    must_end_all: bool,
}

impl CommandTimer {
    pub(crate) fn new(group: Option<i32>, times: TimeLimits, leaves_nothing: bool) -> Self {
        Self {
            group: group.and_then(Pid::from_raw),
            times,
            phase: WaitPhase::Running,
            deadline: None,
            total_deadline: deadline_after(times.total),
            silence_deadline: deadline_after(times.max_silence),
            exit_deadline: None,
            is_silent: true,
            forced: None,
            must_end_all: leaves_nothing,
        }
    }

    pub(crate) fn forced_end(&self) -> Option<ForcedEnd> {
        self.forced
    }

    pub(crate) fn output_left(&self, is_open: bool) -> OutputState {
        match (is_open, self.is_silent) {
            (false, _) => OutputState::Closed,
            (true, true) => OutputState::Silent,
            (true, false) => OutputState::StillWriting,
        }
    }

    /// Returns when [`note_timeout`](Self::note_timeout) must be called if nothing else happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            WaitPhase::Running => {
                [self.total_deadline, self.silence_deadline, self.exit_deadline].into_iter().flatten().min()
            }
            WaitPhase::Draining | WaitPhase::AskedToEnd | WaitPhase::Killed => self.deadline,
        }
    }

    /// Records that `length` bytes were read. This restarts the time limit for silence.
    pub(crate) fn note_output(&mut self, length: usize) {
        match self.phase {
            WaitPhase::Running if length > 0 => {
                self.silence_deadline = deadline_after(self.times.max_silence);
            }
            WaitPhase::Draining if length > 0 => self.wait_for_silence(),
            _ => {}
        }
    }

    /// Records that the output is complete.
    pub(crate) fn note_complete(&mut self) {
        self.exit_deadline = self.exit_deadline.or(deadline_after(Some(self.times.exit_grace)));
    }

    /// Records that the output was not complete after all.
    pub(crate) fn note_incomplete(&mut self) {
        self.exit_deadline = None;
    }

    /// Asks the command to end, because the listener requested it.
    pub(crate) fn note_stop_request(&mut self) {
        if self.phase == WaitPhase::Running {
            self.forced = Some(ForcedEnd::Stopped);
            self.ask_to_end(Signal::TERM);
        }
    }

    /// Waits until the output is silent, but not longer than the command itself was allowed to run.
    fn wait_for_silence(&mut self) {
        let silence = Instant::now() + OPEN_OUTPUT_GRACE;
        let latest = self.total_deadline.filter(|latest| *latest < silence);
        self.is_silent = latest.is_none();
        self.deadline = Some(latest.unwrap_or(silence));
    }

    /// Records that the command has ended.
    pub(crate) fn note_end(&mut self) {
        match self.phase {
            WaitPhase::Running => {
                self.phase = WaitPhase::Draining;
                // Read the data that is already in the pipes, even if little time is left.
                self.total_deadline =
                    self.total_deadline.map(|latest| latest.max(Instant::now() + OPEN_OUTPUT_GRACE));
                self.wait_for_silence();
            }
            // The other processes of the group still have the same time.
            WaitPhase::AskedToEnd | WaitPhase::Draining | WaitPhase::Killed => {}
        }
    }

    /// Records that this process received a signal. A second signal ends the waiting.
    pub(crate) fn note_signal(&mut self, signal: Signal, has_ended: bool) -> WaitDecision {
        self.forced = self.forced.or(Some(ForcedEnd::Signalled(signal)));
        match self.phase {
            WaitPhase::Running => self.ask_to_end(signal),
            WaitPhase::AskedToEnd => self.kill(),
            WaitPhase::Draining | WaitPhase::Killed if has_ended => return WaitDecision::Stop,
            WaitPhase::Draining | WaitPhase::Killed => {}
        }
        WaitDecision::Continue
    }

    /// Records that the deadline has passed.
    pub(crate) fn note_timeout(&mut self) -> WaitDecision {
        match self.phase {
            WaitPhase::Running => {
                let passed = self.deadline();
                self.forced = Some(if passed == self.exit_deadline {
                    ForcedEnd::OutputHeldOpen
                } else if passed == self.total_deadline {
                    ForcedEnd::TimedOut
                } else {
                    ForcedEnd::Silent
                });
                self.ask_to_end(Signal::TERM);
                WaitDecision::Continue
            }
            WaitPhase::AskedToEnd => {
                self.kill();
                WaitDecision::Continue
            }
            WaitPhase::Draining | WaitPhase::Killed => WaitDecision::Stop,
        }
    }

    fn ask_to_end(&mut self, signal: Signal) {
        self.send(signal);
        // A stopped process would not receive the signal before it continues.
        self.send(Signal::CONT);
        self.phase = WaitPhase::AskedToEnd;
        self.deadline = Some(Instant::now() + self.times.grace);
    }

    fn kill(&mut self) {
        self.send(Signal::KILL);
        self.phase = WaitPhase::Killed;
        self.deadline = Some(Instant::now() + OPEN_OUTPUT_GRACE);
    }

    /// Kills the processes that the command left in its group, if it was forced to end or the group must end.
    pub(crate) fn end_remaining_processes(&self) {
        if self.forced.is_some() || self.must_end_all {
            self.send(Signal::KILL);
        }
    }

    /// Sends a signal to the group. Does nothing if the group has ended.
    fn send(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Returns the moment after this duration. Returns `None` if there is no limit.
fn deadline_after(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}
