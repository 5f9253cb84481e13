//! The listener: accepts connections, enforces their limits and timeouts, and stops in order.
//!
//! A connection's bytes first pass through its [`doorway`]. [`connections`] records what each connection does, and
//! which one is closed if there are too many. [`service`] admits a request, passes it to the inner service, and holds
//! its place until its reply is over.

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
