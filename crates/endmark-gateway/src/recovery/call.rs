//! Makes one further upstream call, and waits for an upstream that failed to become available.

use std::time::Duration;

use bytes::Bytes;
use endmark_recovery::Ending;
use endmark_store::Purpose;
use endmark_wire::error::ProviderError;
use endmark_wire::format::WireFormat;
use endmark_wire::json::Value;
use http::{Response, StatusCode};
use tokio::time::{sleep, timeout};

use super::case::Case;
use super::patience::Patience;
use super::site::Site;
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
    #[error("the calls for the rest were not over within {0:?}")]
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
    case: &Case<'_>,
    site: &Site<'_>,
    body: Bytes,
    streamed: bool,
    purpose: Purpose,
    patience: &mut Patience,
    flow: &mut Flow<'_>,
) -> Result<(Response<AnyBody>, Call), CallFailure> {
    let limits = &case.settings.limits;
    let (standing, name) = (&case.sender.upstream_health, site.name());
    let first_byte =
        if site.may_leave() { limits.first_token.min(limits.first_byte) } else { limits.first_byte };
    if patience.is_over() {
        return Err(CallFailure::Lost("the upstream did not come back in the time it was given".to_owned()));
    }
    standing.request(name);
    loop {
        let longest = patience.call();
        if longest.is_zero() {
            return Err(CallFailure::Timeout(patience.calls()));
        }
        let model = &site.request.view().model;
        // The rest of a budget is reserved for the client's own requests, so the reply stays cut.
        let opened = case.calls.open(purpose, name, model, streamed, &body).await;
        let mut call = opened.map_err(|error| CallFailure::Lost(error.to_string()))?;
        let mut request =
            site.destination.post(site.destination.continuation_uri(streamed), call.sends(body.clone()));
        remove_replaced_body_headers(request.headers_mut());
        let sent = site.destination.send(case.sender.client, request, first_byte.min(longest));
        let (problem, told) = match while_alive(limits.heartbeat, flow, sent).await? {
            Ok(answer) if answer.status().is_success() => {
                let status = answer.status();
                return Ok((decode_response(answer.map(|body| call.note_answer(status, body))), call));
            }
            Ok(answer) => {
                let (wait, should_retry) = (retry_after(answer.headers()), should_retry(answer.headers()));
                let status = answer.status();
                let answer = decode_response(answer.map(|body| call.note_answer(status, body)));
                let mut error = read_refusal(answer, site.request.format(), limits.idle.min(longest)).await;
                // The message goes into the log, which others than the client can read.
                error.message = case.recorder.clean(&error.message);
                call.settle(CallEnd::new(Ending::UpstreamError));
                if !should_retry.unwrap_or_else(|| may_pass(status)) {
                    return Err(CallFailure::Rejected { status, error });
                }
                (format!("the upstream answered {status}: {}", error.message), wait)
            }
            Err(error) => {
                call.settle(CallEnd::new(error.ending()));
                match error {
                    UpstreamError::Silent(_) if longest < first_byte => {
                        return Err(CallFailure::Timeout(patience.calls()));
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
        if site.may_leave() {
            return Err(CallFailure::Lost(problem));
        }
        let Some(mut wait) = patience.wait(told, random()) else { return Err(CallFailure::Lost(problem)) };
        if wait > patience.call() {
            return Err(CallFailure::Timeout(patience.calls()));
        }
        // If the budget is exhausted, the client keeps waiting, because a reply that has begun cannot be refused any
        // more.
        loop {
            while_alive(limits.heartbeat, flow, sleep(wait)).await?;
            if standing.may_retry(name) {
                break;
            }
            let Some(longer) = patience.wait(None, random()) else { return Err(CallFailure::Lost(problem)) };
            if longer > patience.call() {
                return Err(CallFailure::Timeout(patience.calls()));
            }
            wait = longer;
        }
    }
}

/// Whether a refusal may be temporary: rate limits, and servers that are starting or overloaded.
fn may_pass(status: StatusCode) -> bool {
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

/// Waits for `work`. Sends heartbeats to a streaming client meanwhile.
pub(super) async fn while_alive<T>(
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
