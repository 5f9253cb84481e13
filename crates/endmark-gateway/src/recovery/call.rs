//! Makes one further upstream call. After a temporary failure, waits until the upstream is available again.

use std::time::Duration;

use bytes::Bytes;
use endmark_recovery::Ending;
use endmark_store::Purpose;
use endmark_wire::error::ProviderError;
use endmark_wire::format::WireFormat;
use endmark_wire::json::Value;
use http::{Response, StatusCode};
use tokio::time::{sleep, timeout};

use super::case::RecoveryCase;
use super::rest_upstream::RestUpstream;
use super::retry_waits::RetryWaits;
use crate::body::AnyBody;
use crate::ledger::{Call, CallEnd, CallUsage};
use crate::reply::{ClientGone, Flow};
use crate::upstream::{
    UpstreamError, decode_response, random, read_whole, remove_replaced_body_headers, retry_after,
    should_retry,
};

/// Maximum size of an error response. No provider sends larger ones.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Anthropic's status for an overloaded server.
const OVERLOADED: u16 = 529;

/// Why a further call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallFailure {
    /// The upstream cannot serve the request in this form.
    #[error("the upstream refused with {status}: {}", .error.message)]
    Rejected { status: StatusCode, error: ProviderError },
    /// The upstream is unreachable, or fails.
    #[error("{0}")]
    Lost(String),
    /// A response began and was lost. It may be billed.
    #[error("{0}")]
    AnswerLost(String),
    /// The calls exceeded their total time limit.
    #[error("the calls for the rest of the reply took longer than {0:?}")]
    Timeout(Duration),
    /// The response is empty or cannot be joined with the reply.
    #[error("{why}")]
    Unusable {
        why: String,
        /// The counted usage of the response.
        spent: Option<CallUsage>,
        /// How the response ended.
        ending: Ending,
    },
    /// The client has disconnected.
    #[error(transparent)]
    ClientGone(#[from] ClientGone),
}

/// Sends a request until there is a response. Waits for an upstream that failed, unless another one can replace it.
pub(super) async fn send(
    case: &RecoveryCase<'_>,
    site: &RestUpstream<'_>,
    body: Bytes,
    streamed: bool,
    purpose: Purpose,
    patience: &mut RetryWaits,
    flow: &mut Flow<'_>,
) -> Result<(Response<AnyBody>, Call), CallFailure> {
    let limits = &case.settings.limits;
    let (health, name) = (&case.sender.upstream_health, site.name());
    let first_byte =
        if site.can_switch() { limits.first_token.min(limits.first_byte) } else { limits.first_byte };
    if patience.is_over() {
        return Err(CallFailure::Lost("the upstream was not available again in time".to_owned()));
    }
    health.note_request(name);
    loop {
        let longest = patience.time_for_call();
        if longest.is_zero() {
            return Err(CallFailure::Timeout(patience.total_call_time()));
        }
        let model = &site.request.view().model;
        // If a budget does not admit the call, the reply stays cut. The remaining budget is kept for the
        // client's own requests.
        let opened = case.calls.open(purpose, name, model, streamed, &body).await;
        let mut call = opened.map_err(|error| CallFailure::Lost(error.to_string()))?;
        let mut request = site
            .destination
            .post(site.destination.continuation_uri(streamed), call.request_body(body.clone()));
        remove_replaced_body_headers(request.headers_mut());
        let sent = site.destination.send(case.sender.client, request, first_byte.min(longest));
        let (problem, requested_wait) = match with_heartbeats(limits.heartbeat, flow, sent).await? {
            Ok(answer) if answer.status().is_success() => {
                let status = answer.status();
                return Ok((decode_response(answer.map(|body| call.note_answer(status, body))), call));
            }
            Ok(answer) => {
                let (wait, should_retry) = (retry_after(answer.headers()), should_retry(answer.headers()));
                let status = answer.status();
                let answer = decode_response(answer.map(|body| call.note_answer(status, body)));
                let mut error = read_refusal(answer, site.request.format(), limits.idle.min(longest)).await;
                // Remove secrets from the message, because other people can also read the log.
                error.message = case.recorder.clean(&error.message);
                call.settle(CallEnd::new(Ending::UpstreamError));
                if !should_retry.unwrap_or_else(|| is_temporary(status)) {
                    return Err(CallFailure::Rejected { status, error });
                }
                (format!("the upstream answered {status}: {}", error.message), wait)
            }
            Err(error) => {
                call.settle(CallEnd::new(error.ending()));
                match error {
                    UpstreamError::Silent(_) if longest < first_byte => {
                        return Err(CallFailure::Timeout(patience.total_call_time()));
                    }
                    UpstreamError::Silent(_) => return Err(CallFailure::Lost(error.to_string())),
                    UpstreamError::Unreadable(_) => {
                        return Err(CallFailure::Lost(format!(
                            "the upstream's answer cannot be read: {error}"
                        )));
                    }
                    UpstreamError::Unreachable(_) => {
                        (format!("the upstream cannot be reached: {error}"), None)
                    }
                }
            }
        };
        if site.can_switch() {
            return Err(CallFailure::Lost(problem));
        }
        let Some(mut wait) = patience.wait(requested_wait, random()) else {
            return Err(CallFailure::Lost(problem));
        };
        if wait > patience.time_for_call() {
            return Err(CallFailure::Timeout(patience.total_call_time()));
        }
        // If the retry budget is exhausted, keep the client waiting. A reply that has begun can no longer be
        // refused.
        loop {
            with_heartbeats(limits.heartbeat, flow, sleep(wait)).await?;
            if health.may_retry(name) {
                break;
            }
            let Some(longer) = patience.wait(None, random()) else { return Err(CallFailure::Lost(problem)) };
            if longer > patience.time_for_call() {
                return Err(CallFailure::Timeout(patience.total_call_time()));
            }
            wait = longer;
        }
    }
}

/// Whether a refusal may be temporary: rate limits, and servers that are starting or overloaded.
fn is_temporary(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    ) || status.as_u16() == OVERLOADED
}

async fn read_refusal(answer: Response<AnyBody>, format: &dyn WireFormat, idle: Duration) -> ProviderError {
    let unknown = |message: String| ProviderError { message, kind: None, code: None };
    match read_whole(answer.into_body(), MAX_ERROR_BYTES, idle).await {
        Ok(body) => Value::parse_body(&body)
            .ok()
            .and_then(|root| format.read_error(root))
            .unwrap_or_else(|| unknown("no error message in it".to_owned())),
        Err(error) => unknown(error.to_string()),
    }
}

/// Waits for `work`, and sends heartbeats to a streaming client in the meantime.
pub(super) async fn with_heartbeats<T>(
    heartbeat: Duration,
    flow: &mut Flow<'_>,
    work: impl Future<Output = T>,
) -> Result<T, ClientGone> {
    let mut work = std::pin::pin!(work);
    loop {
        match timeout(heartbeat, &mut work).await {
            Ok(done) => return Ok(done),
            Err(_) => flow.keep_alive().await?,
        }
    }
}
