//! What the client finally gets, and what is disclosed about it.

pub(crate) mod stream;
pub(crate) mod whole;
