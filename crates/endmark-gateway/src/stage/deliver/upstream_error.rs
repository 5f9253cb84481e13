//! Forwards responses that are the upstream's own errors.

use endmark_recovery::Ending;
use endmark_wire::json::without_byte_order_mark;
use http::response::Parts;
use http::{HeaderName, Response, header};

use crate::body::{AnyBody, full};
use crate::exchange::Exchange;
use crate::ledger::CallEnd;
use crate::refusals::{Refusal, error_response};
use crate::reply::ends_too_early;
use crate::upstream::{read_whole, remove_body_headers, without_claims};

/// Maximum size of an error body that is examined.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// Forwards an upstream's error. JSON errors stay unchanged. Other errors, such as a proxy's HTML page, are converted
/// to the provider's format with the same status and `Retry-After`.
pub(super) async fn forward_error(
    mut exchange: Box<Exchange>,
    answer: Response<AnyBody>,
) -> Result<Response<AnyBody>, Refusal> {
    let (mut head, body) = answer.into_parts();
    let idle = exchange.gateway.settings.limits.idle;
    let body = read_whole(body, MAX_ERROR_BYTES, idle)
        .await
        .map_err(|error| Refusal::AnswerLost { upstream: exchange.upstream_name().to_owned(), error })?;
    if let Some(call) = exchange.attempt.call.take() {
        call.settle(CallEnd::new(Ending::UpstreamError));
    }
    // A body that is still compressed has an unsupported coding.
    let is_unread = head.headers.contains_key(header::CONTENT_ENCODING);
    let is_json =
        is_unread || serde_json::from_slice::<serde::de::IgnoredAny>(without_byte_order_mark(&body)).is_ok();
    if is_json {
        let Some(clean) = without_claims(&body) else { return Ok(Response::from_parts(head, full(body))) };
        remove_body_headers(&mut head.headers);
        return Ok(Response::from_parts(head, full(clean)));
    }
    let message = unreadable_error_message(&exchange, &head, &body);
    let mut response =
        error_response(exchange.attempt.request.format(), head.status, "endmark_upstream_error", &message);
    for name in ["retry-after", "retry-after-ms", "x-should-retry"].map(HeaderName::from_static) {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

/// Returns the message for the client if the client cannot parse the upstream's error.
fn unreadable_error_message(exchange: &Exchange, head: &Parts, body: &[u8]) -> String {
    let (upstream, status) = (exchange.upstream_name(), head.status);
    if ends_too_early(body) {
        return format!(
            "the upstream `{upstream}` answered {status}, and its error was lost: its JSON ends too early, after {} bytes; \
             what the status says still holds",
            body.len()
        );
    }
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    format!(
        "the upstream `{upstream}` at {} answered {status} with {} instead of a JSON error: check that its base_url points at an API, and try again",
        exchange.attempt.destination.upstream.base_url,
        kind.unwrap_or("no content type"),
    )
}
