//! The stages of a request, in order. Each line of [`answer_reply_request`] runs one stage, which is a module
//! of `stage`.
//!
//! A stage takes the result of the previous stage and does not use later ones. After the head of a stream,
//! the remaining stages run while its body is read: see [`run_stream`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use endmark_recovery::Ending;
use endmark_wire::format::{AddressedFormat, WireFormat};
use endmark_wire::paths::{self, PathCost};
use http::{Method, Request, Response};
use tracing::Instrument as _;

use crate::body::{AnyBody, body_from, forward_body};
use crate::bounds::{Bounds, PassThroughRule};
use crate::budget::KeyLimits;
use crate::exchange::Exchange;
use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::keys::key_refusal::KeyRefusal;
use crate::pass_through::pass_through;
use crate::refusal_context::RefusalContext;
use crate::refusals::Refusal;
use crate::reply::{ClientGone, ClientStream};
use crate::request_body::IncomingBody;
use crate::route::{self, Route, Target};
use crate::stage::admit::admit;
use crate::stage::deliver::{DeliveredReply, deliver, deliver_again};
use crate::stage::identify::identify;
use crate::stage::observe::whole::{ObservedReply, ReplyObservation};
use crate::stage::own_calls::{self, OwnCallOutcome};
use crate::stage::reserve::reserve;
use crate::stage::shape::shape;
use crate::stage::{disclose, mend, observe, settle};
use crate::upstream::{Credential, remove_replaced_body_headers};
use crate::work::LARGE_BYTES;

/// Answers one request to an upstream. Errors have the format `format`.
pub(crate) async fn respond(
    gateway: Arc<Gateway>,
    mut request: Request<AnyBody>,
    format: &'static dyn WireFormat,
) -> Response<AnyBody> {
    let mut refusal_context = RefusalContext::new(&gateway, format);
    // Check the key before any of the body is read.
    let key = match gateway.own_key(request.headers(), request.uri()).await {
        Ok(key) => key,
        Err(refusal) => return refusal_context.refuse(&refusal),
    };
    let own_key = key.as_ref().map(|key| key.identity());
    let budget_applies = gateway.budgets.apply_to(KeyLimits::default());
    let credential = match Credential::from_request(own_key, request.headers(), request.uri(), budget_applies)
    {
        Ok(credential) => credential,
        Err(unclear) => return refusal_context.refuse(&unclear.into()),
    };
    if let Some(credential) = credential {
        refusal_context.set_credential(&credential);
        request.extensions_mut().insert(credential);
    }
    if let Some(key) = &key {
        request.extensions_mut().insert(Arc::clone(key));
    }
    let (model, request) = match route::requested_model(&gateway, request).await {
        Ok(named) => named,
        Err(refusal) => return refusal_context.refuse(&refusal),
    };
    let model = model.as_deref();
    let route = route::find(&gateway, request.method(), request.uri(), request.headers(), model);
    refusal_context.set_target(model, route.upstream());
    let rule = match check_admission(&gateway, key.as_deref(), &route, &request) {
        Ok(passage) => passage,
        Err(refusal) => return refusal_context.refuse(&refusal),
    };
    let answered = match route {
        Route::Reply(target, found) => {
            let reply = async |request| {
                let replied =
                    Box::pin(answer_reply_request(&gateway, &target, found, request, &mut refusal_context))
                        .await;
                replied.unwrap_or_else(|refusal| refusal_context.refuse(&refusal))
            };
            Ok(gateway.faults.inject(format, request, reply).await)
        }
        Route::PassThrough(target) => pass_through(&gateway, &target, rule, request).await,
        Route::Unknown(what) => Err(Refusal::NotFound(what)),
        Route::Unserved(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| refusal_context.refuse(&refusal))
}

/// Checks whether a client with this key may make this request, and what remains to check in the body.
fn check_admission(
    gateway: &Gateway,
    key: Option<&OwnKey>,
    route: &Route<'_>,
    request: &Request<IncomingBody>,
) -> Result<PassThroughRule, Refusal> {
    let (Route::Reply(target, _) | Route::PassThrough(target)) = route else {
        return Ok(PassThroughRule::Unchecked);
    };
    // An upstream does not accept a gateway key, so it needs a key of its own.
    if key.is_some() && target.upstream.api_key.is_none() {
        return Err(KeyRefusal::NoUpstreamKey(target.upstream.name.clone()).into());
    }
    let passage = Bounds::new(gateway, key).pass_through_rule(target.path(), request)?;
    if key.is_some() && runs_model(request.method(), target.path()) {
        gateway.admitted_calls.fetch_add(1, Ordering::Relaxed);
    }
    Ok(passage)
}

/// Whether a request runs a model, according to its head.
fn runs_model(method: &Method, path: &str) -> bool {
    method == Method::POST
        && !paths::read("POST", path, None).is_ok_and(|known| matches!(known.cost, PathCost::Free))
}

/// Answers a request for a reply in a known format.
async fn answer_reply_request(
    gateway: &Arc<Gateway>,
    target: &Target<'_>,
    found: AddressedFormat,
    request: Request<IncomingBody>,
    refusable: &mut RefusalContext<'_>,
) -> Result<Response<AnyBody>, Refusal> {
    let admitted = admit(gateway, target, found, request).await?;
    let identified = identify(admitted)?;
    refusable.set_identity(&identified.id, &identified.session);
    refusable.set_target(Some(identified.model()), Some(&target.upstream.name));
    let span = tracing::info_span!("request", request = identified.id);
    let rest = async move {
        let shaped = shape(identified).await?;
        let reserved = reserve(shaped).await?;
        let observed = match request_reply(reserved).await? {
            UnmendedReply::Passed(answer) => return Ok(answer),
            UnmendedReply::Streamed(exchange, answer) => return Ok(start_stream(exchange, answer)),
            UnmendedReply::Whole(observed) => observed,
        };
        let mended = mend::whole::mend_reply(observed).await?;
        let settled = settle::whole::settle_reply(mended);
        Ok(disclose::whole::answer_with_reply(settled).await)
    };
    rest.instrument(span).await
}

/// The client's reply before recovery.
enum UnmendedReply {
    /// The reply needs no recovery.
    Passed(Response<AnyBody>),
    /// The reply is a stream that has begun.
    Streamed(Box<Exchange>, Response<AnyBody>),
    Whole(Box<ObservedReply>),
}

/// Requests replies until one can be sent to the client. A lost reply is requested again. Calls of `endmark_read` are
/// answered by the gateway.
async fn request_reply(reserved: Box<Exchange>) -> Result<UnmendedReply, Refusal> {
    let mut delivered = deliver(reserved).await?;
    loop {
        delivered = match delivered {
            DeliveredReply::Passed(answer) => return Ok(UnmendedReply::Passed(answer)),
            DeliveredReply::Streamed(exchange, answer) => {
                match own_calls::answer_in_stream(exchange, answer).await? {
                    OwnCallOutcome::Reply((exchange, answer)) => {
                        return Ok(UnmendedReply::Streamed(exchange, answer));
                    }
                    OwnCallOutcome::Answered(exchange) => deliver(exchange).await?,
                }
            }
            DeliveredReply::Whole(exchange, answer) => {
                match observe::whole::observe_reply(exchange, answer).await? {
                    ReplyObservation::Unread(answer) => return Ok(UnmendedReply::Passed(answer)),
                    ReplyObservation::Failed(exchange, lost) => deliver_again(exchange, lost).await?,
                    ReplyObservation::Read(observed) => match own_calls::answer_in_whole(observed).await? {
                        OwnCallOutcome::Reply(observed) => return Ok(UnmendedReply::Whole(observed)),
                        OwnCallOutcome::Answered(exchange) => deliver(exchange).await?,
                    },
                }
            }
        };
    }
}

/// Responds with the head of a stream at once. The body follows as it arrives.
fn start_stream(mut exchange: Box<Exchange>, answer: Response<AnyBody>) -> Response<AnyBody> {
    let (mut head, upstream) = answer.into_parts();
    // The end of the stream is unknown, so remove headers that describe the complete body.
    remove_replaced_body_headers(&mut head.headers);
    if exchange.work.take().is_some() && exchange.attempt.request.body().len() >= LARGE_BYTES {
        // Parse the tool schemas on this separate thread, before they are needed.
        let _ = exchange.tool_schema("");
    }
    let body = body_from(exchange.gateway.settings.limits.stream_bytes, |outlet| {
        let relaying = async move {
            let mut client = ClientStream::new(outlet);
            match run_stream(&mut exchange, upstream, &mut client).await {
                // An error breaks off the stream, so that no client mistakes it for a whole reply.
                Ok(StreamEnd::Broken) => Err("the upstream broke off".into()),
                Ok(StreamEnd::Normal) | Err(ClientGone) => Ok(()),
            }
        };
        relaying.instrument(tracing::Span::current())
    });
    Response::from_parts(head, forward_body(body))
}

/// How the client's stream ends.
enum StreamEnd {
    /// The stream ends as the protocol requires, with or without an error event.
    Normal,
    /// The stream breaks off, because it was forwarded unread and broke off upstream.
    Broken,
}

/// Runs the stages of a stream while the client reads it.
async fn run_stream(
    exchange: &mut Exchange,
    upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<StreamEnd, ClientGone> {
    let call = exchange.attempt.call.take();
    let observed = match observe::stream::observe_stream(exchange, call, upstream, client).await? {
        observe::stream::StreamObservation::Unread(Ending::Clean) => return Ok(StreamEnd::Normal),
        observe::stream::StreamObservation::Unread(_) => return Ok(StreamEnd::Broken),
        observe::stream::StreamObservation::Read(observed) => observed,
    };
    let mended = mend::stream::mend_stream(exchange, observed, client).await?;
    let settled = settle::stream::settle_stream(exchange, mended);
    disclose::stream::disclose_stream(exchange, settled, client).await?;
    Ok(StreamEnd::Normal)
}
