//! Timers that cost nobody a wake.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Shorter than every limit that a request waits under, and so long that nobody notices it.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// A timer that is always the next to ring, until it is dropped.
///
/// Whoever sets a timer that rings before all others wakes the thread that sleeps until then, which costs more than
/// all else that is done for a small request. Limits are in seconds: with a shorter one before them none is the
/// first, and setting it only writes it down.
pub(crate) struct Pace(JoinHandle<()>);

impl Pace {
    /// Begins to tick.
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
