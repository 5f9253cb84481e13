//! The error of a command, with a hint on what to do next.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use endmark_envelope::{ErrorBody, FIELD_TOO_LARGE, TooLarge, WriteError};

use crate::exit::ExitStatus;

/// The error of a command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The arguments are inconsistent, or the input is invalid.
    #[error("{message}")]
    Input {
        /// The error code, for programs.
        code: &'static str,
        /// The problem, for people.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// An argument exceeds its size limit (EN-4).
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A file, or standard input, cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
    /// Standard output has a partial envelope, which cannot be completed.
    #[error("cannot write to standard output: {}; {} bytes are written", .0.source, .0.written)]
    Partial(WriteError),
    /// An upstream or another external system failed.
    #[error("{message}")]
    Upstream {
        /// The problem, for people.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The store cannot be used.
    #[error("{message}")]
    Store {
        /// The problem, for people.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The user pressed the interrupt key.
    #[error("interrupted")]
    Interrupted,
    /// A bug in Endmark.
    #[error("{0}")]
    Bug(String),
}

impl CommandError {
    /// Returns an error of the user's input.
    pub fn input(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input { code, message: message.into(), hint: Some(hint.into()) }
    }

    /// Returns an error of the store. Its message already contains the hint.
    pub fn from_store(error: &dyn Error) -> Self {
        Self::Store { message: error.to_string(), hint: None }
    }

    /// Returns the exit code. It is success if only the reader closed standard output.
    pub fn exit(&self) -> ExitStatus {
        match self {
            Self::Input { .. } | Self::TooLarge(_) | Self::Read { .. } => ExitStatus::Usage,
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Success,
            Self::Write(_) | Self::Partial(_) | Self::Upstream { .. } => ExitStatus::Upstream,
            Self::Store { .. } => ExitStatus::Store,
            Self::Interrupted => ExitStatus::Interrupted,
            Self::Bug(_) => ExitStatus::Bug,
        }
    }

    /// Returns the body of the error, for the envelope and for people.
    pub fn body(&self) -> ErrorBody {
        if let Self::TooLarge(error) = self {
            return error.clone().into();
        }
        let (code, hint) = match self {
            Self::Input { code, hint, .. } => (*code, hint.clone()),
            Self::TooLarge(_) => (FIELD_TOO_LARGE, None),
            Self::Read { .. } => ("unreadable", None),
            Self::Write(_) | Self::Partial(_) => ("unwritable", None),
            Self::Upstream { hint, .. } => ("upstream", hint.clone()),
            Self::Store { hint, .. } => ("store", hint.clone()),
            Self::Interrupted => ("interrupted", None),
            Self::Bug(_) => ("bug", Some("This is a bug in Endmark: please report it.".to_owned())),
        };
        let body = ErrorBody::new(code, self.exit().code(), self.to_string());
        match hint {
            Some(hint) => body.with_hint(hint),
            None => body,
        }
    }
}
