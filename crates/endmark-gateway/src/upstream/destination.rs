//! An upstream that may answer a request, and how it is reached.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use endmark_wire::request::Request;
use http::{HeaderMap, Method, Request as HttpRequest, Response, Uri};

use super::client::{Client, UpstreamError};
use crate::body::AnyBody;
use crate::settings::Upstream;

/// Sends requests through the client, and may change their answers: this injects faults on command.
pub(crate) trait Interceptor: Send + Sync {
    /// See [`Client::send`].
    fn send<'a>(
        &'a self,
        client: &'a Client,
        upstream: &'a Upstream,
        request: HttpRequest<AnyBody>,
        first_byte: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Response<AnyBody>, UpstreamError>> + Send + 'a>>;
}

/// Where a request is sent, and with which headers.
pub(crate) struct Destination {
    pub(crate) upstream: Upstream,
    /// The address of the request.
    pub(crate) uri: Uri,
    /// The addresses of continuation requests with and without a stream: in some formats they differ.
    pub(crate) further: [Uri; 2],
    /// The address of the upstream's model for summaries, if it has one.
    pub(crate) summary: Option<Uri>,
    /// Their headers.
    pub(crate) headers: HeaderMap,
    /// Sends its requests instead of the client, if there is one.
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
}

impl Destination {
    /// Returns the address of a continuation request.
    pub(crate) fn further(&self, stream: bool) -> &Uri {
        &self.further[usize::from(stream)]
    }

    /// Makes a request with this body to one of its addresses.
    pub(crate) fn post(&self, uri: &Uri, body: AnyBody) -> HttpRequest<AnyBody> {
        let mut request = HttpRequest::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends a request to its upstream.
    ///
    /// # Errors
    /// [`UpstreamError`] if there is no answer whose head can be read.
    pub(crate) async fn send(
        &self,
        client: &Client,
        request: HttpRequest<AnyBody>,
        first_byte: Duration,
    ) -> Result<Response<AnyBody>, UpstreamError> {
        match &self.interceptor {
            Some(interceptor) => interceptor.send(client, &self.upstream, request, first_byte).await,
            None => client.send(&self.upstream, request, first_byte).await,
        }
    }

    /// Returns a request for another upstream with a model of this one.
    pub(crate) fn adapted(&self, request: &Request) -> Request {
        // A request whose path cannot be made has no other upstream.
        request.elsewhere(self.upstream.model.as_deref()).unwrap_or_else(|| request.clone())
    }
}
