//! Parses HTTP/1.1 from clients strictly: where a request begins and ends, and who may send it.
//!
//! If two servers disagree about where a request ends, one client can send requests in another client's name
//! (request smuggling). Therefore this module rejects everything that RFC 9112 allows a server to tolerate,
//! before other code reads the bytes. [`Framing`] returns how many bytes of a connection may pass, [`Head`]
//! parses a request's head, and [`AccessRules`] checks its `Host` and `Origin`.

mod access;
mod chunks;
mod fault;
mod framing;
mod head;

pub use access::{
    AccessError, AccessRules, HostName, InvalidHost, InvalidOrigin, InvalidRule, OriginName, SenderHeaders,
};
pub use chunks::ChunkReader;
pub use fault::Fault;
pub use framing::{Framing, PassableBytes, RequestPart};
pub use head::{BodyLength, Head, HeadLimits};
