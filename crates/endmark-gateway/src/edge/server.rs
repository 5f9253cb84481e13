//! A gateway that listens: it can be given other settings while it serves, and stops in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::connection;
use super::connections::{Connections, Place};
use crate::admission::Permits;
use crate::gateway::Gateway;
use crate::rescue::Refusal;
use crate::stopping::{Stage, Stopping};
use crate::turn::Pace;

/// After a failed `accept`, mostly for want of file descriptors: time for some connections to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often it is looked whether the last reply is over.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long a client may take to read the end of a reply that is cut off: the process is to end within a second.
const CUT_OFF_TIMEOUT: Duration = Duration::from_millis(500);

/// How long connections may take to close; closing waits for nobody.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Clients that are being told that there is no place. More are told nothing.
const SENT_AWAY_AT_ONCE: usize = 64;

/// What the system keeps for a client that has not read it yet; by itself it would keep megabytes for each. Enough for
/// two megabytes a second to another continent, and so
/// few that one who reads a kilobyte a second is heard of every minute or two.
const SEND_BUFFER_BYTES: u32 = 128 * 1024;

/// How much of that may be there before the client's system is ready for it. What is on its way does not count, so that
/// distance does not; but what waits for a slow reader is held here a second time, to be mended if it breaks off.
#[cfg(target_os = "linux")]
const UNSENT_LOW_WATER_BYTES: u32 = 4 * 1024;

/// Connections that the system keeps until they are accepted: what comes in a moment in which nothing is accepted.
const ACCEPT_BACKLOG: u32 = 1_024;

/// Why the gateway stopped serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Replies were still under way when the time to drain was over.
    #[error("{left} replies were still under way after {waited:?}, and were cut off")]
    NotDrained {
        /// Replies cut off.
        left: usize,
        /// How long they were waited for.
        waited: Duration,
    },
}

/// A gateway that serves, with the settings that are in effect now.
pub struct Server {
    current: Mutex<Arc<Gateway>>,
    connections: Arc<Connections>,
    pub(super) permits: Arc<Permits>,
    /// That of the gateway it began with, and of those made from it.
    pub(super) stopping: Arc<Stopping>,
    has_to_hurry: AtomicBool,
}

impl Server {
    /// Serves what this gateway answers.
    pub fn new(gateway: Arc<Gateway>) -> Arc<Self> {
        Arc::new(Self {
            stopping: Arc::clone(&gateway.stopping),
            current: Mutex::new(gateway),
            connections: Arc::default(),
            permits: Arc::default(),
            has_to_hurry: AtomicBool::new(false),
        })
    }

    /// The gateway that answers the next request.
    pub fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on this gateway answers, mostly [`Gateway::reloaded`] from the one before. Requests under way keep
    /// the one they began with, connections keep their own limits.
    pub fn reload(&self, gateway: Arc<Gateway>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = gateway;
    }

    /// How many replies are under way.
    pub fn busy(&self) -> usize {
        self.connections.busy()
    }

    /// How many requests with a key of our own asked for work of a model. Each counts before its upstream is called, so
    /// that no client can have a reply that is not counted here.
    pub fn admitted_calls(&self) -> u64 {
        self.gateway().admitted_calls.load(Ordering::Relaxed)
    }

    /// How many requests were refused since a budget is used up (CX-7).
    pub fn refused_for_budget(&self) -> u64 {
        self.gateway().metrics.refusals(crate::rescue::BUDGET_REFUSED)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.stopping.has_reached(Stage::Draining)
    }

    /// Ends the draining now, or as soon as it begins, as if its time were over.
    pub fn hurry(&self) {
        self.has_to_hurry.store(true, Ordering::Release);
    }

    fn reach(&self, stage: Stage) {
        self.stopping.reach(stage);
        let current = self.gateway();
        if !Arc::ptr_eq(&current.stopping, &self.stopping) {
            current.stopping.reach(stage);
        }
    }

    /// Serves connections until `shutdown` resolves, then lets replies under way end. Meanwhile it answers nothing
    /// else but its own pages: `/endmark/readyz` says at once that it stops. What does not end in time is cut off: its
    /// clients are told, and how each of its calls ended is recorded.
    ///
    /// # Errors
    /// [`ServeError::NotDrained`] if some did not end in time.
    pub async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let _pace = Pace::keep();
        tokio::select! {
            () = self.accept_all(&listener) => {}
            () = shutdown => {}
        }
        let gateway = self.gateway();
        self.reach(Stage::Draining);
        let drained = tokio::select! {
            () = self.accept_all(&listener) => Ok(()),
            drained = self.drained(gateway.settings.limits.drain) => drained,
        };
        drop(listener);
        if drained.is_err() {
            self.cut_off().await;
        }
        gateway.store.close().await;
        drained
    }

    async fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        let sent_away = Arc::new(Semaphore::new(SENT_AWAY_AT_ONCE));
        loop {
            let stream = match accept(listener).await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let limit = self.gateway().settings.limits.connections;
            match self.connections.enter(limit) {
                Place::Free(seat) => {
                    tokio::spawn(connection::run(Arc::clone(self), stream, seat));
                }
                Place::None => {
                    if let Ok(one) = Arc::clone(&sent_away).try_acquire_owned() {
                        self.gateway().metrics.refused(Refusal::NoPlace.kind());
                        tokio::spawn(async move {
                            connection::send_away(stream).await;
                            drop(one);
                        });
                    }
                }
            }
        }
    }

    async fn drained(&self, waited: Duration) -> Result<(), ServeError> {
        let began = Instant::now();
        let mut quiet = 0;
        // A reply that has just ended may still be on its way into the socket: it is looked twice.
        while quiet < 2 {
            let left = self.connections.busy();
            quiet = if left == 0 { quiet + 1 } else { 0 };
            let elapsed = began.elapsed();
            if left > 0 && (elapsed >= waited || self.has_to_hurry.load(Ordering::Acquire)) {
                // Nobody reads more than milliseconds.
                let waited = Duration::from_millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
                return Err(ServeError::NotDrained { left, waited });
            }
            sleep(DRAIN_POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Ends what is still under way: first each reply with a last word, then the connections of those who take none.
    async fn cut_off(&self) {
        for (stage, patience) in [(Stage::Interrupted, CUT_OFF_TIMEOUT), (Stage::Over, CLOSE_TIMEOUT)] {
            self.reach(stage);
            let until = Instant::now() + patience;
            while self.connections.busy() > 0 && Instant::now() < until {
                sleep(DRAIN_POLL_INTERVAL).await;
            }
        }
    }
}

async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    // Without it the kernel holds back small events for up to 40 ms.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Listens on this address, with a bound on what the system keeps for each client.
///
/// # Errors
/// What the system says; [`io::ErrorKind::AddrInUse`] where another one listens there.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A process that follows another one takes its address over at once.
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    // Each connection that is accepted has it from here.
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_LOW_WATER_BYTES)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_BACKLOG)
}

/// Serves connections with one gateway until `shutdown` resolves, then lets replies under way end.
///
/// # Errors
/// [`ServeError::NotDrained`] if some did not end in time: they are cut off.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    Server::new(gateway).serve(listener, shutdown).await
}
