//! The listener: connections in, their limits and timers, and the orderly end.
//!
//! A connection's bytes pass through its [`doorway`] before anything else sees them; [`connections`] knows what
//! each is doing, and which gives way where there are too many; [`service`] lets a request in, to what is behind
//! it, and holds its place until its reply is over.

mod again;
mod body;
mod companion;
mod connection;
mod connections;
mod doorway;
mod last_words;
mod permits;
mod presence;
mod reply;
mod server;
mod service;
mod socket;
mod tls;

pub(crate) use companion::BesideConnections;
pub(crate) use permits::Claim;
pub use server::{ServeError, Server, listen, serve};
pub use tls::TlsError;
pub(crate) use tls::acceptor;
