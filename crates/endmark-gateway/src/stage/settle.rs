//! What is recorded about a reply after recovery.

pub(crate) mod stream;
pub(crate) mod whole;
