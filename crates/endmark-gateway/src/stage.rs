//! The stages of the request path, in order. Each takes the result of the previous stage and does not use later ones.

pub(crate) mod admit;
pub(crate) mod deliver;
pub(crate) mod disclose;
pub(crate) mod identify;
pub(crate) mod mend;
pub(crate) mod observe;
pub(crate) mod own_calls;
pub(crate) mod reserve;
pub(crate) mod settle;
pub(crate) mod shape;
