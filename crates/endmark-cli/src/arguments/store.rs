//! The option `--store`, and the arguments of `endmark store` and `endmark doctor`.

use clap::{Args, Subcommand};
use endmark_config::Override;
use endmark_envelope::{Limits, TooLarge};

pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark store copy sqlite:endmark.db env:ENDMARK_STORE        move from one machine to several
  endmark store copy env:ENDMARK_STORE sqlite:one-machine.db    and back, into a new file
  endmark store copy sqlite:endmark.db postgres://endmark@db.example/endmark

It copies keys with the hashes of their secrets, the spent budgets, and the row of every call. Then it compares and prints the
counts and sums of both stores. No gateway may use the source or a SQLite target meanwhile. You can repeat a copy that was
interrupted, or whose source has grown since: nothing is copied twice.
Exit codes: 0 copied; 1 the target differs; 2 a store is in use or holds other records; 4 a store failed.";

#[derive(Debug, Args)]
pub(crate) struct StoreTool {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy a SQLite store into a PostgreSQL database, or back
    #[command(after_help = EXAMPLES)]
    Copy(Copy),
}

impl StoreTool {
    /// Fails if an argument exceeds its size limit (EN-4).
    pub(crate) fn check_limits(&self) -> Result<(), TooLarge> {
        let StoreCommand::Copy(copy) = &self.command;
        copy.check_limits()
    }
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Copy {
    /// The source: `sqlite:PATH`, a PostgreSQL URL, or `env:NAME` for an environment variable that contains one
    #[arg(value_name = "FROM")]
    #[limits(max_bytes = 4096)]
    pub(crate) from: String,
    /// The target, in the same form: an empty database, or a new file
    #[arg(value_name = "TO")]
    #[limits(max_bytes = 4096)]
    pub(crate) to: String,
}

/// The store that a command reads or writes.
#[derive(Debug, Default, Args, Limits)]
pub(crate) struct StoreArgument {
    /// Use this store (key `store`; by default the one in the user's state folder)
    #[arg(long = "store", id = "store", value_name = "sqlite:PATH")]
    #[limits(max_bytes = 4096)]
    location: Option<String>,
}

impl StoreArgument {
    /// Returns the configuration overrides.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        let typed = |value: &String| Override {
            flag: "--store".to_owned(),
            key: "store".to_owned(),
            value: value.clone(),
        };
        self.location.as_ref().map(typed).into_iter().collect()
    }
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Check this server instead of the configured ones
    #[arg(long, value_name = "URL", conflicts_with_all = ["hooks", "serving"])]
    #[limits(max_bytes = 2048)]
    pub(crate) upstream: Option<String>,
    /// Only test the hooks in the settings of agents
    #[arg(long)]
    pub(crate) hooks: bool,
    /// Only ask the gateway of this configuration whether it is ready
    #[arg(long, conflicts_with = "hooks")]
    pub(crate) serving: bool,
}
