//! The listener: connections in, their limits and timers, and the orderly end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::gateway::Gateway;
use crate::stack;

/// After a failed `accept`, mostly for want of file descriptors: time for some connections to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Fields in a request's head; agents send about thirty.
const MAX_HEADERS: usize = 100;

/// Why the gateway stopped serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Replies were still under way when the time to drain was over.
    #[error("{left} connections were still open after {waited:?}")]
    NotDrained {
        /// Connections cut off.
        left: usize,
        /// How long they were waited for.
        waited: Duration,
    },
}

/// Serves connections until `shutdown` resolves, then lets replies under way end.
///
/// # Errors
/// [`ServeError::NotDrained`] if some did not end in time: they are cut off.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let slots = Arc::new(Semaphore::new(gateway.settings.limits.connections));
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = &mut shutdown => break,
        };
        let (stream, slot) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let connection = graceful.watch(connection(stream, &gateway));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended early");
            }
            drop(slot);
        });
    }
    drop(listener);
    gateway.stop_accepting();
    let left = graceful.count();
    let waited = gateway.settings.limits.drain;
    tokio::time::timeout(waited, graceful.shutdown())
        .await
        .map_err(|_| ServeError::NotDrained { left, waited })?;
    gateway.store.close().await;
    Ok(())
}

/// One connection, once there is a slot for it: until then it waits in the kernel's queue.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Without it the kernel holds back small events for up to 40 ms.
    stream.set_nodelay(true)?;
    Ok((stream, slot))
}

fn connection(
    stream: TcpStream,
    gateway: &Arc<Gateway>,
) -> http1::Connection<
    TokioIo<TcpStream>,
    impl hyper::service::HttpService<
        hyper::body::Incoming,
        ResBody = crate::body::AnyBody,
        Error = Infallible,
        Future: Send,
    > + use<>,
> {
    let limits = &gateway.settings.limits;
    let gateway = Arc::clone(gateway);
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_header_size(limits.header_bytes)
        .max_headers(MAX_HEADERS)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| {
                let gateway = Arc::clone(&gateway);
                async move { Ok::<_, Infallible>(stack::respond(gateway, request).await) }
            }),
        )
}
