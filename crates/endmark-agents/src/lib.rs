//! What Endmark does inside agents: their settings, their hooks, their MCP servers, and a gateway for each run.

pub mod clients;
pub mod hooks;
pub mod mcp;
pub mod through;
