//! The signals that a gateway heeds.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CommandError;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// The interrupt key: to stop.
    Interrupt,
    /// Whoever runs it: to stop.
    Terminate,
    /// To read the configuration anew.
    Reload,
}

/// The signals that are watched.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// From now on no signal ends the process by itself.
    pub(super) fn watch() -> Result<Self, CommandError> {
        let watch =
            |kind| signal(kind).map_err(|error| CommandError::Bug(format!("cannot watch signals: {error}")));
        Ok(Self {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
            hangup: watch(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }
}
