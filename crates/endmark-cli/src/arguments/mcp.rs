//! The arguments of `endmark mcp`.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use endmark_envelope::{Limits, TooLarge};

use crate::arguments::cap::AmountLimit;
use crate::arguments::store::StoreArgument;

/// The examples at the end of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  endmark mcp wrap -- uvx mcp-server-git
  endmark mcp wrap --max-chars 20000 -- npx -y @modelcontextprotocol/server-filesystem /srv
  claude mcp add git -- endmark mcp wrap -- uvx mcp-server-git
  codex mcp add git -- endmark mcp wrap -- uvx mcp-server-git

The server communicates over standard input and output. A tool's result within the limits passes byte for byte, and so does
everything else. Of a longer result the model sees the important parts, with markers. The store keeps all of it, and the
tool `endmark_read` reads it by page and searches it.
Exit codes: 0 the client has disconnected; 2 bad usage; 3 the server could not be started, or ended first.";

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Run an MCP server with capped results, and add a tool that reads omitted parts
    #[command(after_help = EXAMPLES)]
    Wrap(Wrap),
}

impl Mcp {
    /// Fails if an argument exceeds its size limit (EN-4).
    pub(crate) fn check_limits(&self) -> Result<(), TooLarge> {
        match &self.command {
            McpCommand::Wrap(arguments) => arguments.check_limits(),
        }
    }
}

#[derive(Debug, Args, Limits)]
pub(crate) struct Wrap {
    #[command(flatten)]
    pub(crate) most: AmountLimit,
    /// Most items of a list or rows of a table (key `cap.max_items`)
    #[arg(long, value_name = "N")]
    pub(crate) max_items: Option<u64>,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// The server, and its arguments
    #[arg(value_name = "SERVER", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[limits(skip)]
    pub(crate) server: Vec<OsString>,
}
