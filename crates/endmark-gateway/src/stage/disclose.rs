//! Sends the final result to the client, and discloses how it was obtained.

pub(crate) mod stream;
pub(crate) mod whole;
