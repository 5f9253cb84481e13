//! The list of checks.

mod codes;
mod crate_count;
mod direct_dependencies;
mod field_count;
mod file_size;
mod layering;
mod purity;
mod rooms;
mod sql_subset;
mod words;

use crate::workspace::{Workspace, WorkspaceError};

/// A check of the repository.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Returns one sentence with a next step for each failure.
    pub(crate) run: fn(&Workspace) -> Result<Vec<String>, WorkspaceError>,
}

/// All checks, in the order in which they run.
pub(crate) const CHECKS: &[Check] = &[
    Check { name: "layering", run: layering::run },
    Check { name: "rooms", run: rooms::run },
    Check { name: "purity", run: purity::run },
    Check { name: "direct-deps", run: direct_dependencies::run },
    Check { name: "crate-count", run: crate_count::run },
    Check { name: "file-size", run: file_size::run },
    Check { name: "field-count", run: field_count::run },
    Check { name: "words", run: words::run },
    Check { name: "codes", run: codes::run },
    Check { name: "sql-subset", run: sql_subset::run },
];
