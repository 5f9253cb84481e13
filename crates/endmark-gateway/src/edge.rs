//! The listener: it accepts connections, enforces limits and timeouts, and shuts down gracefully.
//!
//! The bytes of a connection first pass its [`request_gate`]. [`connections`] tracks the activity of each
//! connection, and selects one to close if there are too many. [`service`] admits a request, passes it to the
//! inner service, and keeps its permit until the reply is complete.

mod body;
mod connection;
mod connection_state;
mod connections;
mod framing;
mod raw_error;
mod reply;
mod request_gate;
mod server;
mod service;
mod socket;

pub use server::{ServeError, Server, listen, serve};
