//! Runs a periodic timer, so that setting other timers does not wake a thread.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// The interval of the timer: shorter than all time limits of a request, and long enough to have no
/// noticeable cost.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// A timer that is always the next to fire, until it is dropped.
///
/// Setting a timer that fires before all others wakes the sleeping thread, which costs more than all other work for a
/// small request. Time limits are in seconds. While this shorter timer runs, it fires before them, so setting one
/// only records it.
pub(crate) struct ShortTimer(JoinHandle<()>);

impl ShortTimer {
    /// Starts the timer.
    pub(crate) fn start() -> Self {
        Self(tokio::spawn(async {
            let mut ticks = interval(TICK_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
            }
        }))
    }
}

impl Drop for ShortTimer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
