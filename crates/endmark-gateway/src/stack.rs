//! The request path from top to bottom: each line of [`reply_to`] is a stage, a module of `stage`.
//!
//! A stage takes the result of the previous one and does not use later ones. After the head of a stream, the
//! remaining stages run while its body is read: see [`stream`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use endmark_recovery::Ending;
use endmark_wire::format::{AddressedFormat, WireFormat};
use endmark_wire::paths::{self, Cost};
use http::{Method, Request, Response};
use tracing::Instrument as _;

use crate::body::{AnyBody, made, passing};
use crate::bounds::{Bounds, Passage};
use crate::budget::KeyLimits;
use crate::exchange::Exchange;
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::keys::refused::KeyRefused;
use crate::pass_through::pass_through;
use crate::refused::Refusable;
use crate::reply::{ClientGone, ClientStream};
use crate::request_body::Incoming;
use crate::rescue::Refusal;
use crate::route::{self, Route, Target};
use crate::stage::admit::admit;
use crate::stage::deliver::{Delivered, deliver, deliver_again};
use crate::stage::identify::identify;
use crate::stage::observe::whole::{Observation, Observed};
use crate::stage::own_calls::{self, Reading};
use crate::stage::reserve::reserve;
use crate::stage::shape::shape;
use crate::stage::{disclose, mend, observe, settle};
use crate::upstream::{Credential, of_another_body};
use crate::work::LARGE_BYTES;

/// Answers one request to an upstream. Errors have the form of `format`.
pub(crate) async fn respond(
    gateway: Arc<Gateway>,
    mut request: Request<AnyBody>,
    format: &'static dyn WireFormat,
) -> Response<AnyBody> {
    let mut refusable = Refusable::new(&gateway, format);
    // Check the key before any of the body is read.
    let key = match gateway.own_key(request.headers(), request.uri()).await {
        Ok(key) => key,
        Err(refusal) => return refusable.refuse(&refusal),
    };
    let own_key = key.as_ref().map(|key| key.identity());
    let budget_applies = gateway.budgets.are_any(KeyLimits::default());
    let credential = match Credential::of_request(own_key, request.headers(), request.uri(), budget_applies) {
        Ok(credential) => credential,
        Err(unclear) => return refusable.refuse(&unclear.into()),
    };
    if let Some(credential) = credential {
        refusable.has_credential(&credential);
        request.extensions_mut().insert(credential);
    }
    if let Some(key) = &key {
        request.extensions_mut().insert(Arc::clone(key));
    }
    let (model, request) = match route::named(&gateway, request).await {
        Ok(named) => named,
        Err(refusal) => return refusable.refuse(&refusal),
    };
    let model = model.as_deref();
    let route = route::find(&gateway, request.method(), request.uri(), request.headers(), model);
    refusable.is_for(model, route.upstream());
    let passage = match admitted(&gateway, key.as_deref(), &route, &request) {
        Ok(passage) => passage,
        Err(refusal) => return refusable.refuse(&refusal),
    };
    let answered = match route {
        Route::Reply(target, found) => {
            let reply = async |request| {
                let replied = Box::pin(reply_to(&gateway, &target, found, request, &mut refusable)).await;
                replied.unwrap_or_else(|refusal| refusable.refuse(&refusal))
            };
            Ok(gateway.faults.rehearse(format, request, reply).await)
        }
        Route::PassThrough(target) => pass_through(&gateway, &target, passage, request).await,
        Route::Unknown(what) => Err(Refusal::NotFound(what)),
        Route::Unserved(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| refusable.refuse(&refusal))
}

/// Whether a client with this key may make this request, and what remains to be checked in the body.
fn admitted(
    gateway: &Gateway,
    key: Option<&OwnKey>,
    route: &Route<'_>,
    request: &Request<Incoming>,
) -> Result<Passage, Refusal> {
    let (Route::Reply(target, _) | Route::PassThrough(target)) = route else { return Ok(Passage::Open) };
    // A key of the gateway is invalid at an upstream, which therefore needs its own.
    if key.is_some() && target.upstream.api_key.is_none() {
        return Err(KeyRefused::NoUpstreamKey(target.upstream.name.clone()).into());
    }
    let passage = Bounds::of(gateway, key).passage(target.path(), request)?;
    if key.is_some() && is_call(request.method(), target.path()) {
        gateway.admitted_calls.fetch_add(1, Ordering::Relaxed);
    }
    Ok(passage)
}

/// Whether a request runs a model, judging by its head.
fn is_call(method: &Method, path: &str) -> bool {
    method == Method::POST
        && !paths::read("POST", path, None).is_ok_and(|known| matches!(known.cost, Cost::Free))
}

/// Answers a request for a reply that can be read.
async fn reply_to(
    gateway: &Arc<Gateway>,
    target: &Target<'_>,
    found: AddressedFormat,
    request: Request<Incoming>,
    refusable: &mut Refusable<'_>,
) -> Result<Response<AnyBody>, Refusal> {
    let admitted = admit(gateway, target, found, request).await?;
    let identified = identify(admitted)?;
    refusable.is_identified(&identified.id, &identified.session);
    refusable.is_for(Some(identified.model()), Some(&target.upstream.name));
    let span = tracing::info_span!("request", request = identified.id);
    let rest = async move {
        let shaped = shape(identified).await?;
        let reserved = reserve(shaped).await?;
        let observed = match replied(reserved).await? {
            Replied::Passed(answer) => return Ok(answer),
            Replied::Streamed(exchange, answer) => return Ok(streamed(exchange, answer)),
            Replied::Whole(observed) => observed,
        };
        let mended = mend::whole::whole(observed).await?;
        let settled = settle::whole::whole(mended);
        Ok(disclose::whole::whole(settled).await)
    };
    rest.instrument(span).await
}

/// The client's reply before recovery.
enum Replied {
    /// The reply needs no recovery.
    Passed(Response<AnyBody>),
    /// The reply is a stream that has begun.
    Streamed(Box<Exchange>, Response<AnyBody>),
    Whole(Box<Observed>),
}

/// Requests replies until one is for the client. A lost reply is requested again, and the gateway answers the
/// model's calls of `endmark_read`.
async fn replied(reserved: Box<Exchange>) -> Result<Replied, Refusal> {
    let mut delivered = deliver(reserved).await?;
    loop {
        delivered = match delivered {
            Delivered::Passed(answer) => return Ok(Replied::Passed(answer)),
            Delivered::Streamed(exchange, answer) => match own_calls::in_stream(exchange, answer).await? {
                Reading::Reply((exchange, answer)) => return Ok(Replied::Streamed(exchange, answer)),
                Reading::Answered(exchange) => deliver(exchange).await?,
            },
            Delivered::Whole(exchange, answer) => match observe::whole::whole(exchange, answer).await? {
                Observation::Unread(answer) => return Ok(Replied::Passed(answer)),
                Observation::Lost(exchange, lost) => deliver_again(exchange, lost).await?,
                Observation::Read(observed) => match own_calls::in_whole(observed).await? {
                    Reading::Reply(observed) => return Ok(Replied::Whole(observed)),
                    Reading::Answered(exchange) => deliver(exchange).await?,
                },
            },
        };
    }
}

/// Responds at once with the head of a stream. The body follows as it arrives.
fn streamed(mut exchange: Box<Exchange>, answer: Response<AnyBody>) -> Response<AnyBody> {
    let (mut head, upstream) = answer.into_parts();
    // The end of the stream is unknown, so headers must not describe the whole body.
    of_another_body(&mut head.headers);
    if exchange.work.take().is_some() && exchange.attempt.request.body().len() >= LARGE_BYTES {
        // Parse the tool schemas now, on a separate thread.
        let _ = exchange.tool_schema("");
    }
    let body = made(exchange.gateway.settings.limits.stream_bytes, |outlet| {
        let relaying = async move {
            let mut client = ClientStream::new(outlet);
            match stream(&mut exchange, upstream, &mut client).await {
                // An error breaks off the stream, so no client takes it for a whole reply.
                Ok(End::Broken) => Err("the upstream broke off".into()),
                Ok(End::Orderly) | Err(ClientGone) => Ok(()),
            }
        };
        relaying.instrument(tracing::Span::current())
    });
    Response::from_parts(head, passing(body))
}

/// How the client's stream ends.
enum End {
    /// As the protocol requires, with or without an error event.
    Orderly,
    /// Broken off, because the stream was forwarded unread and broke off upstream.
    Broken,
}

/// Runs the stages of a stream while the client reads it.
async fn stream(
    exchange: &mut Exchange,
    upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<End, ClientGone> {
    let call = exchange.attempt.call.take();
    let observed = match observe::stream::stream(exchange, call, upstream, client).await? {
        observe::stream::Seen::Unread(Ending::Clean) => return Ok(End::Orderly),
        observe::stream::Seen::Unread(_) => return Ok(End::Broken),
        observe::stream::Seen::Read(observed) => observed,
    };
    let mended = mend::stream::stream(exchange, observed, client).await?;
    let settled = settle::stream::stream(exchange, mended);
    disclose::stream::stream(exchange, settled, client).await?;
    Ok(End::Orderly)
}
