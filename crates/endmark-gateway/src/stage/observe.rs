//! Reads a reply as it arrives, and judges it when its call has ended.

mod certain_calls;
pub(crate) mod stream;
pub(crate) mod suspects;
mod waiting;
pub(crate) mod whole;
