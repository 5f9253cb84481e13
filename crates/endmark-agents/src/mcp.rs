//! A proxy between an MCP client and its server. Tool results are capped, and stored in full (CX-5).

mod messages;
mod read_tool;
mod results;
mod session;
mod wrap;

pub use wrap::{CLIENT_LIMIT_CHARS, Warn, wrap};
