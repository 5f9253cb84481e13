//! `endmark mcp`: wraps any MCP server, shortens its results, and stores them in full (CX-5).

use std::sync::Arc;

use crate::arguments::mcp::{Mcp, McpCommand, Wrap};
use endmark_agents::mcp::{CLIENT_LIMIT_CHARS, WarningHandler, wrap};
use endmark_failure::{CommandError, ExitStatus};

use crate::context::Context;
use crate::view::answer::Outcome;

/// Wraps a server until its client disconnects.
pub(crate) fn run(context: &Context, arguments: &Mcp) -> Result<Outcome, CommandError> {
    let McpCommand::Wrap(Wrap { most, max_items, store, server }) = &arguments.command;
    let terminal = context.terminal;
    if terminal.json {
        let message = "standard output carries the server's messages, so it cannot contain an envelope";
        return Err(CommandError::input("bad_usage", message, "Omit `--json`."));
    }
    let settings = context.load_configuration(store.overrides())?.settings;
    let request = settings.cap_request(most.limit()?, *max_items, CLIENT_LIMIT_CHARS)?;
    let warn: WarningHandler = Arc::new(move |message| terminal.warn(message));
    wrap(server, &settings, request, &warn)?;
    Ok(Outcome::Streamed(ExitStatus::Success))
}
