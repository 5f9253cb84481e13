//! What the client is given in the end, and what it is told of how that came about.

pub(crate) mod stream;
pub(crate) mod whole;
