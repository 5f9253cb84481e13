//! Limits of concurrent work: requests that are served, and memory for their bodies.

mod held;
mod permits;
mod work;

pub(crate) use held::{BytesReservation, HeldBytes};
pub(crate) use permits::{Claim, NoPlace, Permits};
pub(crate) use work::{Work, extra_bytes};
