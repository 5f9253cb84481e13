//! Reduces wake-ups: timers that do not wake a task, and work that is polled inside the connection that waits for it.
//!
//! Moving a small request between tasks, and setting a timer that fires next, cost more than all other work for it.
//! `bench/gateway` measures the savings.

mod alarm;
mod companion;
mod pace;
mod repoll;

pub(crate) use alarm::Alarm;
pub(crate) use companion::{BesideConnections, ask_woken};
pub(crate) use pace::Pace;
pub(crate) use repoll::Again;
