//! Records every upstream call before it starts, and writes one row when it has ended.

mod body;
mod call;
mod cost;
mod ended;
mod late_counts;
mod listener;
mod sent;
mod watch;

pub(crate) use call::{Call, Caller, Calls, FirstCall};
pub(crate) use cost::CallUsage;
pub(crate) use ended::{CallEnd, RequestEnd};
pub(crate) use late_counts::read_late_usage;
pub(crate) use listener::Listener;
pub(crate) use watch::Watch;
