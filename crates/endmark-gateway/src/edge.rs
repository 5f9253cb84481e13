//! The listener: it accepts connections, enforces limits and timeouts, and shuts down gracefully.
//!
//! The bytes of a connection first pass its [`doorway`]. [`connections`] tracks the activity of each connection, and
//! selects one to close if there are too many. [`service`] admits a request, passes it to the inner service, and
//! keeps its permit until the reply is complete.

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
