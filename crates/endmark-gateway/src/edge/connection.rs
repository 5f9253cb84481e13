//! Serves one connection from its beginning to its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection_state::{Activity, ConnectionState};
use super::connections::ConnectionSlot;
use super::raw_error::raw_error_response;
use super::request_gate::RequestGate;
use super::server::Server;
use super::service;
use super::socket::Socket;
use crate::refusals::Refusal;
use crate::stopping::ShutdownStage;
use crate::turn::RepolledFuture;

/// Time limit of a TLS handshake. It allows for a few round trips and a slow client's computations.
const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Minimum buffer size that the HTTP library requires.
const MIN_BUFFER_BYTES: usize = 8 * 1024;

/// How long a rejected client may take to read the error and disconnect.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves a connection until it ends.
pub(super) async fn run(server: Arc<Server>, stream: TcpStream, seat: ConnectionSlot) {
    let stream = Socket::new(stream, Arc::clone(&seat.state));
    let gateway = server.gateway();
    let Some(acceptor) = &gateway.tls else {
        return serve(server, stream, &seat.state).await;
    };
    seat.state.set_activity(Activity::SendsHead);
    let handshake = timeout(TLS_HANDSHAKE_TIMEOUT, acceptor.accept(stream));
    let accepted = tokio::select! {
        accepted = handshake => accepted,
        () = seat.state.closing.notified() => return,
    };
    drop(gateway);
    match accepted {
        Ok(Ok(stream)) => serve(server, stream, &seat.state).await,
        Ok(Err(error)) => tracing::info!(%error, "a TLS handshake failed"),
        Err(_) => {
            tracing::info!(
                after_seconds = TLS_HANDSHAKE_TIMEOUT.as_secs_f64(),
                "a TLS handshake took too long"
            );
        }
    }
}

async fn serve<S>(server: Arc<Server>, stream: S, connection_state: &Arc<ConnectionState>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let gateway = server.gateway();
    let (limits, metrics) = (gateway.settings.limits.clone(), Arc::clone(&gateway.metrics));
    drop(gateway);
    let stopping = Arc::clone(&server.stopping);
    let mut stages = stopping.stages();
    let doorway =
        RequestGate::new(stream, Arc::clone(connection_state), Arc::clone(&stopping), metrics, &limits);
    let service_presence = Arc::clone(connection_state);
    let connection = http1::Builder::new()
        // The request gate has its own timeouts, and rejects heads above these limits.
        .header_read_timeout(None)
        .max_headers(limits.header_fields)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes.saturating_add(MIN_BUFFER_BYTES))
        .serve_connection(
            TokioIo::new(doorway),
            service_fn(move |request| {
                let (server, presence) = (Arc::clone(&server), Arc::clone(&service_presence));
                // Box the future, because the library reserves memory for it during the whole connection.
                Box::pin(
                    async move { Ok::<_, Infallible>(service::answer(&server, &presence, request).await) },
                )
            }),
        );
    let mut connection = RepolledFuture::new(connection);
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            // At each stage of the shutdown, the connection aborts work that the stage does not permit.
            Ok(()) = stages.changed() => {
                if stopping.has_reached(ShutdownStage::Stopped) {
                    return;
                }
            }
            () = connection_state.closing.notified() => {
                if matches!(connection_state.activity().0, Activity::SendsBody | Activity::NotReading) {
                    tracing::info!("a slow client was disconnected to make room for another");
                    return;
                }
            }
        }
    }
}

/// Sends a rejected client the message to retry later.
pub(super) async fn reject_as_full(mut stream: TcpStream) {
    let response_bytes = raw_error_response(&Refusal::QueueFull);
    let send_and_close = async {
        stream.write_all(&response_bytes).await?;
        stream.shutdown().await?;
        let mut nothing = [0; 1024];
        while tokio::io::AsyncReadExt::read(&mut stream, &mut nothing).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    // A client that does not read the message in time does not get it.
    let _ = timeout(REFUSAL_TIMEOUT, send_and_close).await;
}
