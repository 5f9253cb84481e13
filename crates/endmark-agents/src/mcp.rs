//! Between an MCP client and its server, line by line: results of tools are capped, and kept in full. (CX-5)

mod messages;
mod read_tool;
mod results;
mod session;
mod wrap;

pub use wrap::{CLIENT_LIMIT_CHARS, Warn, wrap};
