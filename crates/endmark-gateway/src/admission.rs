//! Limits of what is in progress at once: requests that are served, and bytes that are held for them.

mod held;
mod permits;
mod work;

pub(crate) use held::{Held, Holding};
pub(crate) use permits::{Claim, NoPlace, Permits};
pub(crate) use work::{Work, extra_bytes};
