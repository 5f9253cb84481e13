//! A listening gateway. Its settings can be replaced at runtime, and it shuts down gracefully.

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
use super::connections::{ConnectionAdmission, Connections};
use crate::admission::Permits;
use crate::gateway::Gateway;
use crate::refusals::Refusal;
use crate::stopping::{ShutdownStage, Stopping};
use crate::turn::ShortTimer;

/// Pause after a failed `accept`. The usual cause is a lack of file descriptors, which other connections will release.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often the shutdown checks whether the last reply has ended.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long a client may take to read the end of an aborted reply. The process should end within a second.
const CUT_OFF_TIMEOUT: Duration = Duration::from_millis(500);

/// How long connections may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Maximum number of rejected clients that are sent an error response at the same time. Further connections
/// are closed without a response.
const MAX_REFUSALS_IN_PROGRESS: usize = 64;

/// Size of the system's send buffer for each client. The default is several megabytes. This size permits two
/// megabytes per second to another continent. A client that reads a kilobyte per second still shows activity every
/// minute or two.
const SEND_BUFFER_BYTES: u32 = 128 * 1024;

/// The system accepts more data only while its buffer has fewer unsent bytes than this. Data in transit does
/// not count, so distance does not matter. A small value matters because the gateway also keeps unread data
/// for recovery.
#[cfg(target_os = "linux")]
const UNSENT_LOW_WATER_BYTES: u32 = 4 * 1024;

/// Maximum number of connections that wait to be accepted.
const ACCEPT_BACKLOG: u32 = 1_024;

/// Error of a gateway that could not shut down gracefully.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Replies were still in progress at the end of the drain time.
    #[error("{left} replies were still under way after {waited:?}, and were cut off")]
    NotDrained {
        /// The number of replies that were cut off.
        left: usize,
        /// How long the gateway waited for them.
        waited: Duration,
    },
}

/// A gateway that serves, with its current settings.
pub struct Server {
    current: Mutex<Arc<Gateway>>,
    connections: Arc<Connections>,
    pub(super) permits: Arc<Permits>,
    /// The shutdown state, which all reloaded gateways share.
    pub(super) stopping: Arc<Stopping>,
    must_stop_draining: AtomicBool,
}

impl Server {
    /// Creates a server for this gateway.
    pub fn new(gateway: Arc<Gateway>) -> Arc<Self> {
        Arc::new(Self {
            stopping: Arc::clone(&gateway.stopping),
            current: Mutex::new(gateway),
            connections: Arc::default(),
            permits: Arc::default(),
            must_stop_draining: AtomicBool::new(false),
        })
    }

    /// Returns the gateway that will answer the next request.
    pub fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the gateway, usually with the result of [`Gateway::with_settings`]. Requests in progress keep the old
    /// gateway, and connections keep their limits.
    pub fn reload(&self, gateway: Arc<Gateway>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = gateway;
    }

    /// Returns the number of replies in progress.
    pub fn replies_in_progress(&self) -> usize {
        self.connections.busy_count()
    }

    /// Returns the number of requests with a gateway key that run a model. Each is counted before its upstream is
    /// called, so this count includes every delivered reply.
    pub fn admitted_calls(&self) -> u64 {
        self.gateway().admitted_calls.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were refused because of an exhausted budget (CX-7).
    pub fn budget_refusals(&self) -> u64 {
        self.gateway().metrics.refusals(crate::refusals::BUDGET_ERROR_TYPE)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.stopping.has_reached(ShutdownStage::Draining)
    }

    /// Ends the drain time now, or as soon as draining begins.
    pub fn stop_draining(&self) {
        self.must_stop_draining.store(true, Ordering::Release);
    }

    fn reach(&self, stage: ShutdownStage) {
        self.stopping.reach(stage);
        let current = self.gateway();
        if !Arc::ptr_eq(&current.stopping, &self.stopping) {
            current.stopping.reach(stage);
        }
    }

    /// Serves connections until `shutdown` resolves, and then drains replies in progress. While draining it serves
    /// only its own pages, and `/endmark/readyz` reports that it is stopping. Replies that do not end in time are
    /// aborted: their clients get an error, and the end of each call is recorded.
    ///
    /// # Errors
    /// [`ServeError::NotDrained`] if some replies did not end in time.
    pub async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let _pace = ShortTimer::start();
        tokio::select! {
            () = self.accept_all(&listener) => {}
            () = shutdown => {}
        }
        let gateway = self.gateway();
        self.reach(ShutdownStage::Draining);
        let drained = tokio::select! {
            () = self.accept_all(&listener) => Ok(()),
            drained = self.wait_until_drained(gateway.settings.limits.drain) => drained,
        };
        drop(listener);
        if drained.is_err() {
            self.abort_remaining().await;
        }
        gateway.store.close().await;
        drained
    }

    async fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        let refusal_slots = Arc::new(Semaphore::new(MAX_REFUSALS_IN_PROGRESS));
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
            match self.connections.admit(limit) {
                ConnectionAdmission::Admitted(seat) => {
                    tokio::spawn(connection::run(Arc::clone(self), stream, seat));
                }
                ConnectionAdmission::Refused => {
                    if let Ok(slot) = Arc::clone(&refusal_slots).try_acquire_owned() {
                        self.gateway().metrics.note_refusal(Refusal::QueueFull.error_type());
                        tokio::spawn(async move {
                            connection::reject_as_full(stream).await;
                            drop(slot);
                        });
                    }
                }
            }
        }
    }

    async fn wait_until_drained(&self, waited: Duration) -> Result<(), ServeError> {
        let began = Instant::now();
        let mut quiet_checks = 0;
        // Check twice, because a reply that just ended may not be in the socket yet.
        while quiet_checks < 2 {
            let left = self.connections.busy_count();
            quiet_checks = if left == 0 { quiet_checks + 1 } else { 0 };
            let elapsed = began.elapsed();
            if left > 0 && (elapsed >= waited || self.must_stop_draining.load(Ordering::Acquire)) {
                // Milliseconds are precise enough for the message.
                let waited = Duration::from_millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
                return Err(ServeError::NotDrained { left, waited });
            }
            sleep(DRAIN_POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Aborts everything in progress: first each reply, with a final message, and then the connections that accept no
    /// message.
    async fn abort_remaining(&self) {
        for (stage, patience) in
            [(ShutdownStage::Interrupted, CUT_OFF_TIMEOUT), (ShutdownStage::Stopped, CLOSE_TIMEOUT)]
        {
            self.reach(stage);
            let until = Instant::now() + patience;
            while self.connections.busy_count() > 0 && Instant::now() < until {
                sleep(DRAIN_POLL_INTERVAL).await;
            }
        }
    }
}

async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    // Otherwise the kernel delays small events by up to 40 ms.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Listens on this address, and limits the system's buffer for each client.
///
/// # Errors
/// The system's error, which is [`io::ErrorKind::AddrInUse`] if another process listens on this address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Lets a successor process use the address immediately.
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    // Accepted connections inherit this option.
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_LOW_WATER_BYTES)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_BACKLOG)
}

/// Serves connections with one gateway until `shutdown` resolves, and then drains replies in progress.
///
/// # Errors
/// [`ServeError::NotDrained`] if some replies did not end in time and were cut off.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    Server::new(gateway).serve(listener, shutdown).await
}
