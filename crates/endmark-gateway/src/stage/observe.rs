//! A reply while its bytes pass: read as it arrives, and judged at its end, when its call is over.

pub(crate) mod stream;
mod sure;
pub(crate) mod suspects;
mod waiting;
pub(crate) mod whole;
