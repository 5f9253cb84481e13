//! What is written down of a reply once all is done for it.

pub(crate) mod stream;
pub(crate) mod whole;
