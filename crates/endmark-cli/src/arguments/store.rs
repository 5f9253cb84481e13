//! `--store`: which store a command reads or writes.

use clap::Args;
use endmark_config::Override;
use endmark_envelope::Limits;

/// Which store a command reads or writes.
#[derive(Debug, Default, Args, Limits)]
pub(crate) struct StoreArgument {
    /// Use this store (key `store`; else the one in the user's state folder)
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

/// The arguments of `doctor`.
#[derive(Debug, Args, Limits)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Check this server instead of the configured ones, as `endmark serve --upstream` forwards to it
    #[arg(long, value_name = "URL", conflicts_with_all = ["hooks", "serving"])]
    #[limits(max_bytes = 2048)]
    pub(crate) upstream: Option<String>,
    /// Try the hooks in the settings of agents, and nothing else
    #[arg(long)]
    pub(crate) hooks: bool,
    /// Ask the gateway that this configuration describes whether it is ready, and nothing else
    #[arg(long, conflicts_with = "hooks")]
    pub(crate) serving: bool,
}
