//! The arguments of `endmark exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::arguments::cap::Most;
use crate::arguments::store::StoreArgument;

/// The arguments of `exec`.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The command's limits, output and exit codes; by default a built-in manifest
    #[arg(long, value_name = "TOOL.toml")]
    pub(crate) manifest: Option<PathBuf>,
    /// Continue a list after the page that returned this cursor; the command is run again
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Cap its output as `endmark cap` does, and keep all of it in the store for `endmark read`
    #[arg(long, conflicts_with = "cursor")]
    pub(crate) cap: bool,
    #[command(flatten)]
    pub(crate) most: Most,
    /// With `--cap`: items of a list, rows of a table (key `cap.max_items`)
    #[arg(long, value_name = "N", requires = "cap")]
    pub(crate) max_items: Option<u64>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// The command and its arguments, behind `--`; no shell is between
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
