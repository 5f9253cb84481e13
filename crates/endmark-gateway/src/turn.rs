//! Reduces wake-ups. Timers do not wake a task, and the work of an upstream connection is polled inside the
//! client connection that waits for it.
//!
//! Moving a small request between tasks, or setting a timer that fires before all others, costs more than all
//! other work for the request. `bench/gateway` measures the savings.

mod alarm;
mod repoll;
mod shared_work;
mod short_timer;

pub(crate) use alarm::Alarm;
pub(crate) use repoll::RepolledFuture;
pub(crate) use shared_work::{SharedWorkExecutor, poll_woken_work};
pub(crate) use short_timer::ShortTimer;
