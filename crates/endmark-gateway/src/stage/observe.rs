//! Reads a reply as it arrives, and judges it when its call has ended.

pub(crate) mod stream;
mod sure;
pub(crate) mod suspects;
mod waiting;
pub(crate) mod whole;
