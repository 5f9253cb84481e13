//! Features for coding agents: client settings, hooks, an MCP proxy, and a gateway for each run.

pub mod clients;
pub mod hooks;
pub mod mcp;
pub mod through;
