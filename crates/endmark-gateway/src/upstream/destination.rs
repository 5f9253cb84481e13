//! An upstream that may answer a request, and the addresses and headers for it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use endmark_wire::request::Request;
use http::{HeaderMap, Method, Request as HttpRequest, Response, Uri};

use super::client::{Client, UpstreamError};
use crate::body::AnyBody;
use crate::settings::Upstream;

/// Sends requests through the client, and may change the responses. Fault injection uses it.
pub(crate) trait Interceptor: Send + Sync {
    /// Sends a request: see [`Client::send`].
    fn send<'a>(
        &'a self,
        client: &'a Client,
        upstream: &'a Upstream,
        request: HttpRequest<AnyBody>,
        first_byte: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Response<AnyBody>, UpstreamError>> + Send + 'a>>;
}

/// The addresses and headers for sending a request.
pub(crate) struct Destination {
    pub(crate) upstream: Upstream,
    /// The address of the request.
    pub(crate) uri: Uri,
    /// The addresses of continuation requests without and with a stream, which differ in some formats.
    pub(crate) continuation_uris: [Uri; 2],
    /// The address of the upstream's summary model, if it has one.
    pub(crate) summary_uri: Option<Uri>,
    /// The headers of all these requests.
    pub(crate) headers: HeaderMap,
    /// If set, sends the requests instead of [`Client`].
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
}

impl Destination {
    /// Returns the address of a continuation request.
    pub(crate) fn continuation_uri(&self, stream: bool) -> &Uri {
        &self.continuation_uris[usize::from(stream)]
    }

    /// Creates a request with this body to one of the addresses.
    pub(crate) fn post(&self, uri: &Uri, body: AnyBody) -> HttpRequest<AnyBody> {
        let mut request = HttpRequest::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends a request to the upstream.
    ///
    /// # Errors
    /// [`UpstreamError`] if there is no response with a readable head.
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

    /// Converts a request for this upstream, and replaces the client's model by the upstream's.
    pub(crate) fn adapt(&self, request: &Request) -> Request {
        // A request without a valid path for another upstream is sent unchanged.
        request.for_other_upstream(self.upstream.model.as_deref()).unwrap_or_else(|| request.clone())
    }
}
