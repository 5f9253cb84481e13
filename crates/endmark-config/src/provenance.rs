//! The origin of each value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The origin of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The default applies.
    Default,
    /// Set in a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Set by the environment variable of this name.
    Environment(String),
    /// Set by this flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::Flag(name) => write!(formatter, "flag {name}"),
        }
    }
}

/// The origin of each value that is not a default, by the full name of its key.
#[derive(Debug, Clone, Default)]
pub struct Provenance(BTreeMap<String, Origin>);

impl Provenance {
    /// Records the origin of a key's value.
    pub fn set(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), origin);
    }

    /// Returns the origin of a key's value.
    pub fn origin(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::Default)
    }
}
