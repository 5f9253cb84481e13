//! Limits of concurrent work: requests that are served, and memory for their bodies.

mod memory;
mod permits;
mod work;

pub(crate) use memory::{BytesReservation, HeldBytes};
pub(crate) use permits::{PermitClaim, PermitRefused, Permits};
pub(crate) use work::{BodyWorkPermit, extra_memory_bytes};
