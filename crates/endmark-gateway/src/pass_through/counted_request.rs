//! Forwards a request whose cost is counted. Its possible cost is reserved before it is sent. Its actual cost
//! is then taken from the reported usage, or estimated.

use std::sync::Arc;

use bytes::Bytes;
use endmark_recovery::Ending;
use endmark_store::Purpose;
use endmark_wire::json::Value;
use endmark_wire::paths::{TokenService, only_counts};
use http::request::Parts;
use http::{HeaderValue, Request, Response, header};

use super::send;
use crate::api::ApiNames;
use crate::body::{AnyBody, full, without_usage_events};
use crate::gateway::Gateway;
use crate::ledger::{Call, CallEnd, Calls, RequestEnd, RequestWatch, UsageReader};
use crate::recovery::{StoreWaitLimit, UsageRequest, UsageSource, may_be_about_usage};
use crate::refusals::Refusal;
use crate::request_body::RequestBody;
use crate::route::{self, Target};
use crate::scrub::{Scrubber, Secrets};
use crate::settings::ResumeMode;
use crate::stage::identify::new_caller;
use crate::upstream::{
    decode_response, find_secrets, is_event_stream, read_whole, remove_body_headers,
    remove_replaced_body_headers,
};

/// Length of the beginning of a body that identifies the session, if the client names none. Hashing a long
/// body would take too long.
const SESSION_HASH_BYTES: usize = 4096;

/// Maximum size of an error body that is read to detect that the upstream rejects the request for usage.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// A request whose cost is counted.
pub(super) struct CountedRequest {
    service: TokenService,
    model: String,
    plain: Bytes,
    /// The body as the client sent it.
    sent_body: Bytes,
    is_streamed: bool,
    /// The body with a request for the stream's usage, if the client did not request it.
    body_with_usage: Option<Bytes>,
}

impl CountedRequest {
    pub(super) fn new(service: TokenService, model: String, body: &RequestBody) -> Self {
        let plain = body.plain.clone();
        let sent = body.encoded.as_ref().map_or_else(|| plain.clone(), |encoded| encoded.bytes.clone());
        let root = Value::parse(&plain).ok();
        let is_streamed = root.and_then(|root| root.field("stream")?.as_bool()).unwrap_or(false);
        let body_with_usage = root.and_then(|root| service.with_usage_request(root)).map(Bytes::from);
        Self { service, model, plain, sent_body: sent, is_streamed, body_with_usage }
    }

    /// Reserves the request's possible cost in its budgets, sends the request, and settles its cost when the
    /// response ends. For streams of the older completions API, it also requests usage. If the upstream
    /// rejects that, the original request is sent instead.
    ///
    /// # Errors
    /// [`Refusal::Budget`] if a budget does not permit the request, otherwise the failure of the call.
    pub(super) async fn send(
        self,
        gateway: &Gateway,
        target: &Target<'_>,
        head: &Parts,
        onward: &Request<()>,
    ) -> Result<Response<AnyBody>, Refusal> {
        let calls = self.calls(gateway, target, head)?;
        let store_patience = StoreWaitLimit::default();
        let source = UsageSource {
            usages: &gateway.stream_usages,
            recorder: calls.recorder(),
            store_wait_limit: &store_patience,
            upstream: &target.upstream.name,
            model: &self.model,
        };
        let mut counting = match self.body_with_usage {
            Some(_) => UsageRequest::new(source).await,
            None => UsageRequest::NotRequested,
        };
        loop {
            let requests_usage = counting.is_requested();
            let (call, answer) = self
                .attempt(gateway, target, &calls, self.attempt_request(onward, counting))
                .await
                .inspect_err(|_| calls.watch.end(RequestEnd::Failed))?;
            let answer = if requests_usage && may_be_about_usage(answer.status()) {
                read_refusal(answer, &mut counting, gateway, (target, head))
                    .await
                    .inspect_err(|_| calls.watch.end(RequestEnd::Failed))?
            } else {
                answer
            };
            if requests_usage && counting.is_withdrawn() {
                call.settle(CallEnd::new(Ending::UpstreamError));
                continue;
            }
            counting.learn(source, answer.status()).await;
            return Ok(self.settle_with_body(gateway, &calls, call, answer, requests_usage));
        }
    }

    /// Creates the record of the request's calls.
    fn calls(&self, gateway: &Gateway, target: &Target<'_>, head: &Parts) -> Result<Calls, Refusal> {
        let format = route::detect_format(&head.uri, &head.headers);
        let api = ApiNames::from_service(self.service, target.upstream.provider);
        let text = String::from_utf8_lossy(&self.plain[..self.plain.len().min(SESSION_HASH_BYTES)]);
        let caller = new_caller(head, &text)?;
        let recorder = gateway.store.recorder(Secrets {
            settings_secrets: Arc::clone(&gateway.scrubber),
            request_secrets: Arc::new(Scrubber::new(find_secrets(&head.headers, &head.uri))),
        });
        let watch = RequestWatch::new(
            &gateway.metrics,
            &gateway.stopping,
            caller.request_id.clone(),
            target.upstream.name.clone(),
            api,
            self.is_streamed,
            &head.headers,
        );
        let budgets = Arc::clone(&gateway.budgets);
        Ok(Calls::new(recorder, watch, caller, ResumeMode::Off, (format, api), budgets))
    }

    /// Returns the request for one attempt.
    fn attempt_request(&self, onward: &Request<()>, counting: UsageRequest) -> Request<Bytes> {
        let asking = self.body_with_usage.as_ref().filter(|_| counting.is_requested());
        let mut onward = onward.clone().map(|()| asking.unwrap_or(&self.sent_body).clone());
        let headers = onward.headers_mut();
        if asking.is_some() {
            headers.remove(header::CONTENT_ENCODING);
            remove_body_headers(headers);
            // Request an uncompressed response, because the usage event cannot be removed from compressed bytes.
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if counting.is_withdrawn() {
            // The idempotency key must not be sent with a different body.
            remove_replaced_body_headers(headers);
        }
        onward
    }

    /// Reserves the possible cost of one call in its budgets, and sends the call.
    async fn attempt(
        &self,
        gateway: &Gateway,
        target: &Target<'_>,
        calls: &Calls,
        onward: Request<Bytes>,
    ) -> Result<(Call, Response<AnyBody>), Refusal> {
        let upstream = &target.upstream.name;
        let opened = calls.open(Purpose::Reply, upstream, &self.model, self.is_streamed, &self.plain).await;
        let mut call = opened.map_err(Refusal::Budget)?;
        match send(gateway, target, onward.map(|body| call.request_body(body))).await {
            Ok(answer) => {
                let status = answer.status();
                let answer = answer.map(|body| call.note_answer(status, body));
                Ok((call, answer))
            }
            Err(refusal) => {
                call.settle(CallEnd::new(refusal_ending(&refusal)));
                Err(refusal)
            }
        }
    }

    /// Returns the response with a body that settles the call at its end. A usage event that the client did not
    /// request is removed.
    fn settle_with_body(
        &self,
        gateway: &Gateway,
        calls: &Calls,
        call: Call,
        answer: Response<AnyBody>,
        is_asked: bool,
    ) -> Response<AnyBody> {
        let answer = if is_asked { decode_response(answer) } else { answer };
        let (mut head, body) = answer.into_parts();
        calls.write_rates(&mut head.headers);
        let is_success = head.status.is_success();
        calls.watch.end(if is_success {
            RequestEnd::Unread
        } else {
            RequestEnd::UpstreamError(head.status.as_u16())
        });
        let limits = &gateway.settings.limits;
        let holding = gateway.held_bytes.new_reservation(limits.held_bytes);
        let listener = UsageReader::for_service(self.service, &head.headers, limits.reply_bytes, holding);
        let body = call.settle_with_body(body, Ending::Clean, is_success.then_some(listener));
        if !is_asked || !is_event_stream(&head.headers) {
            return Response::from_parts(head, body);
        }
        remove_replaced_body_headers(&mut head.headers);
        let body = without_usage_events(body, |event| {
            let data = event.data.as_deref().unwrap_or_default();
            Value::parse_str(data).is_ok_and(only_counts)
        });
        Response::from_parts(head, body)
    }
}

/// Reads an error response that may be about the usage, and returns it.
async fn read_refusal(
    answer: Response<AnyBody>,
    counting: &mut UsageRequest,
    gateway: &Gateway,
    (target, head): (&Target<'_>, &Parts),
) -> Result<Response<AnyBody>, Refusal> {
    let (parts, body) = decode_response(answer).into_parts();
    let body = read_whole(body, MAX_ERROR_BYTES, gateway.settings.limits.idle)
        .await
        .map_err(|error| Refusal::AnswerLost { upstream: target.upstream.name.clone(), error })?;
    let root = Value::parse_body(&body).ok();
    let error = root.and_then(|root| route::detect_format(&head.uri, &head.headers).read_error(root));
    counting.note_refusal(parts.status, error.as_ref());
    Ok(Response::from_parts(parts, full(body)))
}

/// Returns the ending of a call without a response.
fn refusal_ending(refusal: &Refusal) -> Ending {
    match refusal {
        Refusal::Unreachable { error, .. } => error.ending(),
        _ => Ending::UpstreamError,
    }
}
