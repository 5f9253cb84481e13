//! What is written down of every upstream call: noted before it is made, one row when it is over.

mod body;
mod call;
mod watch;

pub(crate) use call::{Call, CallEnd, Calls};
pub(crate) use watch::{Ended, Watch};
