//! The arguments of `endmark setup`.

use std::path::PathBuf;

use clap::Args;
use endmark_agents::clients::ClientChoice;
use endmark_envelope::Limits;

#[derive(Debug, Args, Limits)]
pub(crate) struct Setup {
    /// The client: an agent, or the libraries of a provider
    #[arg(value_name = "CLIENT")]
    #[limits(skip)]
    pub(crate) client: ClientChoice,
    /// Write the settings into the client's configuration, and keep a copy of the original
    #[arg(long, conflicts_with = "undo")]
    pub(crate) write: bool,
    /// Restore the file as it was before `--write`
    #[arg(long)]
    pub(crate) undo: bool,
    /// Address of the gateway, if it differs from the configuration
    #[arg(long, value_name = "URL")]
    #[limits(max_bytes = 2048)]
    pub(crate) url: Option<String>,
    /// Use this upstream instead of the first one
    #[arg(long, value_name = "NAME")]
    #[limits(max_bytes = 255)]
    pub(crate) upstream: Option<String>,
    /// The model, for a client that needs its name (opencode)
    #[arg(long, value_name = "MODEL")]
    #[limits(max_bytes = 255)]
    pub(crate) model: Option<String>,
    /// The client's configuration file, if it is not in its usual place
    #[arg(long, value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
}
