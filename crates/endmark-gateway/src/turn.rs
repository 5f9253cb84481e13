//! When work is done, so that it costs few wake-ups: timers that nobody is woken for, and work that is done in the turn
//! of the connection that waits for it.
//!
//! Handing a small request from task to task, and setting timers that ring first, costs more than all else that is done
//! for it. `bench/gateway` measures what this room saves.

mod again;
mod alarm;
mod companion;
mod pace;

pub(crate) use again::Again;
pub(crate) use alarm::Alarm;
pub(crate) use companion::{BesideConnections, ask_woken};
pub(crate) use pace::Pace;
