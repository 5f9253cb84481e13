//! Sends the client the final result, and discloses what happened to it.

pub(crate) mod stream;
pub(crate) mod whole;
