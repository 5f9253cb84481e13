//! When work runs, so that it costs few wake-ups: timers that wake no task, and work that runs in the turn of the
//! connection that waits for it.
//!
//! Passing a small request between tasks, and setting timers that are the next to fire, costs more than all other
//! work for it. `bench/gateway` measures what this room saves.

mod again;
mod alarm;
mod companion;
mod pace;

pub(crate) use again::Again;
pub(crate) use alarm::Alarm;
pub(crate) use companion::{BesideConnections, ask_woken};
pub(crate) use pace::Pace;
