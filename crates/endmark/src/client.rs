//! A small HTTP client for the command's own requests.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Sends one request at a time: no redirects, no cookies, no decoding.
pub(crate) struct Client {
    inner: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The server could not be reached, or broke off.
    #[error("{0}")]
    Broken(String),
    /// The server took too long.
    #[error("it did not answer within {} s", .0.as_secs())]
    Silent(Duration),
}

impl Client {
    /// A client with the system's certificate authorities; where there are none, only plain HTTP works.
    pub(crate) fn new() -> Result<Self, ClientError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let builder = match HttpsConnectorBuilder::new().with_provider_and_native_roots(Arc::clone(&provider))
        {
            Ok(builder) => builder,
            Err(_) => HttpsConnectorBuilder::new().with_tls_config(
                rustls::ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()?
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth(),
            ),
        };
        let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        Ok(Self { inner: legacy::Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Sends a request and reads the whole answer, within this time.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Bytes>, ClientError> {
        let exchange = async {
            let response = self.inner.request(request).await.map_err(|error| broken(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| broken(&*error))?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        tokio::time::timeout(within, exchange).await.unwrap_or(Err(ClientError::Silent(within)))
    }
}

/// An exchange that broke off, and why.
fn broken(error: &dyn Error) -> ClientError {
    ClientError::Broken(endmark_gateway::with_causes(error))
}
