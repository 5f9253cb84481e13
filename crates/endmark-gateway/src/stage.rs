//! The stages of a request's way, in order: each takes what the one before it gives, and sees no later one.

pub(crate) mod admit;
pub(crate) mod deliver;
pub(crate) mod disclose;
pub(crate) mod identify;
pub(crate) mod mend;
pub(crate) mod observe;
pub(crate) mod read;
pub(crate) mod reserve;
pub(crate) mod settle;
pub(crate) mod shape;
