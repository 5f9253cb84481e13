//! Result of a copy between a SQLite file and a PostgreSQL database, and its errors.

use std::path::PathBuf;

use crate::error::StoreError;

/// Counts and sums of a store, to compare two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopySums {
    /// Rows of calls.
    pub rows: u64,
    /// Prompt tokens of these calls, as reported.
    pub prompt_tokens: u64,
    /// Their output tokens.
    pub output_tokens: u64,
    /// Budgets of which something was spent, each window counted.
    pub budgets: u64,
    /// What was spent in budgets of tokens.
    pub spent_tokens: u64,
    /// What was spent in budgets of dollars, in nano-dollars.
    pub spent_nano_usd: u64,
    /// Keys of the gateway, including revoked ones.
    pub keys: u64,
}

/// Result of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    /// What the source holds.
    pub source: CopySums,
    /// What the target holds of it.
    pub target: CopySums,
    /// Keys that were in the target before and differ: they have other secrets, or only one of them is revoked.
    pub differing_keys: Vec<String>,
    /// Records that are not copied, with their number. They stay in the source.
    pub left_out: Vec<(&'static str, u64)>,
}

impl Copied {
    /// Whether the target holds everything that was to be copied. It may hold further keys.
    pub fn is_whole(&self) -> bool {
        let keys = self.source.keys;
        let target = CopySums { keys, ..self.target };
        target == self.source && self.target.keys >= keys && self.differing_keys.is_empty()
    }
}

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// Rows of calls that the target has.
    pub rows: u64,
    /// Rows of the source.
    pub total: u64,
}

/// Error of a copy. What was copied before stays, and the copy can be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source and the target are of the same kind.
    #[error("one of the two must be a SQLite store (`sqlite:PATH`), and the other one a PostgreSQL URL")]
    SameKind,
    /// Another process has the file open.
    #[error(
        "`{path}` is in use by another process: stop it (`endmark serve`, `endmark run`, …), then repeat the copy"
    )]
    FileInUse {
        /// The file.
        path: PathBuf,
    },
    /// Gateways use the database.
    #[error(
        "{instances} gateways use the database: stop them, wait a minute if one was killed, then repeat the copy"
    )]
    DatabaseInUse {
        /// Number of live instances.
        instances: u64,
    },
    /// A silent instance may have costs that the database does not know.
    #[error(
        "the instance {instance} was not stopped properly, and may have calls that the database does not know: start and stop it with its journal, or give it up with `endmark budget forfeit {instance}`"
    )]
    Unreported {
        /// The instance.
        instance: String,
    },
    /// The target holds records of another origin.
    #[error(
        "`{target}` holds records that did not come from the source: name a new file or an empty database"
    )]
    HoldsOther {
        /// The target.
        target: String,
    },
    /// The source is empty or does not exist.
    #[error("there is nothing to copy in `{source_name}`: check the name of the source, which comes first")]
    Nothing {
        /// The source.
        source_name: String,
    },
    /// A store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}
