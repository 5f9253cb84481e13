//! Schedules work so that it causes few wake-ups: timers that do not wake a task, and work that is polled
//! inside the connection that waits for it.
//!
//! Passing a small request between tasks, and setting timers that are the next to fire, costs more than all
//! other work for it. `bench/gateway` measures the savings.

mod alarm;
mod companion;
mod pace;
mod repoll;

pub(crate) use alarm::Alarm;
pub(crate) use companion::{BesideConnections, ask_woken};
pub(crate) use pace::Pace;
pub(crate) use repoll::Again;
