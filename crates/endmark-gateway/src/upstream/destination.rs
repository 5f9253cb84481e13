//! An upstream that may answer a request, and how it is reached.

use endmark_wire::request::Request;
use http::{HeaderMap, Method, Request as HttpRequest, Uri};

use crate::body::AnyBody;
use crate::settings::Upstream;

/// Where a request goes, and with what.
pub(crate) struct Destination {
    pub(crate) upstream: Upstream,
    /// Where the request goes.
    pub(crate) uri: Uri,
    /// Where requests for the rest of its reply go that are to be streams, and where the others: in some formats the
    /// path says it.
    pub(crate) further: [Uri; 2],
    /// Where the model of the upstream is asked that sums conversations up, if it has one.
    pub(crate) summary: Option<Uri>,
    /// The headers they go with.
    pub(crate) headers: HeaderMap,
}

impl Destination {
    /// Where a request for the rest goes.
    pub(crate) fn further(&self, stream: bool) -> &Uri {
        &self.further[usize::from(stream)]
    }

    /// A request with this body, to one of its addresses.
    pub(crate) fn post(&self, uri: &Uri, body: AnyBody) -> HttpRequest<AnyBody> {
        let mut request = HttpRequest::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// A request that was for another upstream, for a model that this one has.
    pub(crate) fn adapted(&self, request: &Request) -> Request {
        // One that no path can be made for has no other upstream.
        request.elsewhere(self.upstream.model.as_deref()).unwrap_or_else(|| request.clone())
    }
}
