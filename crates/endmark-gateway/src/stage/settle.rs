//! Records the outcome of a reply after recovery.

pub(crate) mod stream;
pub(crate) mod whole;
