//! Sends a request until its reply begins, with retries and the fallback.
//!
//! `endmark_recovery::failover` decides what follows a failure. This module sends, waits and records. After the
//! client has received any part of a reply, nothing is retried.

mod beginning;
mod upstream_error;
mod usage_request;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use endmark_recovery::Ending;
use endmark_recovery::failover::{Admission, AttemptFailure, Delivery, NextStep, RetryPolicy, pause};
use endmark_store::Purpose;
use endmark_wire::error::ProviderError;
use endmark_wire::json::Value;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use tokio::time::{Instant, sleep};

use crate::body::{AnyBody, full, without_usage_events};
use crate::budget::NotAdmitted;
use crate::exchange::Exchange;
use crate::ledger::{Call, CallEnd, RequestEnd};
use crate::recovery::UsageRequest;
use crate::refusals::Refusal;
use crate::scrub::Scrubber;
use crate::settings::{Limits, ResumeMode};
use crate::upstream::{
    ReadError, UpstreamError, decode_response, is_event_stream, random, read_whole, remove_body_headers,
    remove_replaced_body_headers, retry_after, should_retry, with_stream_type,
};
use beginning::{Beginning, read_beginning};
use usage_request::{body_with_usage_request, decide_usage_request, remember_usage_support};

/// Maximum size of an error body that is examined.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// The response to the client if no upstream returned a reply.
type FailureResponse = Result<Response<AnyBody>, Refusal>;

/// The outcome of all attempts at one upstream.
enum UpstreamOutcome {
    /// A reply has begun, or the upstream's refusal is final.
    Answered(Response<AnyBody>),
    /// The upstream returned no reply, but another upstream may.
    TryElsewhere(FailureResponse),
    /// The upstream returned no reply, and no other upstream will be tried.
    Failed(FailureResponse),
}

/// How many attempts one upstream gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AttemptLimit {
    /// As often as the settings permit.
    AsConfigured,
    /// Only once.
    SingleAttempt,
}

/// The result of sending a request.
pub(crate) enum DeliveredReply {
    /// A response that needs no recovery: one that is forwarded without parsing, or the upstream's own error.
    Passed(Response<AnyBody>),
    /// A complete reply.
    Whole(Box<Exchange>, Response<AnyBody>),
    /// A streamed reply.
    Streamed(Box<Exchange>, Response<AnyBody>),
}

/// Sends the request until there is a reply, or until no upstream is left.
///
/// # Errors
/// The last failure of the original upstream, never that of the fallback.
pub(crate) async fn deliver(mut exchange: Box<Exchange>) -> Result<DeliveredReply, Refusal> {
    let mut answer =
        deliver_once(&mut exchange).await.inspect_err(|_| exchange.calls.watch.end(RequestEnd::Failed))?;
    disclose(&exchange, answer.headers_mut());
    if exchange.mode() == ResumeMode::Off {
        let (mut head, body) = answer.into_parts();
        let body = if head.status.is_success() {
            let body = exchange.forward_reading_usage(&head.headers, body);
            if exchange.attempt.requests_usage && is_event_stream(&head.headers) {
                remove_replaced_body_headers(&mut head.headers);
                // This reader does not have to keep the events.
                let mut reader = exchange.attempt.request.stream(0);
                without_usage_events(body, move |event| {
                    reader.read_frame(event).is_ok_and(|event| event.only_counts())
                })
            } else {
                body
            }
        } else {
            exchange.calls.watch.end(RequestEnd::UpstreamError(head.status.as_u16()));
            exchange.forward_unread(body, Ending::Clean)
        };
        return Ok(DeliveredReply::Passed(Response::from_parts(head, body)));
    }
    if !answer.status().is_success() {
        exchange.calls.watch.end(RequestEnd::UpstreamError(answer.status().as_u16()));
        return upstream_error::forward_error(exchange, answer).await.map(DeliveredReply::Passed);
    }
    if answer.headers().get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        if exchange.offers_read_tool() {
            exchange.calls.watch.end(RequestEnd::Failed);
            return Err(Refusal::ReadToolFailed(
                "answers in a coding that cannot be searched for calls of endmark_read",
            ));
        }
        // The upstream compressed its response although the gateway did not request it. Forward it without parsing.
        tracing::warn!(
            request = exchange.client.id,
            "the upstream compressed its response: it is forwarded unread"
        );
        return Ok(DeliveredReply::Passed(answer.map(|body| exchange.forward_unread(body, Ending::Clean))));
    }
    Ok(if is_event_stream(answer.headers()) {
        DeliveredReply::Streamed(exchange, answer)
    } else {
        DeliveredReply::Whole(exchange, answer)
    })
}

/// Requests a lost reply again. The client must not have received any part of it.
///
/// # Errors
/// `lost` if the reply must not be requested again, otherwise the last failure of the upstream.
pub(crate) async fn deliver_again(
    mut exchange: Box<Exchange>,
    lost: Refusal,
) -> Result<DeliveredReply, Refusal> {
    let gateway = std::sync::Arc::clone(&exchange.gateway);
    let retry = &gateway.settings.retry;
    let wait = pause(exchange.attempt.lost_replies + 1, random());
    let may_retry = exchange.client.retries == 0
        && exchange.attempt.lost_replies < retry.max_retries
        && Instant::now() + wait < exchange.client.deadline
        && gateway.upstream_health.may_retry(exchange.upstream_name());
    if !may_retry {
        exchange.calls.watch.end(RequestEnd::Failed);
        return Err(lost);
    }
    tracing::info!(request = exchange.client.id, %lost, "a lost reply is requested again");
    exchange.attempt.lost_replies += 1;
    exchange.attempt.retries += 1;
    sleep(wait).await;
    match deliver(exchange).await {
        // A retry that budgets do not permit does not count as an attempt.
        Err(Refusal::Budget(_)) => Err(lost),
        other => other,
    }
}

async fn deliver_once(exchange: &mut Exchange) -> FailureResponse {
    let admission = match exchange.attempt.fallback {
        Some(_) => exchange.gateway.upstream_health.admit(exchange.upstream_name()),
        None => Admission::Serve,
    };
    let own = match admission {
        Admission::Skip => None,
        Admission::Serve => Some(try_upstream(exchange, AttemptLimit::AsConfigured).await),
        Admission::Probe => Some(try_upstream(exchange, AttemptLimit::SingleAttempt).await),
    };
    let message = match own {
        Some(UpstreamOutcome::Answered(answer)) => return Ok(answer),
        Some(UpstreamOutcome::Failed(message)) => return message,
        Some(UpstreamOutcome::TryElsewhere(message)) => Some(message),
        None => None,
    };
    exchange.toggle_fallback();
    match try_upstream(exchange, AttemptLimit::AsConfigured).await {
        UpstreamOutcome::Answered(answer) if answer.status().is_success() => {
            // The fallback is now the upstream of this reply, including its continuations.
            exchange.attempt.fallback = None;
            return Ok(answer);
        }
        UpstreamOutcome::TryElsewhere(Err(refusal)) | UpstreamOutcome::Failed(Err(refusal)) => {
            tracing::warn!(request = exchange.client.id, %refusal, "the fallback failed, too");
        }
        UpstreamOutcome::Answered(answer)
        | UpstreamOutcome::TryElsewhere(Ok(answer))
        | UpstreamOutcome::Failed(Ok(answer)) => {
            tracing::warn!(request = exchange.client.id, status = %answer.status(), "the fallback failed, too");
        }
    }
    exchange.toggle_fallback();
    match message {
        Some(message) => message,
        // The upstream is considered down, but there is no other one.
        None => match try_upstream(exchange, AttemptLimit::SingleAttempt).await {
            UpstreamOutcome::Answered(answer) => Ok(answer),
            UpstreamOutcome::TryElsewhere(message) | UpstreamOutcome::Failed(message) => message,
        },
    }
}

/// Tries the exchange's upstream.
async fn try_upstream(exchange: &mut Exchange, patience: AttemptLimit) -> UpstreamOutcome {
    let gateway = std::sync::Arc::clone(&exchange.gateway);
    let (health, retry) = (&gateway.upstream_health, &gateway.settings.retry);
    // A client that repeats its request makes the retries itself.
    let is_sent_again = exchange.client.retries > 0;
    let max_retries = match patience {
        AttemptLimit::AsConfigured if !is_sent_again => {
            retry.max_retries.saturating_sub(exchange.attempt.lost_replies)
        }
        AttemptLimit::AsConfigured | AttemptLimit::SingleAttempt => 0,
    };
    let policy = RetryPolicy { max_retries, max_wait: retry.max_wait };
    let has_fallback = exchange.attempt.fallback.is_some() && !exchange.attempt.is_fallback;
    let mut delivery = Delivery::new(policy, has_fallback);
    if exchange.attempt.lost_replies > 0 {
        // An earlier attempt has already counted this request.
    } else if is_sent_again {
        health.note_retry(exchange.upstream_name());
    } else {
        health.note_request(exchange.upstream_name());
    }
    let mut last_result = None;
    let mut usage_request = decide_usage_request(exchange).await;
    loop {
        let body = body_with_usage_request(usage_request, exchange).await;
        exchange.attempt.requests_usage = body.is_some();
        let call = match open(exchange).await {
            Ok(call) => call,
            // A retry that budgets do not permit is not made, so return the result of the previous attempt.
            Err(why) => return UpstreamOutcome::Failed(last_result.unwrap_or(Err(Refusal::Budget(why)))),
        };
        let (failure, message) = match send(exchange, call, body, &mut usage_request).await {
            Ok((answer, call)) => {
                health.note_success(exchange.upstream_name());
                remember_usage_support(usage_request, exchange, answer.status()).await;
                exchange.attempt.call = Some(call);
                return UpstreamOutcome::Answered(answer);
            }
            Err(failed) => failed,
        };
        if exchange.attempt.requests_usage && usage_request.is_withdrawn() {
            // The upstream refused the gateway's addition, not the client's own request.
            last_result = Some(message);
            continue;
        }
        let name = exchange.upstream_name();
        if failure.affects_upstream() {
            health.note_failure(name);
        }
        let mut next = delivery.next_after(failure, random());
        let is_known_to_be_down = has_fallback && health.is_down(name);
        if matches!(next, NextStep::Retry(_)) && (is_known_to_be_down || !health.may_retry(name)) {
            next = delivery.next_without_retry();
        }
        tracing::info!(
            request = exchange.client.id,
            upstream = name,
            failure = failure.name(),
            status = failure.status(),
            next = next.name(),
            wait_seconds = next.wait().map(|wait| wait.as_secs_f64()),
            "no reply"
        );
        // Condense only once. If the provider also rejects the condensed request, that is final.
        if failure == AttemptFailure::TooLong && matches!(next, NextStep::GiveUp) && exchange.condense().await
        {
            exchange.attempt.retries += 1;
            last_result = Some(message);
            continue;
        }
        match next {
            NextStep::Retry(wait) => sleep(wait).await,
            NextStep::FallBack => return UpstreamOutcome::TryElsewhere(message),
            NextStep::GiveUp => return UpstreamOutcome::Failed(message),
        }
        last_result = Some(message);
        exchange.attempt.retries += 1;
    }
}

/// Records a call that is about to start, if budgets admit it. The gateway's additions to the request do not
/// count towards the prompt.
async fn open(exchange: &Exchange) -> Result<Call, NotAdmitted> {
    let purpose = match exchange.calls.count() {
        _ if exchange.attempt.reading_rounds > 0 => Purpose::Read,
        _ if exchange.attempt.is_fallback => Purpose::Fallback,
        0 if exchange.is_closing => Purpose::Closing,
        0 => Purpose::Reply,
        _ => Purpose::Retry,
    };
    let (request, view) = (&exchange.attempt.request, exchange.attempt.request.view());
    let upstream = exchange.upstream_name();
    exchange.calls.open(purpose, upstream, &view.model, view.stream, request.body()).await
}

/// Sends the request once. A refusal that a retry would not change is returned as `Ok`.
async fn send(
    exchange: &Exchange,
    mut call: Call,
    body: Option<Bytes>,
    counting: &mut UsageRequest,
) -> Result<(Response<AnyBody>, Call), (AttemptFailure, FailureResponse)> {
    match send_call(exchange, &mut call, body, counting).await {
        Ok(answer) => Ok((answer, call)),
        Err(failed) => {
            match &failed.0 {
                AttemptFailure::EmptyStream(Ending::UpstreamError) => call.settle_as_refused(),
                failure => drop(call.settle(CallEnd::new(failure_ending(failure)))),
            }
            Err(failed)
        }
    }
}

/// Returns the ending of a failed call.
fn failure_ending(failure: &AttemptFailure) -> Ending {
    match failure {
        AttemptFailure::Unreachable => Ending::Dropped,
        AttemptFailure::Silent => Ending::Stalled,
        AttemptFailure::EmptyStream(ending) => *ending,
        AttemptFailure::Unreadable
        | AttemptFailure::Refused { .. }
        | AttemptFailure::TooLong
        | AttemptFailure::QuotaExhausted => Ending::UpstreamError,
    }
}

async fn send_call(
    exchange: &Exchange,
    call: &mut Call,
    counting_body: Option<Bytes>,
    counting: &mut UsageRequest,
) -> Result<Response<AnyBody>, (AttemptFailure, FailureResponse)> {
    let destination = &exchange.attempt.destination;
    let limits = &exchange.gateway.settings.limits;
    let is_changed = counting_body.is_some();
    let encoded = exchange.attempt.encoded.as_ref().filter(|_| !exchange.attempt.is_fallback && !is_changed);
    let body = counting_body.unwrap_or_else(|| match encoded {
        Some(own) => own.bytes.clone(),
        None => Bytes::copy_from_slice(exchange.attempt.request.body()),
    });
    let mut request = destination.post(&destination.uri, call.request_body(body));
    if is_changed {
        remove_body_headers(request.headers_mut());
        // Request an uncompressed response, because the usage event cannot be removed from compressed bytes.
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if counting.is_withdrawn() {
        // The idempotency key must not be sent with a different body.
        remove_replaced_body_headers(request.headers_mut());
    }
    for coding in encoded.iter().flat_map(|own| &own.codings) {
        request.headers_mut().append(header::CONTENT_ENCODING, coding.clone());
    }
    let first_byte = first_byte_timeout(exchange, limits);
    let deadline = Instant::now() + first_byte;
    let answer = match destination.send(&exchange.gateway.client, request, first_byte).await {
        Ok(answer) => answer,
        Err(error) => {
            let failure = match error {
                UpstreamError::Unreachable(_) => AttemptFailure::Unreachable,
                UpstreamError::Unreadable(_) => AttemptFailure::Unreadable,
                UpstreamError::Silent(_) => AttemptFailure::Silent,
            };
            return Err((failure, Err(unreachable(exchange, error))));
        }
    };
    let status = answer.status();
    let mut answer = answer.map(|body| call.note_answer(status, body));
    if exchange.mode() != ResumeMode::Off || is_changed {
        answer = decode_response(answer);
    }
    if !answer.status().is_success() {
        return read_refusal(exchange, answer, counting).await;
    }
    if exchange.mode() != ResumeMode::Off && exchange.attempt.request.view().stream {
        answer = set_content_type(exchange, answer).await?;
    }
    let deadline = waits_for_first_token(exchange).then_some(deadline);
    if deadline.is_some() || (exchange.mode().corrects_faults() && is_event_stream(answer.headers())) {
        wait_for_beginning(exchange, answer, deadline).await
    } else {
        Ok(answer)
    }
}

/// Returns the time within which the upstream must begin to answer. It is shorter if the reply is streamed and there
/// is a fallback.
fn first_byte_timeout(exchange: &Exchange, limits: &Limits) -> Duration {
    if waits_for_first_token(exchange) {
        limits.first_token.min(limits.first_byte)
    } else {
        limits.first_byte
    }
}

fn waits_for_first_token(exchange: &Exchange) -> bool {
    exchange.attempt.request.view().stream
        && exchange.attempt.fallback.is_some()
        && !exchange.attempt.is_fallback
}

/// Sets the event-stream content type if the upstream omitted it.
async fn set_content_type(
    exchange: &Exchange,
    answer: Response<AnyBody>,
) -> Result<Response<AnyBody>, (AttemptFailure, FailureResponse)> {
    let limits = &exchange.gateway.settings.limits;
    let patience =
        if waits_for_first_token(exchange) { first_byte_timeout(exchange, limits) } else { limits.idle };
    with_stream_type(answer, patience).await.map_err(|error| {
        let failure = match error {
            ReadError::Stalled(_) => AttemptFailure::Silent,
            _ => AttemptFailure::EmptyStream(Ending::Dropped),
        };
        (failure, Err(Refusal::AnswerLost { upstream: exchange.upstream_name().to_owned(), error }))
    })
}

/// Waits until part of the reply has arrived. Before that, the same or another upstream can still return the complete
/// reply.
async fn wait_for_beginning(
    exchange: &Exchange,
    answer: Response<AnyBody>,
    deadline: Option<Instant>,
) -> Result<Response<AnyBody>, (AttemptFailure, FailureResponse)> {
    let (head, body) = answer.into_parts();
    match read_beginning(exchange, body, deadline).await {
        Beginning::Started(body) => Ok(Response::from_parts(head, body)),
        Beginning::Silent => {
            let limit = first_byte_timeout(exchange, &exchange.gateway.settings.limits);
            Err((AttemptFailure::Silent, Err(unreachable(exchange, UpstreamError::Silent(limit)))))
        }
        Beginning::Empty(ending, why) => {
            // The provider's error may repeat the key from the request.
            let error = ReadError::Broken(exchange.recorder.clean(&why).into());
            let upstream = exchange.upstream_name().to_owned();
            Err((AttemptFailure::EmptyStream(ending), Err(Refusal::AnswerLost { upstream, error })))
        }
    }
}

/// Reads a refusal to determine whether waiting or another upstream can help.
async fn read_refusal(
    exchange: &Exchange,
    answer: Response<AnyBody>,
    counting: &mut UsageRequest,
) -> Result<Response<AnyBody>, (AttemptFailure, FailureResponse)> {
    let (mut head, body) = answer.into_parts();
    let status = head.status.as_u16();
    let (retry_after, should_retry) = (retry_after(&head.headers), should_retry(&head.headers));
    let refused = AttemptFailure::Refused { status, retry_after, should_retry };
    match read_whole(body, MAX_ERROR_BYTES, exchange.gateway.settings.limits.idle).await {
        Ok(body) => {
            let root = Value::parse_body(&body).ok();
            let error = root.and_then(|root| exchange.attempt.request.format().read_error(root));
            counting.note_refusal(head.status, error.as_ref());
            let failure = error.and_then(|error| known_failure(status, &error)).unwrap_or(refused);
            let body = without_own_key(exchange, &mut head.headers, body);
            let answer = Response::from_parts(head, full(body));
            let has_remedy =
                failure.has_remedy() || (exchange.attempt.requests_usage && counting.is_withdrawn());
            if has_remedy { Err((failure, Ok(answer))) } else { Ok(answer) }
        }
        Err(error) => {
            let upstream = exchange.upstream_name().to_owned();
            Err((refused, Err(Refusal::AnswerLost { upstream, error })))
        }
    }
}

/// Returns an error without the upstream's own key, which some errors repeat. The key is the gateway's
/// secret, not the client's.
fn without_own_key(exchange: &Exchange, headers: &mut HeaderMap, body: Bytes) -> Bytes {
    let Some(key) = &exchange.attempt.destination.upstream.api_key else { return body };
    match Scrubber::new([key.reveal()]).scrub_bytes(&body) {
        Cow::Borrowed(_) => body,
        Cow::Owned(scrubbed) => {
            remove_replaced_body_headers(headers);
            scrubbed.into()
        }
    }
}

/// Returns the meaning of an error if its body shows more than its status.
fn known_failure(status: u16, error: &ProviderError) -> Option<AttemptFailure> {
    if matches!(status, 400 | 413 | 422) && error.is_context_length() {
        return Some(AttemptFailure::TooLong);
    }
    let is = |word: &Option<String>| word.as_deref() == Some("insufficient_quota");
    (is(&error.kind) || is(&error.code)).then_some(AttemptFailure::QuotaExhausted)
}

fn unreachable(exchange: &Exchange, error: UpstreamError) -> Refusal {
    Refusal::upstream_unavailable(&exchange.attempt.destination.upstream, error)
}

/// Discloses another upstream than the requested one, the number of retries, and the changes to the request.
fn disclose(exchange: &Exchange, headers: &mut HeaderMap) {
    if exchange.attempt.retries > 0 {
        headers.insert(HeaderName::from_static("x-endmark-retries"), exchange.attempt.retries.into());
    }
    if exchange.attempt.reading_rounds > 0 {
        headers.insert(HeaderName::from_static("x-endmark-reads"), exchange.attempt.reading_rounds.into());
    }
    exchange.changes.write_headers(headers);
    exchange.budget.write_headers(headers);
    exchange.calls.write_rates(headers);
    if exchange.attempt.is_fallback
        && let Ok(name) = HeaderValue::from_str(exchange.upstream_name())
    {
        headers.insert(HeaderName::from_static("x-endmark-upstream"), name);
    }
}
