//! Reads and judges a reply that is not a stream.

use bytes::Bytes;
use endmark_recovery::Ending;
use endmark_wire::error::{ProviderError, ResponseError};
use endmark_wire::json::Value;
use endmark_wire::response::{self as wire, Reply};
use http::response::Parts;
use http::{HeaderValue, Response, header};

use super::suspects::{Suspects, find_suspects, limit_surplus_choices, worst_judgement};
use crate::admission::{BytesReservation, extra_memory_bytes};
use crate::body::{AnyBody, full, with_prefix};
use crate::disclosure::REASON_HEADER;
use crate::exchange::Exchange;
use crate::ledger::{Call, CallEnd, CallUsage, RequestEnd};
use crate::refusals::Refusal;
use crate::reply::ends_too_early;
use crate::upstream::{PartialBody, ReadError, read_up_to, remove_body_headers, without_claims};
use crate::work::{self, LargeInput};

/// The result of reading a reply that is not a stream.
pub(crate) enum ReplyObservation {
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
    pub(crate) _memory: BytesReservation,
    pub(crate) _large: LargeInput,
}

/// Reads a reply and settles its call.
///
/// # Errors
/// [`Refusal`] if the body is not a reply.
pub(crate) async fn observe_reply(
    exchange: Box<Exchange>,
    answer: Response<AnyBody>,
) -> Result<ReplyObservation, Refusal> {
    let watch = std::sync::Arc::clone(&exchange.calls.watch);
    read_and_settle(exchange, answer).await.inspect_err(|_| watch.end(RequestEnd::Failed))
}

/// Handles a reply whose body ended with this error. If the upstream was silent for the whole permitted time,
/// the reply is not requested again.
fn handle_broken_body(exchange: Box<Exchange>, error: ReadError) -> Result<ReplyObservation, Refusal> {
    let is_silent = matches!(error, ReadError::Stalled(_));
    let refusal = Refusal::AnswerLost { upstream: exchange.upstream_name().to_owned(), error };
    if is_silent { Err(refusal) } else { Ok(ReplyObservation::Failed(exchange, refusal)) }
}

async fn read_and_settle(
    mut exchange: Box<Exchange>,
    answer: Response<AnyBody>,
) -> Result<ReplyObservation, Refusal> {
    let (mut head, body) = answer.into_parts();
    let (mut body, mut holding) = match read_body(&mut exchange, body).await {
        Ok(ReceivedBody::Whole(body, holding)) => (body, holding),
        Ok(ReceivedBody::Unread(body)) => {
            return Ok(ReplyObservation::Unread(Response::from_parts(head, body)));
        }
        Err(UnreadReason::Refused(refusal)) => return Err(refusal),
        Err(UnreadReason::Broken(error)) => return handle_broken_body(exchange, error),
    };
    let large = work::enter_pool_if_large(body.len()).await;
    if let Some(clean) = without_claims(&body) {
        remove_body_headers(&mut head.headers);
        body = clean.into();
    }
    let call = exchange.attempt.call.take();
    let response = match exchange.attempt.request.response(&body) {
        Ok(response) => response,
        Err(error @ ResponseError::MissingField(_)) => {
            if let Some(provider_error) = find_error(&exchange, &body) {
                return handle_error_reply(
                    exchange,
                    call,
                    Response::from_parts(head, full(body)),
                    &provider_error,
                );
            }
            tracing::warn!(request = exchange.client.id, %error, "a reply is forwarded unread");
            settle_call(call, CallEnd::unread(Ending::Clean));
            exchange.calls.watch.end(RequestEnd::Unread);
            return Ok(ReplyObservation::Unread(Response::from_parts(head, full(body))));
        }
        Err(_) if ends_too_early(&body) => {
            settle_call(call, CallEnd::new(Ending::Dropped));
            return handle_broken_body(exchange, ReadError::Truncated(body.len()));
        }
        Err(error) => {
            settle_call(call, CallEnd::new(Ending::UpstreamError));
            return Err(Refusal::NotTheFormat {
                upstream: exchange.upstream_name().to_owned(),
                what: format!("{} ({error})", content_type(&head.headers)),
            });
        }
    };
    let reply = response.reply();
    if !holding.grow(reply.entry_bytes().saturating_add(extra_memory_bytes(body.len()))) {
        settle_call(call, CallEnd::unread(Ending::OverCap));
        prepare_unread_forwarding(&exchange, "[limits] held_bytes is reached")?;
        exchange.calls.watch.end(RequestEnd::Unread);
        return Ok(ReplyObservation::Unread(Response::from_parts(head, full(body))));
    }
    let parts = collect_parts(&exchange, reply);
    if let Some(call) = &call {
        call.record_text(Some(&reply.choices));
    }
    let spent = call.and_then(|call| call.settle(call_end(reply, &parts)));
    Ok(ReplyObservation::Read(Box::new(ObservedReply {
        exchange,
        head,
        body,
        response,
        parts,
        spent,
        _memory: holding,
        _large: large,
    })))
}

/// Returns the error that a body contains instead of a reply.
fn find_error(exchange: &Exchange, body: &Bytes) -> Option<ProviderError> {
    Value::parse_body(body).ok().and_then(|root| exchange.attempt.request.format().read_error(root))
}

/// Handles an error with a success status. The request is retried as after a lost reply, unless a retry would
/// give the same error. In that case the error is forwarded unchanged, with a header that marks it.
fn handle_error_reply(
    exchange: Box<Exchange>,
    call: Option<Call>,
    mut answer: Response<AnyBody>,
    provider_error: &ProviderError,
) -> Result<ReplyObservation, Refusal> {
    if let Some(call) = call {
        call.settle_as_refused();
    }
    if provider_error.is_final()
        || provider_error.is_context_length()
        || provider_error.is_about_the_account()
    {
        exchange.calls.watch.end(RequestEnd::UpstreamError(answer.status().as_u16()));
        answer.headers_mut().insert(REASON_HEADER, HeaderValue::from_static("upstream_error"));
        return Ok(ReplyObservation::Unread(answer));
    }
    // A provider's error may repeat the key from the request.
    let error = ReadError::Broken(exchange.recorder.clean(&provider_error.message).into());
    handle_broken_body(exchange, error)
}

/// Prepares to forward a reply without parsing, because it is too large.
///
/// # Errors
/// [`Refusal::ReadToolFailed`] if the reply may contain a call of a tool that the client does not know.
fn prepare_unread_forwarding(exchange: &Exchange, why: &'static str) -> Result<(), Refusal> {
    if exchange.offers_read_tool() {
        return Err(Refusal::ReadToolFailed("says more than can be held to look for calls of endmark_read"));
    }
    tracing::warn!(request = exchange.client.id, why, "a reply is forwarded unread");
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
async fn read_body(exchange: &mut Exchange, body: AnyBody) -> Result<ReceivedBody, UnreadReason> {
    let limits = &exchange.gateway.settings.limits;
    let idle = limits.idle;
    let mut holding = exchange.gateway.held_bytes.new_reservation(limits.held_bytes);
    let (why, beginning, rest) = match read_up_to(body, limits.reply_bytes, idle, Some(&mut holding)).await {
        Ok(PartialBody::Whole(body)) => return Ok(ReceivedBody::Whole(body, holding)),
        Ok(PartialBody::Longer(beginning, rest)) => ("it is over [limits] reply_bytes", beginning, rest),
        Ok(PartialBody::NoRoom(beginning, rest)) => ("[limits] held_bytes is reached", beginning, rest),
        Err(error) => {
            let stalled = matches!(error, ReadError::Stalled(_));
            settle_call(
                exchange.attempt.call.take(),
                CallEnd::new(if stalled { Ending::Stalled } else { Ending::Dropped }),
            );
            return Err(UnreadReason::Broken(error));
        }
    };
    if let Err(refusal) = prepare_unread_forwarding(exchange, why) {
        settle_call(exchange.attempt.call.take(), CallEnd::unread(Ending::OverCap));
        return Err(UnreadReason::Refused(refusal));
    }
    Ok(ReceivedBody::Unread(exchange.forward_unread(with_prefix(beginning, rest), Ending::OverCap)))
}

fn settle_call(call: Option<Call>, end: CallEnd) {
    if let Some(call) = call {
        call.settle(end);
    }
}

/// Returns the parts of each choice that may be cut.
fn collect_parts(exchange: &Exchange, reply: &Reply) -> Vec<Suspects> {
    let output_tokens = reply.usage.as_ref().map(|usage| usage.completion);
    let of = |choice| find_suspects(exchange, choice, 0, Ending::Clean, output_tokens, None);
    let mut parts: Vec<Suspects> = reply.choices.iter().map(of).collect();
    limit_surplus_choices(exchange, parts.iter_mut());
    parts
}

/// Returns how the call ended.
fn call_end(reply: &Reply, parts: &[Suspects]) -> CallEnd {
    CallEnd {
        judgement: worst_judgement(parts.iter().map(|parts| parts.worst)),
        ..CallEnd::from_reply(reply)
    }
}

fn content_type(headers: &http::HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no content type")
}
