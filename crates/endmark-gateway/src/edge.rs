//! The listener: it accepts connections, enforces limits and timeouts, and shuts down gracefully.
//!
//! A connection's bytes first pass through its [`doorway`]. [`connections`] tracks what each connection does,
//! and selects the one to close if there are too many. [`service`] admits a request, passes it to the inner
//! service, and keeps its place until the reply is complete.

mod body;
mod connection;
mod connections;
mod doorway;
mod framing;
mod last_words;
mod presence;
mod reply;
mod server;
mod service;
mod socket;

pub use server::{ServeError, Server, listen, serve};
