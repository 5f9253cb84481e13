//! Reads HTTP/1.1 from clients strictly: where a request begins and ends, and who may send it.
//!
//! If two servers disagree about where a request ends, one client can send requests in another's name (request
//! smuggling). Therefore anything that RFC 9112 lets a server tolerate is refused here, before anything else sees the
//! bytes. [`Framing`] returns how many bytes of a connection may pass, [`Head`] reads a request's head, and
//! [`Visitors`] checks its `Host` and `Origin`.

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
