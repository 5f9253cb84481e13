//! Decides how long to wait for a command, and what to do afterwards.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;

/// How long an output may stay open without data after the command has ended. A process that the command left running
/// could keep it open forever.
const OPEN_OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// The time limits of a command.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Limit for the whole command. `None` means no limit.
    pub total: Option<Duration>,
    /// For silence; `None` for no limit.
    pub silence: Option<Duration>,
    /// For the time after its output was complete.
    pub exit_grace: Duration,
    /// Between the request to end and the kill.
    pub grace: Duration,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// The command did not end even after a kill, or ended in an unknown way.
    Unknown,
}

impl End {
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

/// Why a command was forced to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForcedEnd {
    /// The command exceeded its time limit.
    TimedOut,
    /// The command was silent for too long.
    Silent,
    /// The command did not end after its output was complete.
    OutputHeldOpen,
    /// The listener requested it.
    Stopped,
    /// This process got this signal, and passed it on.
    Signalled(Signal),
}

/// The state of a command's standard output when reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLeft {
    /// No process had it open.
    Closed,
    /// A process that the command left running had it open, and was silent.
    Silent,
    /// A process that the command left running still wrote to it.
    Complete,
}

/// Whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Continue,
    Stop,
}

/// The event that is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command.
    Running,
    /// The remaining output of a command that has ended.
    Draining,
    /// A command that was asked to end.
    Asked,
    /// The remaining output of a killed command.
    Killed,
}

/// The awaited event and its deadlines.
#[derive(Debug)]
pub(crate) struct Patience {
    group: Option<Pid>,
    times: Times,
    phase: Phase,
    /// The deadline of each phase except the first.
    deadline: Option<Instant>,
    /// Until when the command may run, be silent, and continue after its output was complete.
    total_deadline: Option<Instant>,
    silence: Option<Instant>,
    exit_deadline: Option<Instant>,
    /// Whether the last deadline was one of silence.
    is_silent: bool,
    forced: Option<ForcedEnd>,
    /// Whether no process of its group may stay, however it ends.
    must_end_all: bool,
}

impl Patience {
    pub(crate) fn new(group: Option<i32>, times: Times, leaves_nothing: bool) -> Self {
        Self {
            group: group.and_then(Pid::from_raw),
            times,
            phase: Phase::Running,
            deadline: None,
            total_deadline: deadline_after(times.total),
            silence: deadline_after(times.silence),
            exit_deadline: None,
            is_silent: true,
            forced: None,
            must_end_all: leaves_nothing,
        }
    }

    pub(crate) fn forced_end(&self) -> Option<ForcedEnd> {
        self.forced
    }

    pub(crate) fn output_left(&self, is_open: bool) -> OutputLeft {
        match (is_open, self.is_silent) {
            (false, _) => OutputLeft::Closed,
            (true, true) => OutputLeft::Silent,
            (true, false) => OutputLeft::Complete,
        }
    }

    /// Returns when to act next, if nothing else happens before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                [self.total_deadline, self.silence, self.exit_deadline].into_iter().flatten().min()
            }
            Phase::Draining | Phase::Asked | Phase::Killed => self.deadline,
        }
    }

    /// Records that something was read, which restarts the limit of silence.
    pub(crate) fn note_output(&mut self, length: usize) {
        match self.phase {
            Phase::Running if length > 0 => self.silence = deadline_after(self.times.silence),
            Phase::Draining if length > 0 => self.listen(),
            _ => {}
        }
    }

    /// Records that the output is complete.
    pub(crate) fn is_over(&mut self) {
        self.exit_deadline = self.exit_deadline.or(deadline_after(Some(self.times.exit_grace)));
    }

    /// Records that the output was not complete.
    pub(crate) fn note_incomplete(&mut self) {
        self.exit_deadline = None;
    }

    /// Records that the listener requested an end.
    pub(crate) fn stop(&mut self) {
        if self.phase == Phase::Running {
            self.forced = Some(ForcedEnd::Stopped);
            self.ask(Signal::TERM);
        }
    }

    /// Waits for silence, but not longer than the command itself could have run.
    fn listen(&mut self) {
        let silence = Instant::now() + OPEN_OUTPUT_GRACE;
        let latest = self.total_deadline.filter(|latest| *latest < silence);
        self.is_silent = latest.is_none();
        self.deadline = Some(latest.unwrap_or(silence));
    }

    /// Records that the command has ended.
    pub(crate) fn note_end(&mut self) {
        match self.phase {
            Phase::Running => {
                self.phase = Phase::Draining;
                // The data already in the pipes is read, even if little time is left.
                self.total_deadline =
                    self.total_deadline.map(|latest| latest.max(Instant::now() + OPEN_OUTPUT_GRACE));
                self.listen();
            }
            // The other processes of its group have the same time.
            Phase::Asked | Phase::Draining | Phase::Killed => {}
        }
    }

    /// Records a signal to this process. A second one ends the wait.
    pub(crate) fn note_signal(&mut self, signal: Signal, has_ended: bool) -> Next {
        self.forced = self.forced.or(Some(ForcedEnd::Signalled(signal)));
        match self.phase {
            Phase::Running => self.ask(signal),
            Phase::Asked => self.kill(),
            Phase::Draining | Phase::Killed if has_ended => return Next::Stop,
            Phase::Draining | Phase::Killed => {}
        }
        Next::Continue
    }

    /// Records that the deadline has passed.
    pub(crate) fn note_timeout(&mut self) -> Next {
        match self.phase {
            Phase::Running => {
                let passed = self.deadline();
                self.forced = Some(if passed == self.exit_deadline {
                    ForcedEnd::OutputHeldOpen
                } else if passed == self.total_deadline {
                    ForcedEnd::TimedOut
                } else {
                    ForcedEnd::Silent
                });
                self.ask(Signal::TERM);
                Next::Continue
            }
            Phase::Asked => {
                self.kill();
                Next::Continue
            }
            Phase::Draining | Phase::Killed => Next::Stop,
        }
    }

    fn ask(&mut self, signal: Signal) {
        self.send(signal);
        // A stopped process would not receive it.
        self.send(Signal::CONT);
        self.phase = Phase::Asked;
        self.deadline = Some(Instant::now() + self.times.grace);
    }

    fn kill(&mut self) {
        self.send(Signal::KILL);
        self.phase = Phase::Killed;
        self.deadline = Some(Instant::now() + OPEN_OUTPUT_GRACE);
    }

    /// Ends the processes that a forced command left in its group, whether or not they hold a pipe.
    pub(crate) fn leave(&self) {
        if self.forced.is_some() || self.must_end_all {
            self.send(Signal::KILL);
        }
    }

    /// Sends a signal, unless the group has ended.
    fn send(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Returns the moment after this time; `None` for never.
fn deadline_after(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}
