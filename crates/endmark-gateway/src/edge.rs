//! The listener: connections in, their limits and timers, and the orderly end.
//!
//! A connection's bytes pass through its [`doorway`] before anything else sees them; [`connections`] knows what
//! each is doing, and which gives way where there are too many; [`service`] lets a request in, to what is behind
//! it, and holds its place until its reply is over.

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
