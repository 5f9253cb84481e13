//! HTTP/1.1 as a client sends it, read strictly: where a request begins and ends, and who may send it.
//!
//! Two servers that disagree about where a request ends let one client speak in another's name. So what RFC
//! 9112 leaves to a server's patience is refused here, before anything else sees the bytes: [`Framing`] says
//! how many bytes of a connection may pass, [`Head`] what a request's head says, [`Visitors`] whose requests
//! are answered (its `Host` and `Origin`).

mod chunks;
mod fault;
mod framing;
mod head;
mod visitors;

pub use chunks::Chunks;
pub use fault::Fault;
pub use framing::{Framing, Passed, Place};
pub use head::{BodyLength, Bounds, Head};
pub use visitors::{HostName, NotAHost, NotAllowable, NotAnOrigin, OriginName, Sender, Stranger, Visitors};
