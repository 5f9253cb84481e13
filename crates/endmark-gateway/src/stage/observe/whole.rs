//! Reads and judges a reply that is not a stream.

use bytes::Bytes;
use endmark_recovery::Ending;
use endmark_wire::error::{ProviderError, ResponseError};
use endmark_wire::json::Value;
use endmark_wire::response::{self as wire, Reply};
use http::response::Parts;
use http::{HeaderValue, Response, header};

use super::suspects::{Suspects, suspects, without_surplus, worst};
use crate::admission::{BytesReservation, extra_bytes};
use crate::body::{AnyBody, full, with_prefix};
use crate::disclosure::REASON;
use crate::exchange::Exchange;
use crate::ledger::{Call, CallEnd, CallUsage, RequestEnd};
use crate::reply::ends_too_early;
use crate::rescue::Refusal;
use crate::upstream::{PartialBody, ReadError, read_up_to, remove_body_headers, without_claims};
use crate::work::{self, LargeInput};

/// The result of reading a reply that is not a stream.
pub(crate) enum Observation {
    /// The reply is forwarded unread.
    Unread(Response<AnyBody>),
    Read(Box<ObservedReply>),
    /// The reply broke off. It may be requested again, because the client has received nothing.
    Failed(Box<Exchange>, Refusal),
}

/// A reply that was read completely.
pub(crate) struct ObservedReply {
    pub(crate) exchange: Box<Exchange>,
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    pub(crate) response: wire::Response,
    /// The parts that may be cut, for each choice in order.
    pub(crate) parts: Vec<Suspects>,
    /// The usage of the call.
    pub(crate) spent: Option<CallUsage>,
    /// The memory reserved for the body until it is processed.
    pub(crate) _holding: BytesReservation,
    pub(crate) _large: LargeInput,
}

/// Reads a reply and settles its call.
///
/// # Errors
/// [`Refusal`] if the body is not a reply.
pub(crate) async fn observe_reply(
    exchange: Box<Exchange>,
    answer: Response<AnyBody>,
) -> Result<Observation, Refusal> {
    let watch = std::sync::Arc::clone(&exchange.calls.watch);
    read_and_settle(exchange, answer).await.inspect_err(|_| watch.end(RequestEnd::Failed))
}

/// Handles a reply whose body ended with this error. If the upstream was silent for the whole permitted time, it is
/// not given that time again.
fn handle_broken_body(exchange: Box<Exchange>, error: ReadError) -> Result<Observation, Refusal> {
    let is_silent = matches!(error, ReadError::Stalled(_));
    let refusal = Refusal::AnswerLost { upstream: exchange.upstream_name().to_owned(), error };
    if is_silent { Err(refusal) } else { Ok(Observation::Failed(exchange, refusal)) }
}

async fn read_and_settle(
    mut exchange: Box<Exchange>,
    answer: Response<AnyBody>,
) -> Result<Observation, Refusal> {
    let (mut head, body) = answer.into_parts();
    let (mut body, mut holding) = match read(&mut exchange, body).await {
        Ok(ReceivedBody::Whole(body, holding)) => (body, holding),
        Ok(ReceivedBody::Unread(body)) => return Ok(Observation::Unread(Response::from_parts(head, body))),
        Err(UnreadReason::Refused(refusal)) => return Err(refusal),
        Err(UnreadReason::Broken(error)) => return handle_broken_body(exchange, error),
    };
    let large = work::large(body.len()).await;
    if let Some(clean) = without_claims(&body) {
        remove_body_headers(&mut head.headers);
        body = clean.into();
    }
    let call = exchange.attempt.call.take();
    let response = match exchange.attempt.request.response(&body) {
        Ok(response) => response,
        Err(error @ ResponseError::Without(_)) => {
            if let Some(provider_error) = find_error(&exchange, &body) {
                return handle_error_reply(
                    exchange,
                    call,
                    Response::from_parts(head, full(body)),
                    &provider_error,
                );
            }
            tracing::warn!(request = exchange.client.id, %error, "a reply passes unread");
            settle(call, CallEnd::unread(Ending::Clean));
            exchange.calls.watch.end(RequestEnd::Unread);
            return Ok(Observation::Unread(Response::from_parts(head, full(body))));
        }
        Err(_) if ends_too_early(&body) => {
            settle(call, CallEnd::new(Ending::Dropped));
            return handle_broken_body(exchange, ReadError::Truncated(body.len()));
        }
        Err(error) => {
            settle(call, CallEnd::new(Ending::UpstreamError));
            return Err(Refusal::NotTheFormat {
                upstream: exchange.upstream_name().to_owned(),
                what: format!("{} ({error})", content_type(&head.headers)),
            });
        }
    };
    let reply = response.reply();
    if !holding.grow(reply.entry_bytes().saturating_add(extra_bytes(body.len()))) {
        settle(call, CallEnd::unread(Ending::OverCap));
        passes(&exchange, "[limits] held_bytes is reached")?;
        exchange.calls.watch.end(RequestEnd::Unread);
        return Ok(Observation::Unread(Response::from_parts(head, full(body))));
    }
    let parts = parts(&exchange, reply);
    if let Some(call) = &call {
        call.read(Some(&reply.choices));
    }
    let spent = call.and_then(|call| call.settle(call_end(reply, &parts)));
    Ok(Observation::Read(Box::new(ObservedReply {
        exchange,
        head,
        body,
        response,
        parts,
        spent,
        _holding: holding,
        _large: large,
    })))
}

/// Returns the error that a body contains instead of a reply.
fn find_error(exchange: &Exchange, body: &Bytes) -> Option<ProviderError> {
    Value::parse_body(body).ok().and_then(|root| exchange.attempt.request.format().read_error(root))
}

/// Handles an error with a success status. It is retried like a lost reply, unless it would be repeated. In that case
/// it is forwarded unchanged, with a header that marks it.
fn handle_error_reply(
    exchange: Box<Exchange>,
    call: Option<Call>,
    mut answer: Response<AnyBody>,
    provider_error: &ProviderError,
) -> Result<Observation, Refusal> {
    if let Some(call) = call {
        call.settle_as_refused();
    }
    if provider_error.is_final()
        || provider_error.is_context_length()
        || provider_error.is_about_the_account()
    {
        exchange.calls.watch.end(RequestEnd::UpstreamError(answer.status().as_u16()));
        answer.headers_mut().insert(REASON, HeaderValue::from_static("upstream_error"));
        return Ok(Observation::Unread(answer));
    }
    // A provider's error may repeat the key from the request.
    let error = ReadError::Broken(exchange.recorder.clean(&provider_error.message).into());
    handle_broken_body(exchange, error)
}

/// Prepares to forward a reply without parsing, because it is too large.
///
/// # Errors
/// [`Refusal::Reading`] if the reply may contain a call of a tool that the client does not know.
fn passes(exchange: &Exchange, why: &'static str) -> Result<(), Refusal> {
    if exchange.offers_reading() {
        return Err(Refusal::Reading("says more than can be held to look for calls of endmark_read"));
    }
    tracing::warn!(request = exchange.client.id, why, "a reply passes unread");
    Ok(())
}

/// The result of reading a reply's body.
enum ReceivedBody {
    /// The complete body, with the memory reserved for it.
    Whole(Bytes, BytesReservation),
    /// The body is too long. It is forwarded, and its call is settled at its end.
    Unread(AnyBody),
}

/// Why a body was not read.
enum UnreadReason {
    Broken(ReadError),
    Refused(Refusal),
}

/// Reads the body of a reply.
async fn read(exchange: &mut Exchange, body: AnyBody) -> Result<ReceivedBody, UnreadReason> {
    let limits = &exchange.gateway.settings.limits;
    let idle = limits.idle;
    let mut holding = exchange.gateway.held_bytes.part(limits.held_bytes);
    let (why, beginning, rest) = match read_up_to(body, limits.reply_bytes, idle, Some(&mut holding)).await {
        Ok(PartialBody::Whole(body)) => return Ok(ReceivedBody::Whole(body, holding)),
        Ok(PartialBody::Longer(beginning, rest)) => ("it is over [limits] reply_bytes", beginning, rest),
        Ok(PartialBody::NoRoom(beginning, rest)) => ("[limits] held_bytes is reached", beginning, rest),
        Err(error) => {
            let stalled = matches!(error, ReadError::Stalled(_));
            settle(
                exchange.attempt.call.take(),
                CallEnd::new(if stalled { Ending::Stalled } else { Ending::Dropped }),
            );
            return Err(UnreadReason::Broken(error));
        }
    };
    if let Err(refusal) = passes(exchange, why) {
        settle(exchange.attempt.call.take(), CallEnd::unread(Ending::OverCap));
        return Err(UnreadReason::Refused(refusal));
    }
    Ok(ReceivedBody::Unread(exchange.pass_unread(with_prefix(beginning, rest), Ending::OverCap)))
}

fn settle(call: Option<Call>, end: CallEnd) {
    if let Some(call) = call {
        call.settle(end);
    }
}

/// Returns the parts of each choice that may be cut.
fn parts(exchange: &Exchange, reply: &Reply) -> Vec<Suspects> {
    let output_tokens = reply.usage.as_ref().map(|usage| usage.completion);
    let of = |choice| suspects(exchange, choice, 0, Ending::Clean, output_tokens, None);
    let mut parts: Vec<Suspects> = reply.choices.iter().map(of).collect();
    without_surplus(exchange, parts.iter_mut());
    parts
}

/// Returns how the call ended.
fn call_end(reply: &Reply, parts: &[Suspects]) -> CallEnd {
    CallEnd { judgement: worst(parts.iter().map(|parts| parts.worst)), ..CallEnd::from_reply(reply) }
}

fn content_type(headers: &http::HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no content type")
}
