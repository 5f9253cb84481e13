//! A proxy between an MCP client and its server. It caps tool results, and stores them in full (CX-5).

mod messages;
mod read_tool;
mod results;
mod session;
mod wrap;

pub use wrap::{CLIENT_LIMIT_CHARS, WarningHandler, wrap};
