//! Records where each value of the configuration was set.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Not set, so that the default applies.
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

/// Where each value that is not a default was set, by the full name of its key.
#[derive(Debug, Clone, Default)]
pub struct Provenance(BTreeMap<String, Origin>);

impl Provenance {
    /// Records where the value of a key was set.
    pub fn set(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), origin);
    }

    /// Returns where the value of a key was set.
    pub fn origin(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::Default)
    }
}
