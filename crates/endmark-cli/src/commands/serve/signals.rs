//! The signals that a gateway heeds, and its last moment after a request to stop.
//!
//! Both have a thread of their own: no work of the gateway, however long, keeps a signal waiting or the process alive.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use endmark_failure::{CommandError, Exit};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use crate::standard_error;

/// How long after the time to drain, or after a second signal to stop, the process may still live. It ends within a second of
/// that: the rest is for its last words.
const END_TIMEOUT: Duration = Duration::from_millis(900);

/// How long the last words may take.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(100);

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

/// The signals that were caught and not heeded yet.
pub(super) struct Signals(UnboundedReceiver<Asked>);

/// What the thread that watches signals knows of the gateway.
pub(super) struct Serving {
    /// How long replies have to end once it is asked to stop.
    pub(super) drain: Box<dyn Fn() -> Duration + Send>,
    /// Says why the process ends before all is in order: it was asked so first, this long ago.
    pub(super) give_up: Box<dyn FnOnce(Asked, Duration) -> Exit + Send>,
    /// How the process ends, once that is known: it only has to be said.
    pub(super) end: Arc<OnceLock<Exit>>,
}

impl Signals {
    /// From now on no signal ends the process by itself, but the time to stop does after the first that asks for it.
    pub(super) fn watch(serving: Serving) -> Result<Self, CommandError> {
        let bug = |error| CommandError::Bug(format!("cannot watch signals: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(bug)?;
        let within = runtime.enter();
        let mut watched = Watched {
            interrupt: signal(SignalKind::interrupt()).map_err(bug)?,
            terminate: signal(SignalKind::terminate()).map_err(bug)?,
            hangup: signal(SignalKind::hangup()).map_err(bug)?,
        };
        drop(within);
        let (tell, told) = unbounded_channel();
        let watching = async move {
            let Some(mut asked) = watched.next(None).await else { return };
            while asked == Asked::Reload {
                let _ = tell.send(asked);
                let Some(next) = watched.next(None).await else { return };
                asked = next;
            }
            let (first, since) = (asked, Instant::now());
            let mut end_at = since.checked_add((serving.drain)().saturating_add(END_TIMEOUT));
            let _ = tell.send(first);
            while let Some(asked) = watched.next(end_at).await {
                if asked != Asked::Reload {
                    let soon = Instant::now() + END_TIMEOUT;
                    end_at = Some(end_at.map_or(soon, |end_at| end_at.min(soon)));
                }
                let _ = tell.send(asked);
            }
            let known = serving.end.get().copied();
            let exit = known.unwrap_or_else(|| (serving.give_up)(first, since.elapsed()));
            standard_error::flush_within(LAST_WORDS_TIMEOUT);
            std::process::exit(i32::from(exit.code()));
        };
        let thread = thread::Builder::new().name("signals".to_owned());
        thread.spawn(move || runtime.block_on(watching)).map_err(bug)?;
        Ok(Self(told))
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Asked {
        match self.0.recv().await {
            Some(asked) => asked,
            // The thread lives as long as the process.
            None => std::future::pending().await,
        }
    }
}

struct Watched {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Watched {
    /// The next one; `None` if it does not come in time.
    async fn next(&mut self, until: Option<Instant>) -> Option<Asked> {
        let next = async {
            tokio::select! {
                _ = self.interrupt.recv() => Asked::Interrupt,
                _ = self.terminate.recv() => Asked::Terminate,
                _ = self.hangup.recv() => Asked::Reload,
            }
        };
        match until {
            Some(until) => timeout_at(until, next).await.ok(),
            None => Some(next.await),
        }
    }
}
