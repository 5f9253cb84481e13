//! The way of a request, from top to bottom.
//!
//! admit → deliver → observe → judge → resume → validate → correct → settle → disclose: each is a module of
//! `exchange`, the later ones once for replies that come as a whole and once for streams.

use std::sync::Arc;

use endmark_core::Ending;
use endmark_wire::format::{Found, WireFormat};
use http::{Request, Response, header};
use tracing::Instrument as _;

use crate::body::{AnyBody, unbroken};
use crate::edge::Claim;
use crate::exchange::{self, Exchange};
use crate::faults::Rehearsal;
use crate::gateway::Gateway;
use crate::health;
use crate::ledger::Ended;
use crate::request_body::Incoming;
use crate::rescue::{self, Refusal};
use crate::route::{self, Route, Target};
use crate::settings::Mode;
use crate::upstream::{for_upstream, from_upstream, is_event_stream, of_changed_body};

/// Answers one request, whatever it is; it speaks of errors as `format` does.
pub(crate) async fn respond(
    gateway: Arc<Gateway>,
    request: Request<AnyBody>,
    format: &'static dyn WireFormat,
) -> Response<AnyBody> {
    if let Some(refusal) = upgrade(&request) {
        return rescue::respond(&refusal, format);
    }
    let refuse = |refusal: Refusal| rescue::respond(&refusal, format);
    let (model, request) = match route::named(&gateway, request).await {
        Ok(named) => named,
        Err(refusal) => return refuse(refusal),
    };
    let model = model.as_deref();
    let answered = match route::find(&gateway, request.method(), request.uri(), request.headers(), model) {
        Route::Health => Ok(health::alive()),
        Route::Metrics => Ok(health::metrics(&gateway)),
        Route::Ready => Ok(health::ready(&gateway).await),
        Route::Reply(target, found) => {
            let rehearsal = Arc::new(gateway.faults.draw(format));
            let answered = match rehearsal.instead() {
                Some(answer) => Ok(answer),
                None => reply_to(&gateway, &target, found, request, Arc::clone(&rehearsal)).await,
            };
            let answer = answered.unwrap_or_else(refuse);
            Ok(rehearsal.deliver(answer).await)
        }
        Route::PassThrough(target) => pass_through(&gateway, &target, request).await,
        Route::Unknown(what) => Err(Refusal::NotFound(what)),
        Route::Unserved(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(refuse)
}

/// A connection that is to become something else than HTTP would pass unbounded and unread.
fn upgrade(request: &Request<AnyBody>) -> Option<Refusal> {
    if request.method() == http::Method::CONNECT {
        return Some(Refusal::Upgrade("a tunnel (CONNECT)".to_owned()));
    }
    let protocol = request.headers().get(header::UPGRADE)?;
    Some(Refusal::Upgrade(format!("an upgrade to {}", String::from_utf8_lossy(protocol.as_bytes()))))
}

/// A path that Endmark has nothing to do with: there and back, byte for byte, but for the id of a response that goes on
/// under another.
async fn pass_through(
    gateway: &Gateway,
    target: &Target<'_>,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, Refusal> {
    let (head, body) = request.into_parts();
    let (body, changed) = exchange::change_passing(gateway, target, &head.headers, body).await?;
    let (body, _holding) = body.unchanged();
    if let Some(claim) = head.extensions.get::<Arc<Claim>>() {
        claim.take().await?;
    }
    let mut onward = Request::new(body);
    *onward.method_mut() = head.method;
    *onward.uri_mut() = target.without_credential().locate()?;
    *onward.headers_mut() = for_upstream(&head.headers, target.upstream, None);
    if changed.is_any() {
        onward.headers_mut().remove(header::CONTENT_ENCODING);
        of_changed_body(onward.headers_mut());
    }
    let mut answer = send(gateway, target, onward).await?;
    changed.write_headers(answer.headers_mut());
    Ok(answer.map(|body| unbroken(body, gateway.settings.limits.idle)))
}

/// A request for a reply that can be read.
async fn reply_to(
    gateway: &Arc<Gateway>,
    target: &Target<'_>,
    found: Found,
    request: Request<Incoming>,
    rehearsal: Arc<Rehearsal>,
) -> Result<Response<AnyBody>, Refusal> {
    let format = found.format;
    let exchange = exchange::admit(gateway, target, found, request, rehearsal).await?;
    let id = exchange.id.clone();
    let span = tracing::info_span!("request", request = id);
    // On the heap: what one request needs is too much for the stack of all that call this.
    let answered = Box::pin(reply(exchange)).instrument(span).await;
    Ok(answered.unwrap_or_else(|refusal| rescue::respond_to(&id, &refusal, format)))
}

/// The reply to a request that was admitted.
async fn reply(mut exchange: Box<Exchange>) -> Result<Response<AnyBody>, Refusal> {
    let watch = Arc::clone(&exchange.calls.watch);
    let answer = exchange::deliver(&mut exchange).await.inspect_err(|_| watch.end(Ended::Failed))?;
    if exchange.mode == Mode::Off {
        return Ok(answer.map(|body| exchange.pass_unread(body, Ending::Clean)));
    }
    if !answer.status().is_success() {
        watch.end(Ended::Refused);
        return exchange::refused(exchange, answer).await;
    }
    if answer.headers().get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        // It was asked for plain bytes; what cannot be read can still be passed.
        tracing::warn!(request = exchange.id, "the upstream compressed its answer: it passes unread");
        return Ok(answer.map(|body| exchange.pass_unread(body, Ending::Clean)));
    }
    if is_event_stream(answer.headers()) {
        Ok(exchange::streamed(exchange, answer))
    } else {
        exchange::whole(exchange, answer).await.inspect_err(|_| watch.end(Ended::Failed))
    }
}

/// Sends a request to its upstream; the answer has the headers a client gets.
async fn send(
    gateway: &Gateway,
    target: &Target<'_>,
    request: Request<AnyBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let first_byte = gateway.settings.limits.first_byte;
    let mut answer = gateway
        .client
        .send(target.upstream, request, first_byte)
        .await
        .map_err(|error| Refusal::without_answer(target.upstream, error))?;
    let headers = std::mem::take(answer.headers_mut());
    *answer.headers_mut() = from_upstream(headers);
    Ok(answer)
}
