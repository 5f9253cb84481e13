//! The arguments of `endmark log`.

use clap::{Args, Subcommand, ValueEnum};
use endmark_config::Override;

use super::store::StoreArgument;

#[derive(Debug, Args)]
pub(crate) struct Log {
    #[command(subcommand)]
    pub(crate) command: Option<LogCommand>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Show at most N, the newest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Show only replies that the client received whole (resolved), or did not (exhausted)
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<StatusChoice>,
}

/// How a recovery ended (PC-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusChoice {
    Resolved,
    Exhausted,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Explain one recovery: the received text, the verdict and its reason, and the seams
    Show {
        /// The row's number, or the request's id from the header x-endmark-request
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        store: StoreArgument,
    },
}

impl Log {
    /// Returns the configuration overrides, typed before or after the subcommand.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        let of_subcommand = self.command.iter().flat_map(|LogCommand::Show { store, .. }| store.overrides());
        self.store.overrides().into_iter().chain(of_subcommand).collect()
    }
}
