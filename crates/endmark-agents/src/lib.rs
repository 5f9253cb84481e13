//! Features for agents: their settings, hooks and MCP servers, and a gateway for each run.

pub mod clients;
pub mod hooks;
pub mod mcp;
pub mod through;
