//! Connections to one upstream: direct or through a proxy, plain or with TLS, and with HTTP/2 if supported.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower_service::Service;

use super::link::UpstreamStream;
use crate::body::BodyError;
use crate::settings::{Authorities, Proxy, Upstream};

/// Time limit for TCP, the proxy and TLS together. Hosts that are up answer each of them within one round trip.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Error of an upstream to which the gateway cannot prepare connections.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// TLS cannot be initialised.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The certificate authorities that the environment names cannot be read.
    #[error(
        "the certificate authorities that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read ({0}): name a PEM file that exists, or unset it"
    )]
    Authorities(String),
}

/// Connects to one upstream, as configured.
#[derive(Clone)]
pub struct Connector {
    https: HttpsConnector<TransportConnector>,
    authorization: Option<HeaderValue>,
}

/// Connects to the upstream, without TLS to the upstream itself.
#[derive(Clone)]
struct TransportConnector {
    tcp: HttpConnector,
    proxy: Option<Arc<ProxyRoute>>,
}

struct ProxyRoute {
    proxy: Proxy,
    /// Connects to the proxy.
    connector: HttpsConnector<HttpConnector>,
}

/// The system's certificate authorities. They are read once for all upstreams, and only if one needs them, because
/// reading them takes most of the start-up time.
#[derive(Clone)]
pub(crate) struct SystemAuthorities(Arc<RootCertStore>);

impl SystemAuthorities {
    /// Reads the system's authorities if these upstreams need them. Without any, only plain HTTP and upstreams with
    /// authorities of their own work.
    pub(crate) fn read(upstreams: &[Upstream]) -> Result<Self, ClientError> {
        let is_https = |uri: &Uri| uri.scheme_str() == Some("https");
        let needs_tls = |upstream: &Upstream| {
            is_https(upstream.base_url.origin())
                || upstream.proxy.as_ref().is_some_and(|proxy| is_https(proxy.uri()))
        };
        if !upstreams.iter().any(needs_tls) {
            return Ok(Self(Arc::new(RootCertStore::empty())));
        }
        let found = rustls_native_certs::load_native_certs();
        let mut store = RootCertStore::empty();
        let (usable, _) = store.add_parsable_certificates(found.certs);
        if usable == 0 {
            let why: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
            let why = if why.is_empty() { "none was found".to_owned() } else { why.join("; ") };
            let is_named =
                ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|name| std::env::var_os(name).is_some());
            if is_named {
                return Err(ClientError::Authorities(why));
            }
            tracing::warn!(why, "no certificate authorities found: upstreams with https will be refused");
        }
        Ok(Self(Arc::new(store)))
    }

    fn root_store(&self, authorities: &Authorities) -> RootCertStore {
        let mut store = RootCertStore::clone(&self.0);
        store.add_parsable_certificates(authorities.certificates().iter().cloned());
        store
    }
}

impl Connector {
    /// Prepares connections to this upstream.
    ///
    /// # Errors
    /// [`ClientError`] if the system's certificate authorities cannot be read, or TLS cannot be set up.
    pub fn new(upstream: &Upstream) -> Result<Self, ClientError> {
        Self::for_upstream(upstream, &SystemAuthorities::read(std::slice::from_ref(upstream))?)
    }

    pub(crate) fn for_upstream(upstream: &Upstream, system: &SystemAuthorities) -> Result<Self, ClientError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(system.root_store(&upstream.authorities))
            .with_no_client_auth();
        let proxy = upstream.proxy.clone().map(|proxy| {
            let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
            Arc::new(ProxyRoute { proxy, connector: builder.enable_http1().wrap_connector(tcp.clone()) })
        });
        // A proxy for plain HTTP needs the credentials in each request. A tunnel needs them only once.
        let is_plain = upstream.base_url.origin().scheme_str() == Some("http");
        let authorization =
            upstream.proxy.as_ref().filter(|_| is_plain).and_then(Proxy::authorization).cloned();
        let way = TransportConnector { tcp, proxy };
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        Ok(Self { https: builder.enable_all_versions().wrap_connector(way), authorization })
    }

    /// Returns the value of `Proxy-Authorization` for each request, if a proxy reads the requests.
    pub fn proxy_authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BodyError>> + Send>>;

impl Service<Uri> for Connector {
    type Response = UpstreamStream;
    type Error = BodyError;
    type Future = Connecting<UpstreamStream>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.https.call(to);
        Box::pin(async move {
            match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(connected) => connected.map(UpstreamStream::new),
                Err(_) => Err(format!("no connection was established within {CONNECT_TIMEOUT:?}").into()),
            }
        })
    }
}

impl Service<Uri> for TransportConnector {
    type Response = EstablishedConnection;
    type Error = BodyError;
    type Future = Connecting<EstablishedConnection>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(detour) = &self.proxy else {
            let connecting = self.tcp.call(to);
            return Box::pin(async move {
                Ok(EstablishedConnection {
                    stream: MaybeHttpsStream::Http(connecting.await?),
                    is_http_proxy: false,
                })
            });
        };
        let proxy_uri = detour.proxy.uri().clone();
        let proxy_name = detour.proxy.to_string();
        let failed = move |error: BodyError| -> BodyError {
            format!("through the proxy {proxy_name}: {}", crate::causes::with_causes(&*error)).into()
        };
        let mut connector = detour.connector.clone();
        if to.scheme_str() == Some("http") {
            return Box::pin(async move {
                let stream = connector.call(proxy_uri).await.map_err(failed)?;
                Ok(EstablishedConnection { stream, is_http_proxy: true })
            });
        }
        let mut tunnel = Tunnel::new(proxy_uri, connector);
        if let Some(authorization) = detour.proxy.authorization() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        Box::pin(async move {
            let stream = tunnel.call(to).await.map_err(|error| failed(error.into()))?;
            Ok(EstablishedConnection { stream, is_http_proxy: false })
        })
    }
}

/// An established connection to an upstream.
pub(super) struct EstablishedConnection {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Whether the other end is a proxy, which needs the complete URL of each request.
    is_http_proxy: bool,
}

impl Connection for EstablishedConnection {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_http_proxy)
    }
}

impl Read for EstablishedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for EstablishedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}
