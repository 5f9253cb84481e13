//! An upstream that may answer a request, and how it is reached.

use endmark_wire::request::Request;
use http::{HeaderMap, Method, Request as HttpRequest, Uri};

use crate::body::AnyBody;
use crate::settings::Upstream;

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

    /// Returns a request for another upstream with a model of this one.
    pub(crate) fn adapted(&self, request: &Request) -> Request {
        // A request whose path cannot be made has no other upstream.
        request.elsewhere(self.upstream.model.as_deref()).unwrap_or_else(|| request.clone())
    }
}
