//! The exit codes, which are the same for every command.

use std::process::ExitCode;

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// Success, even if the reader closed standard output.
    Success,
    /// A negative result: truncated, not whole, not recovered.
    Negative,
    /// Invalid usage or input. Nothing was done.
    Usage,
    /// An upstream or another external system failed.
    Upstream,
    /// The store failed.
    Store,
    /// A bug in Endmark.
    Bug,
    /// Stopped by the interrupt key (SIGINT).
    Interrupted,
    /// Stopped by SIGTERM.
    Terminated,
    /// Stopped because the terminal was closed (SIGHUP).
    HungUp,
}

impl ExitStatus {
    /// Returns the exit with this code. Returns [`ExitStatus::Bug`] for an unknown code.
    pub fn from_code(code: u8) -> Self {
        let all = [
            Self::Success,
            Self::Negative,
            Self::Usage,
            Self::Upstream,
            Self::Store,
            Self::Bug,
            Self::Terminated,
            Self::Interrupted,
            Self::HungUp,
        ];
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Bug)
    }

    /// Returns the code as a number, for the shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Negative => 1,
            Self::Usage => 2,
            Self::Upstream => 3,
            Self::Store => 4,
            Self::Bug => 70,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        Self::from(exit.code())
    }
}
