//! Parses HTTP/1.1 from clients strictly: where a request begins and ends, and which senders are permitted.
//!
//! If two servers disagree about where a request ends, one client can send requests in another's name (request
//! smuggling). Therefore everything that RFC 9112 allows a server to tolerate is rejected here, before other code
//! reads the bytes. [`Framing`] returns how many bytes of a connection may pass, [`Head`] parses a request's head,
//! and [`Visitors`] checks its `Host` and `Origin`.

mod chunks;
mod fault;
mod framing;
mod head;
mod visitors;

pub use chunks::Chunks;
pub use fault::Fault;
pub use framing::{Framing, PassableBytes, RequestPart};
pub use head::{BodyLength, Bounds, Head};
pub use visitors::{HostName, NotAHost, NotAllowable, NotAnOrigin, OriginName, Sender, Stranger, Visitors};
