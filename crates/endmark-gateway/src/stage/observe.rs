//! A reply while its bytes pass: read on the way, and judged at its end. The call that gave it is over with that.

pub(crate) mod stream;
mod sure;
pub(crate) mod suspects;
mod waiting;
pub(crate) mod whole;
