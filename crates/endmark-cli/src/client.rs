//! A small HTTP client for the command's own requests.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use endmark_gateway::{Connector, Upstream};
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;

/// The longest response body that is read.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// An HTTP client for single requests, without redirects, cookies or content decoding.
pub(crate) struct Client {
    inner: legacy::Client<Connector, Full<Bytes>>,
    connector: Connector,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// TLS cannot be initialised, or its certificate authorities cannot be read.
    #[error(transparent)]
    Tls(#[from] endmark_gateway::ClientError),
    /// The server could not be reached, or the connection broke off.
    #[error("{0}")]
    ConnectionBroken(String),
    /// The server sent no complete response within this time.
    #[error("it did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl Client {
    /// Creates a client for this server, with the server's proxy and trusted certificates.
    pub(crate) fn new(server: &Upstream) -> Result<Self, ClientError> {
        let connector = Connector::new(server)?;
        Ok(Self { inner: legacy::Client::builder(TokioExecutor::new()).build(connector.clone()), connector })
    }

    /// Sends a request and reads the whole response, within this time.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Response<Bytes>, ClientError> {
        if let Some(authorization) = self.connector.proxy_authorization() {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let exchange = async {
            let response = self.inner.request(request).await.map_err(|error| exchange_error(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
            let body = body.map_err(|error| exchange_error(&*error))?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        tokio::time::timeout(within, exchange).await.unwrap_or(Err(ClientError::TimedOut(within)))
    }
}

/// Converts an error of a broken exchange, with its causes.
fn exchange_error(error: &dyn Error) -> ClientError {
    ClientError::ConnectionBroken(endmark_gateway::with_causes(error))
}
