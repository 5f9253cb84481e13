//! The client for upstream calls: no redirects, no hidden decoding, timers armed.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::body::{AnyBody, BodyError, passing};
use crate::causes::with_causes;

/// For the TCP and TLS handshakes; a host that is up answers within one round trip.
const CONNECT: Duration = Duration::from_secs(10);

/// Shorter than the idle timeouts of common servers and load balancers, so that a pooled connection is
/// rarely closed under a request.
const POOL_IDLE: Duration = Duration::from_secs(55);

/// Sends requests to upstreams.
pub(crate) struct Client {
    inner: legacy::Client<HttpsConnector<HttpConnector>, AnyBody>,
}

/// Why the client cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct ClientError(#[from] rustls::Error);

/// Why an upstream gave no answer at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// It could not be reached, or broke off before the head of its answer.
    #[error("{0}")]
    Unreachable(String),
    /// It took the request and did not begin to answer.
    #[error("no answer began within {0:?}")]
    Silent(Duration),
}

impl Client {
    /// A client with the system's certificate authorities. Where the system has none, only plain HTTP works.
    pub(crate) fn new() -> Result<Self, ClientError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let with_roots = HttpsConnectorBuilder::new().with_provider_and_native_roots(Arc::clone(&provider));
        let builder = match with_roots {
            Ok(builder) => builder,
            Err(error) => {
                tracing::warn!(%error, "no certificate authorities found: upstreams with https will be refused");
                let config = rustls::ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()?
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth();
                HttpsConnectorBuilder::new().with_tls_config(config)
            }
        };
        let connector = builder.https_or_http().enable_all_versions().wrap_connector(tcp);
        let inner = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .build(connector);
        Ok(Self { inner })
    }

    /// Sends a request and waits at most `first_byte` for the head of the answer.
    pub(crate) async fn send(
        &self,
        request: Request<AnyBody>,
        first_byte: Duration,
    ) -> Result<Response<AnyBody>, UpstreamError> {
        match tokio::time::timeout(first_byte, self.inner.request(request)).await {
            Ok(Ok(response)) => Ok(response.map(passing)),
            Ok(Err(error)) => Err(UpstreamError::Unreachable(with_causes(&error))),
            Err(_) => Err(UpstreamError::Silent(first_byte)),
        }
    }
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It is longer than allowed.
    #[error("it is over {0} bytes")]
    TooLong(usize),
    /// No byte came for that long.
    #[error("nothing came for {0:?}")]
    Stalled(Duration),
    /// The sender broke off.
    #[error("it broke off: {0}")]
    Broken(BodyError),
}

/// Reads a body of at most `cap` bytes, with at most `idle` between its parts.
pub(crate) async fn read_whole<B>(body: B, cap: usize, idle: Duration) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    match read_up_to(body, cap, idle).await? {
        Read::Whole(bytes) => Ok(bytes),
        Read::Longer(..) => Err(ReadError::TooLong(cap)),
    }
}

/// What was read of a body that may be longer than is kept.
pub(crate) enum Read<B> {
    /// All of it.
    Whole(Bytes),
    /// Its beginning, and the body that goes on from there.
    Longer(Bytes, B),
}

/// Reads a body until it ends or is longer than `cap` bytes, with at most `idle` between its parts.
pub(crate) async fn read_up_to<B>(mut body: B, cap: usize, idle: Duration) -> Result<Read<B>, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    if body.size_hint().lower() > cap as u64 {
        return Ok(Read::Longer(Bytes::new(), body));
    }
    let mut whole = BytesMut::new();
    loop {
        match tokio::time::timeout(idle, body.frame()).await {
            Err(_) => return Err(ReadError::Stalled(idle)),
            Ok(None) => return Ok(Read::Whole(whole.freeze())),
            Ok(Some(Err(error))) => return Err(ReadError::Broken(error.into())),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    whole.extend_from_slice(&data);
                    if whole.len() > cap {
                        return Ok(Read::Longer(whole.freeze(), body));
                    }
                }
            }
        }
    }
}
