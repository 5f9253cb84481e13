//! A timer that lets other timers be set without waking a thread.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Shorter than every time limit of a request, and too long to matter.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// A timer that is always the next to fire, until it is dropped.
///
/// Setting a timer that fires before all others wakes the sleeping thread, which costs more than all other work for a
/// small request. Limits are in seconds: with a shorter timer before them none is the first, and setting one only
/// records it.
pub(crate) struct Pace(JoinHandle<()>);

impl Pace {
    /// Starts to tick.
    pub(crate) fn keep() -> Self {
        Self(tokio::spawn(async {
            let mut ticks = interval(TICK_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
            }
        }))
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.0.abort();
    }
}
