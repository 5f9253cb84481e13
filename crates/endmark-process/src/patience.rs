//! How long to wait for what of a command, and what happens then.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;

/// How long an output may stay open in silence after the command itself has ended. Whoever holds it then is a process that it
/// left behind, and may hold it for ever.
const LINGER: Duration = Duration::from_secs(1);

/// How long a command is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// How long it may take; none: for ever.
    pub whole: Option<Duration>,
    /// How long it may say nothing; none: for ever.
    pub silence: Option<Duration>,
    /// How long it may go on once it has said its last word.
    pub last_word: Duration,
    /// Between asking it to end and ending it.
    pub grace: Duration,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// Not at all, not even when it was killed, or nobody knows how.
    Unknown,
}

impl End {
    pub(crate) fn of(status: Option<ExitStatus>) -> Self {
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

/// Why a command was made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forced {
    /// It took too long.
    TimedOut,
    /// It said nothing for too long.
    Silent,
    /// It went on behind its last word.
    Lingered,
    /// Whoever listens wanted it.
    Stopped,
    /// This signal came to us, and was passed on.
    Signalled(Signal),
}

/// How a command's standard output was when it was listened to no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLeft {
    /// Nobody held it any more.
    Closed,
    /// A process that the command left behind held it, and had been silent for a while.
    Silent,
    /// A process that the command left behind still wrote.
    Written,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    Stop,
}

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command.
    Running,
    /// What a command that has ended left in its pipes.
    Draining,
    /// A command that was asked to end.
    Asked,
    /// What a killed command left in its pipes.
    Killed,
}

/// What is waited for, and until when.
#[derive(Debug)]
pub(crate) struct Patience {
    group: Option<Pid>,
    times: Times,
    phase: Phase,
    /// Of every phase but the first.
    deadline: Option<Instant>,
    /// Until when the command may run, be silent, and go on behind its last word.
    whole: Option<Instant>,
    silence: Option<Instant>,
    last_word: Option<Instant>,
    /// Whether the last deadline that passed was one of silence.
    is_silent: bool,
    forced: Option<Forced>,
    /// Whether nothing of its group may stay behind, however it ends.
    leaves_nothing: bool,
}

impl Patience {
    pub(crate) fn new(group: Option<i32>, times: Times, leaves_nothing: bool) -> Self {
        Self {
            group: group.and_then(Pid::from_raw),
            times,
            phase: Phase::Running,
            deadline: None,
            whole: after(times.whole),
            silence: after(times.silence),
            last_word: None,
            is_silent: true,
            forced: None,
            leaves_nothing,
        }
    }

    pub(crate) fn forced(&self) -> Option<Forced> {
        self.forced
    }

    pub(crate) fn output_left(&self, is_open: bool) -> OutputLeft {
        match (is_open, self.is_silent) {
            (false, _) => OutputLeft::Closed,
            (true, true) => OutputLeft::Silent,
            (true, false) => OutputLeft::Written,
        }
    }

    /// When something is to happen, if nothing else does before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => [self.whole, self.silence, self.last_word].into_iter().flatten().min(),
            Phase::Draining | Phase::Asked | Phase::Killed => self.deadline,
        }
    }

    /// Something was read; silence begins anew.
    pub(crate) fn heard(&mut self, length: usize) {
        match self.phase {
            Phase::Running if length > 0 => self.silence = after(self.times.silence),
            Phase::Draining if length > 0 => self.listen(),
            _ => {}
        }
    }

    /// It has said its last word.
    pub(crate) fn is_over(&mut self) {
        self.last_word = self.last_word.or(after(Some(self.times.last_word)));
    }

    /// What it has said was not its last word.
    pub(crate) fn goes_on(&mut self) {
        self.last_word = None;
    }

    /// Whoever listens wants an end.
    pub(crate) fn stop(&mut self) {
        if self.phase == Phase::Running {
            self.forced = Some(Forced::Stopped);
            self.ask(Signal::TERM);
        }
    }

    /// Waits for silence, but not beyond the latest time: as long as the command itself might have taken.
    fn listen(&mut self) {
        let silence = Instant::now() + LINGER;
        let latest = self.whole.filter(|latest| *latest < silence);
        self.is_silent = latest.is_none();
        self.deadline = Some(latest.unwrap_or(silence));
    }

    /// The command has ended.
    pub(crate) fn ended(&mut self) {
        match self.phase {
            Phase::Running => {
                self.phase = Phase::Draining;
                // What is in the pipes already is read, however little of the time is left.
                self.whole = self.whole.map(|latest| latest.max(Instant::now() + LINGER));
                self.listen();
            }
            // The others of its group have as long as it had itself.
            Phase::Asked | Phase::Draining | Phase::Killed => {}
        }
    }

    /// A signal came to us; the second one is not waited for any more.
    pub(crate) fn signalled(&mut self, signal: Signal, has_ended: bool) -> Next {
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
    pub(crate) fn ran_out(&mut self) -> Next {
        match self.phase {
            Phase::Running => {
                let passed = self.deadline();
                self.forced = Some(if passed == self.last_word {
                    Forced::Lingered
                } else if passed == self.whole {
                    Forced::TimedOut
                } else {
                    Forced::Silent
                });
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
        self.deadline = Some(Instant::now() + self.times.grace);
    }

    fn kill(&mut self) {
        self.send(Signal::KILL);
        self.phase = Phase::Killed;
        self.deadline = Some(Instant::now() + LINGER);
    }

    /// Of a command that was made to end nothing stays behind that has not left its group, whether it holds a pipe or not.
    pub(crate) fn leave(&self) {
        if self.forced.is_some() || self.leaves_nothing {
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

/// So long from now; none is never.
fn after(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}
