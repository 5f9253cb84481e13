//! Why a command could not do what it was asked, with what to do next.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use endmark_envelope::{ErrorBody, FIELD_TOO_LARGE, TooLarge, WriteError};

use crate::exit::Exit;

/// Why a command could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The arguments do not fit together, or the input is not what it has to be.
    #[error("{message}")]
    Input {
        /// The word for programs.
        code: &'static str,
        /// What is wrong, for people.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// An argument is larger than it may be (EN-4).
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A file, or standard input, cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why it cannot be.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
    /// Standard output has no whole envelope, and can have none any more.
    #[error("cannot write to standard output: {}; {} bytes are written", .0.source, .0.written)]
    Partial(WriteError),
    /// Something outside did not do its part.
    #[error("{message}")]
    Upstream {
        /// What is wrong, for people.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The record of recoveries cannot be used.
    #[error("{message}")]
    Store {
        /// What is wrong, for people.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The interrupt key was pressed.
    #[error("interrupted")]
    Interrupted,
    /// A bug.
    #[error("{0}")]
    Bug(String),
}

impl CommandError {
    /// An error in what the user gave.
    pub fn input(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input { code, message: message.into(), hint: Some(hint.into()) }
    }

    /// An error of the store, which says itself what to do.
    pub fn of_store(error: &dyn Error) -> Self {
        Self::Store { message: error.to_string(), hint: None }
    }

    /// How the process ends with this error; a reader that went away is no error at all.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Input { .. } | Self::TooLarge(_) | Self::Read { .. } => Exit::Usage,
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Self::Write(_) | Self::Partial(_) | Self::Upstream { .. } => Exit::Upstream,
            Self::Store { .. } => Exit::Store,
            Self::Interrupted => Exit::Interrupted,
            Self::Bug(_) => Exit::Bug,
        }
    }

    /// The same for an envelope and for people.
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
