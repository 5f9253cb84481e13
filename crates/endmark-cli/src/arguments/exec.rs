//! The arguments of `endmark exec`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::arguments::cap::AmountLimit;
use crate::arguments::store::StoreArgument;

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// A manifest with the command's limits, output and exit codes; by default a built-in one
    #[arg(long, value_name = "TOOL.toml")]
    pub(crate) manifest: Option<PathBuf>,
    /// Run the command again, and continue its list after the page that returned this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Cap the output as `endmark cap` does, and store all of it for `endmark read`
    #[arg(long, conflicts_with = "cursor")]
    pub(crate) cap: bool,
    #[command(flatten)]
    pub(crate) most: AmountLimit,
    /// With `--cap`: most items of a list or rows of a table (key `cap.max_items`)
    #[arg(long, value_name = "N", requires = "cap")]
    pub(crate) max_items: Option<u64>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// The command and its arguments, after `--`; they are run directly, without a shell
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
