//! Handles signals of the gateway, and forces its end after a request to stop.
//!
//! Both run on a separate thread, so that no work of the gateway delays a signal or the end of the process.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use endmark_failure::{CommandError, ExitStatus};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use crate::standard_error;

/// How long the process may still run after the drain time, or after a second signal to stop.
///
/// The process must end within one second; the rest is for the final message.
const END_TIMEOUT: Duration = Duration::from_millis(900);

/// Time limit for the final message.
const FINAL_MESSAGE_TIMEOUT: Duration = Duration::from_millis(100);

/// The action that a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalAction {
    /// Stop, requested with the interrupt key.
    Interrupt,
    /// Stop, requested by the process manager.
    Terminate,
    /// Reload the configuration.
    Reload,
}

/// Caught signals that still have to be handled.
pub(super) struct Signals(UnboundedReceiver<SignalAction>);

/// What the signal thread needs to end the gateway.
pub(super) struct ShutdownActions {
    /// Returns how long replies may take to end after a request to stop.
    pub(super) drain: Box<dyn Fn() -> Duration + Send>,
    /// Reports why the process ends early. Arguments: the first stop request, and the time since.
    pub(super) give_up: Box<dyn FnOnce(SignalAction, Duration) -> ExitStatus + Send>,
    /// The exit code as soon as it is known, before it is reported.
    pub(super) end: Arc<OnceLock<ExitStatus>>,
}

impl Signals {
    /// Starts watching signals, which then no longer end the process.
    ///
    /// The drain time starts with the first request to stop.
    pub(super) fn watch(serving: ShutdownActions) -> Result<Self, CommandError> {
        let bug = |error| CommandError::Bug(format!("cannot watch signals: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(bug)?;
        let within = runtime.enter();
        let mut watched = SignalStreams {
            interrupt: signal(SignalKind::interrupt()).map_err(bug)?,
            terminate: signal(SignalKind::terminate()).map_err(bug)?,
            hangup: signal(SignalKind::hangup()).map_err(bug)?,
        };
        drop(within);
        let (tell, told) = unbounded_channel();
        let watching = async move {
            let Some(mut received_signal) = watched.next(None).await else { return };
            while received_signal == SignalAction::Reload {
                let _ = tell.send(received_signal);
                let Some(next) = watched.next(None).await else { return };
                received_signal = next;
            }
            let (first, since) = (received_signal, Instant::now());
            let mut end_at = since.checked_add((serving.drain)().saturating_add(END_TIMEOUT));
            let _ = tell.send(first);
            while let Some(received_signal) = watched.next(end_at).await {
                if received_signal != SignalAction::Reload {
                    let soon = Instant::now() + END_TIMEOUT;
                    end_at = Some(end_at.map_or(soon, |end_at| end_at.min(soon)));
                }
                let _ = tell.send(received_signal);
            }
            let known = serving.end.get().copied();
            let exit = known.unwrap_or_else(|| (serving.give_up)(first, since.elapsed()));
            standard_error::flush_within(FINAL_MESSAGE_TIMEOUT);
            std::process::exit(i32::from(exit.code()));
        };
        let thread = thread::Builder::new().name("signals".to_owned());
        thread.spawn(move || runtime.block_on(watching)).map_err(bug)?;
        Ok(Self(told))
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> SignalAction {
        match self.0.recv().await {
            Some(received_signal) => received_signal,
            // The thread lives as long as the process.
            None => std::future::pending().await,
        }
    }
}

struct SignalStreams {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl SignalStreams {
    /// Waits for the next signal, or returns `None` at `until`.
    async fn next(&mut self, until: Option<Instant>) -> Option<SignalAction> {
        let next = async {
            tokio::select! {
                _ = self.interrupt.recv() => SignalAction::Interrupt,
                _ = self.terminate.recv() => SignalAction::Terminate,
                _ = self.hangup.recv() => SignalAction::Reload,
            }
        };
        match until {
            Some(until) => timeout_at(until, next).await.ok(),
            None => Some(next.await),
        }
    }
}
