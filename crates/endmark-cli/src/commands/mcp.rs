//! `endmark mcp`: any MCP server, its results kept small and in full. (CX-5)

pub(crate) mod arguments;
mod messages;
mod read_tool;
mod results;
mod session;
mod wrap;

use arguments::{Mcp, McpCommand};
use endmark_failure::CommandError;

use crate::answer::Outcome;
use crate::context::Context;

/// Wraps a server until its client is gone.
pub(crate) fn run(context: &Context, arguments: &Mcp) -> Result<Outcome, CommandError> {
    match &arguments.command {
        McpCommand::Wrap(arguments) => wrap::run(context, arguments),
    }
}
