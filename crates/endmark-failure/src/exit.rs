//! The exit codes, the same for every command.

use std::process::ExitCode;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Fine; also where the reader of the output went away.
    Success,
    /// The answer is no: truncated, not whole, not recovered.
    No,
    /// Bad usage or invalid input; nothing was done.
    Usage,
    /// An upstream, or something else outside, failed.
    Upstream,
    /// The store failed.
    Store,
    /// A bug in Endmark.
    Bug,
    /// Stopped by the interrupt key.
    Interrupted,
    /// Stopped by its user.
    Terminated,
    /// Stopped because its terminal went away.
    HungUp,
}

impl Exit {
    /// The exit that an error names; a code that no exit has is a bug.
    pub fn of_code(code: u8) -> Self {
        let all = [
            Self::Success,
            Self::No,
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

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::No => 1,
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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
