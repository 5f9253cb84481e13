//! The result of copying a store between a SQLite file and a PostgreSQL database, and its errors.

use std::path::PathBuf;

use crate::error::StoreError;

/// Counts and sums of a store, for comparing two stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopySums {
    /// Number of calls.
    pub rows: u64,
    /// Prompt tokens of these calls, as reported.
    pub prompt_tokens: u64,
    /// Output tokens of these calls, as reported.
    pub output_tokens: u64,
    /// Number of budgets with spending, counting each window.
    pub budgets: u64,
    /// Total spending in token budgets.
    pub spent_tokens: u64,
    /// Total spending in dollar budgets, in nano-dollars.
    pub spent_nano_usd: u64,
    /// Number of the gateway's keys, including revoked ones.
    pub keys: u64,
}

/// A kind of record that is not copied.
pub(crate) struct OmittedKind {
    /// Name of the records in messages, in the plural.
    pub(crate) name: &'static str,
    /// The table of the file with these records, with an optional condition.
    pub(crate) file_table: &'static str,
    /// The table of the database.
    pub(crate) table: &'static str,
    /// The condition for rows of that table.
    pub(crate) condition: &'static str,
}

impl OmittedKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::whole_table("recovered or cut replies", "partial_completion_log", "em_recoveries"),
        Self::whole_table("kept outputs", "outputs", "em_outputs"),
        Self::whole_table("condensed conversations", "compactions", "em_compactions"),
        Self::whole_table("supervised runs", "runs", "em_runs"),
        Self {
            name: "raised or closed budgets of sessions",
            file_table: "budgets WHERE extra > 0 OR is_closed",
            table: "em_budgets",
            condition: "extra > 0 OR closed_by <> ''",
        },
    ];

    const fn whole_table(name: &'static str, in_file: &'static str, table: &'static str) -> Self {
        Self { name, file_table: in_file, table, condition: "true" }
    }
}

/// Result of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyResult {
    /// The sums of the source.
    pub source: CopySums,
    /// The sums of the copied records in the target.
    pub target: CopySums,
    /// Keys that already existed in the target and differ. Their secrets differ, or only one of the two is revoked.
    pub differing_keys: Vec<String>,
    /// Kinds of records that are not copied, with their counts. They remain in the source.
    pub omitted: Vec<(&'static str, u64)>,
}

impl CopyResult {
    /// Whether the target contains everything that had to be copied. The target may contain more keys.
    pub fn is_whole(&self) -> bool {
        let keys = self.source.keys;
        let target = CopySums { keys, ..self.target };
        target == self.source && self.target.keys >= keys && self.differing_keys.is_empty()
    }
}

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// Number of calls in the target.
    pub rows: u64,
    /// Number of calls in the source.
    pub total: u64,
}

/// Error of a copy. Records that were already copied remain, and the copy can be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source and the target are the same kind of store.
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
    /// Gateways are using the database.
    #[error(
        "gateways use the database ({instances}): stop them, wait a minute if one was killed, then repeat the copy"
    )]
    DatabaseInUse {
        /// Number of live instances.
        instances: u64,
    },
    /// The database may lack costs of an instance that no longer responds.
    #[error(
        "the instance {instance} was not stopped properly, and may have calls that the database does not know: start and stop it with its journal, or give it up with `endmark budget forfeit {instance}`"
    )]
    Unreported {
        /// The name of the instance.
        instance: String,
    },
    /// The target contains records of another origin.
    #[error(
        "`{target}` holds records that did not come from the source: name a new file or an empty database"
    )]
    OtherContents {
        /// The target.
        target: String,
    },
    /// The source is empty or does not exist.
    #[error("there is nothing to copy in `{source_name}`: check the name of the source, which comes first")]
    EmptySource {
        /// The source.
        source_name: String,
    },
    /// One of the stores fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}
