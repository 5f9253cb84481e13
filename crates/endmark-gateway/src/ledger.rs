//! Records every upstream call before it starts, and writes one row when it has ended.

mod body;
mod call;
mod cost;
mod endings;
mod late_usage;
mod sent_body;
mod usage_reader;
mod watch;

pub(crate) use call::{Call, Caller, Calls, FirstCallState};
pub(crate) use cost::CallUsage;
pub(crate) use endings::{CallEnd, RequestEnd};
pub(crate) use late_usage::read_late_usage;
pub(crate) use usage_reader::UsageReader;
pub(crate) use watch::RequestWatch;
