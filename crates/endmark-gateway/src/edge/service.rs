//! Admits requests, and keeps their permits until the replies are complete.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use endmark_wire::format::WireFormat;
use endmark_wire::http1::SenderHeaders;
use http::{HeaderName, HeaderValue, Method, Request, Response, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout_at};

use super::body::ClientBody;
use super::connection_state::ConnectionState;
use super::framing::frame_by_body;
use super::reply::ReplyBody;
use super::server::Server;
use crate::admin;
use crate::admission::PermitClaim;
use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::refusals::{self, METHODS, Refusal, RefusalMarker};
use crate::route;
use crate::stack;
use crate::stopping::Interrupted;
use crate::work::PooledFuture;

/// Time for a stream that exceeds its limit to send an error event before its connection is closed.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The header in which a browser states the site that caused a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The header with the purpose of a request. `navigate` means that a person opens a page.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Answers one request.
pub(super) async fn answer(
    server: &Arc<Server>,
    connection_state: &Arc<ConnectionState>,
    request: Request<Incoming>,
) -> Response<AnyBody> {
    let request_guard = connection_state.begin_request();
    // A request keeps the settings with which it began.
    let gateway = server.gateway();
    let limits = &gateway.settings.limits;
    let began = Instant::now();
    let deadline = began + limits.total;
    let format = route::detect_format(request.uri(), request.headers());
    // HTTP/1.0 has no chunks. Without a length, only the end of the connection ends a reply.
    let is_http_1_0 = request.version() < Version::HTTP_11;
    let is_head = request.method() == Method::HEAD;
    let failure = Arc::new(OnceLock::new());
    let (claim, answered) = match admit(server, &gateway, &request) {
        Err(refusal) => (None, Err(refusal)),
        Ok(claim) => {
            let mut request = request.map(|body| {
                ClientBody::new(body, Arc::clone(connection_state), limits, Arc::clone(&failure))
                    .boxed_unsync()
            });
            if let Some(claim) = &claim {
                request.extensions_mut().insert(Arc::clone(claim));
            }
            let response = pin!(timeout_at(deadline, handle(Arc::clone(&gateway), request, format)));
            let answered = match server.stopping.unless_interrupted(response).await {
                Ok(answered) => answered.map_err(|_| Refusal::Timeout(limits.total)),
                Err(Interrupted) => Err(Refusal::Interrupted),
            };
            (claim, answered)
        }
    };
    let mut response = match (failure.get(), answered) {
        // The client can correct this failure, so report it instead of the inner service's response.
        (Some(failure), _) => refusals::respond(&failure.refusal(limits), format),
        (None, Ok(response)) => response,
        (None, Err(refusal)) => refusals::respond(&refusal, format),
    };
    if let Some(RefusalMarker(kind)) = response.extensions().get() {
        gateway.metrics.note_refusal(kind);
    }
    if server.is_draining() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let times = (limits.total, deadline + LAST_EVENT_TIMEOUT);
    let has_length = response.body().size_hint().exact().is_some();
    let is_empty = response.body().is_end_stream();
    frame_by_body(response.headers_mut(), is_head, has_length && !is_empty);
    response.map(|body| {
        let reply = ReplyBody::new(body, times, claim, request_guard);
        if is_http_1_0 && !is_head && !has_length { reply.ending_by_close() } else { reply }.boxed_unsync()
    })
}

/// Answers the gateway's own pages, and forwards all other requests.
async fn handle(
    gateway: Arc<Gateway>,
    request: Request<AnyBody>,
    format: &'static dyn WireFormat,
) -> Response<AnyBody> {
    if route::is_own(request.uri().path()) {
        let (mut head, body) = request.into_parts();
        let answered = match gateway.recognise(&mut head).await {
            Ok(()) => admin::respond(&gateway, head, body).await,
            Err(refusal) => Err(refusal),
        };
        let mut response = answered.unwrap_or_else(|refusal| refusals::respond(&refusal, format));
        admin::forbid_storing(response.headers_mut());
        return response;
    }
    PooledFuture::new(stack::respond(gateway, request, format)).await
}

/// Returns the refusal of a request that cannot be forwarded. Either its method is unsupported, or it would
/// switch to another protocol, which would bypass limits and recovery.
fn unsupported_refusal<B>(request: &Request<B>) -> Option<Refusal> {
    let method = request.method().as_str();
    if !METHODS.split(", ").any(|served| served == method) {
        return Some(Refusal::Method(method.to_owned()));
    }
    let protocol = request.headers().get(header::UPGRADE)?;
    Some(Refusal::Upgrade(format!("an upgrade to {}", String::from_utf8_lossy(protocol.as_bytes()))))
}

/// Decides whether the request may be served now, and returns its claim to a permit. The gateway's own pages
/// need no permit, because they report its state even while it is full or stopping.
fn admit(
    server: &Arc<Server>,
    gateway: &Gateway,
    request: &Request<Incoming>,
) -> Result<Option<Arc<PermitClaim>>, Refusal> {
    let headers = request.headers();
    let is_own = route::is_own(request.uri().path());
    // Any site may link to the gateway's own pages, because opening a page changes nothing.
    let is_followed_link = is_own && headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
    let values = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
    let (host, origins) = (headers.get(header::HOST).map(HeaderValue::as_bytes), values(header::ORIGIN));
    let sites = if is_followed_link { Vec::new() } else { values(FETCH_SITE) };
    let sender = SenderHeaders { host, origins: &origins, sites: &sites };
    gateway.visitors.admit(sender).map_err(Refusal::Stranger)?;
    if server.is_draining() && !is_own {
        return Err(Refusal::Draining);
    }
    if let Some(refusal) = unsupported_refusal(request) {
        return Err(refusal);
    }
    if is_own {
        return Ok(None);
    }
    Ok(Some(PermitClaim::new(&server.permits, &server.stopping, &gateway.settings.limits)))
}
