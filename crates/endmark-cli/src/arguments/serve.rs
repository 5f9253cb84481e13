//! The arguments of `endmark serve`.

use clap::{Args, ValueEnum};
use endmark_envelope::Limits;

use super::store::StoreArgument;

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for each request that was not whole, and for each error
    Text,
    /// A JSON document for each event, with all its fields
    Json,
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Serve {
    /// Listen on this address and port (key `listen`); port 0 selects a free port
    #[arg(long, value_name = "ADDRESS")]
    #[limits(max_bytes = 255)]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Forward to this server instead of the configured ones
    #[arg(long, value_name = "URL")]
    #[limits(max_bytes = 2048)]
    pub(crate) upstream: Option<String>,
    /// Format of the log; with `--json` the default is `json`
    #[arg(long, value_name = "FORMAT")]
    #[limits(skip)]
    pub(crate) log: Option<LogFormat>,
    /// Make replies fail on purpose, as in `cut@20,drop@10%`; see docs/faults.md
    #[arg(long, value_name = "FAULTS", help_heading = "Rehearsal")]
    #[limits(max_bytes = 1024)]
    pub(crate) fault: Option<String>,
    /// Which side must handle the faults: Endmark (`upstream`) or your application (`client`)
    #[arg(
        long,
        value_name = "SIDE",
        default_value = "upstream",
        requires = "fault",
        help_heading = "Rehearsal"
    )]
    #[limits(max_bytes = 64)]
    pub(crate) fault_side: String,
    /// Seed of the faults: the same number gives the same faults for the same sequence of requests
    #[arg(long, value_name = "NUMBER", requires = "fault", help_heading = "Rehearsal")]
    pub(crate) fault_seed: Option<u64>,
}
