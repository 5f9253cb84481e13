//! Selects a fault for each reply. The same seed gives the same faults in the same order.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use endmark_wire::format::WireFormat;
use http::{HeaderName, HeaderValue, Request, Response};

use super::body::inject_into_response;
use crate::body::AnyBody;
use crate::refusals::error_response;
use crate::settings::FULL_SHARE;
use crate::settings::Upstream;
use crate::settings::{Fault, FaultKind, FaultPlan, FaultPosition, FaultSide};
use crate::upstream::{Client, Interceptor, UpstreamError};

/// A fault without a position occurs within this number of events, so that short replies also get one.
const EVENTS_TO_CHOOSE_FROM: u64 = 24;

/// Selects faults for one gateway, in the order of its requests.
pub(crate) struct Faults {
    /// Each fault with the sum of all shares up to and including its own, in hundredths of a percent.
    cumulative_percents: Vec<(u32, Fault)>,
    side: FaultSide,
    seed: u64,
    requests: AtomicU64,
}

impl Faults {
    /// Creates the faults of a plan. Without a seed, their order is random.
    pub(crate) fn new(plan: &FaultPlan, side: FaultSide, seed: Option<u64>) -> Self {
        let given_share: u32 = plan.faults.iter().filter_map(|fault| fault.share).sum();
        let faults_without_share = plan.faults.iter().filter(|fault| fault.share.is_none()).count();
        let rest = FULL_SHARE.saturating_sub(given_share)
            / u32::try_from(faults_without_share.max(1)).unwrap_or(u32::MAX);
        let mut sum = 0;
        let up_to = plan.faults.iter().map(|fault| {
            sum += fault.share.unwrap_or(rest);
            (sum, fault.clone())
        });
        Self {
            cumulative_percents: up_to.collect(),
            side,
            seed: seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
            requests: AtomicU64::new(0),
        }
    }

    /// Answers a request with `reply`, and injects the next fault. A fault on the upstream's side is stored in the
    /// request's extensions, for its [`Destination`](crate::upstream::Destination)s.
    pub(crate) async fn inject<B>(
        &self,
        format: &'static dyn WireFormat,
        mut request: Request<B>,
        reply: impl AsyncFnOnce(Request<B>) -> Response<AnyBody>,
    ) -> Response<AnyBody> {
        let Some(fault) = self.next_fault() else { return reply(request).await };
        let side = self.side;
        let injected = Arc::new(InjectedFault { fault, side, format, was_used: AtomicBool::new(false) });
        let answer = if let Some(answer) = injected.replacement() {
            answer
        } else {
            let interceptor: Arc<dyn Interceptor> = Arc::<InjectedFault>::clone(&injected);
            request.extensions_mut().insert(interceptor);
            reply(request).await
        };
        injected.deliver(answer).await
    }

    /// Returns the fault for the next reply, if any.
    fn next_fault(&self) -> Option<Fault> {
        if self.cumulative_percents.is_empty() {
            return None;
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let drawn = u32::try_from(splitmix64(self.seed, 2 * number) % u64::from(FULL_SHARE)).unwrap_or(0);
        self.cumulative_percents.iter().find(|(up_to, _)| drawn < *up_to).map(|(_, fault)| {
            let place = match fault.position {
                FaultPosition::Anywhere => {
                    let events = splitmix64(self.seed, 2 * number + 1) % EVENTS_TO_CHOOSE_FROM;
                    FaultPosition::Events(usize::try_from(events).unwrap_or(0))
                }
                known => known,
            };
            Fault { position: place, ..fault.clone() }
        })
    }
}

/// Returns the pseudo-random number of a seed at an index.
fn splitmix64(seed: u64, number: u64) -> u64 {
    let mut state = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// The fault for one request's reply.
struct InjectedFault {
    fault: Fault,
    side: FaultSide,
    /// The format of the request.
    format: &'static dyn WireFormat,
    was_used: AtomicBool,
}

impl Interceptor for InjectedFault {
    fn send<'a>(
        &'a self,
        client: &'a Client,
        upstream: &'a Upstream,
        request: Request<AnyBody>,
        first_byte: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Response<AnyBody>, UpstreamError>> + Send + 'a>> {
        Box::pin(async move {
            if !self.must_inject_upstream() {
                return client.send(upstream, request, first_byte).await;
            }
            match self.fault.kind {
                FaultKind::Status(status, retry_after) => Ok(self.refusal(status, retry_after)),
                _ => {
                    inject_into_response(
                        &self.fault,
                        self.format,
                        client.send(upstream, request, first_byte).await?,
                    )
                    .await
                }
            }
        })
    }
}

impl InjectedFault {
    /// Returns the response that replaces the reply if the fault requires one.
    fn replacement(&self) -> Option<Response<AnyBody>> {
        match (self.side, self.fault.kind) {
            (FaultSide::Client, FaultKind::Status(status, retry_after)) => {
                Some(self.refusal(status, retry_after))
            }
            _ => None,
        }
    }

    /// Returns the response for the client, with a header that names the injected fault.
    async fn deliver(&self, answer: Response<AnyBody>) -> Response<AnyBody> {
        let fault = &self.fault;
        let mut answer = match (self.side, fault.kind) {
            (FaultSide::Upstream, _) | (FaultSide::Client, FaultKind::Status(..)) => answer,
            (FaultSide::Client, _) => {
                inject_into_response(fault, self.format, answer).await.unwrap_or_else(|error| {
                    // Only the fault injection reads this reply, so it must report the error itself.
                    error_response(
                        self.format,
                        http::StatusCode::BAD_GATEWAY,
                        "endmark_upstream_answer_lost",
                        &error.to_string(),
                    )
                })
            }
        };
        if let Ok(written) = HeaderValue::from_str(&fault.source_text) {
            answer.headers_mut().insert(HeaderName::from_static("x-endmark-fault"), written);
        }
        answer
    }

    /// Returns the error that replaces a reply, without an upstream call.
    fn refusal(&self, status: http::StatusCode, retry_after: Option<Duration>) -> Response<AnyBody> {
        let message = "a rehearsed fault (--fault): no model was asked";
        let mut answer = error_response(self.format, status, "endmark_rehearsed_fault", message);
        if let Some(wait) = retry_after {
            // The header contains whole seconds.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            answer.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
        }
        answer
    }

    fn must_inject_upstream(&self) -> bool {
        self.side == FaultSide::Upstream
            && (!self.was_used.swap(true, Ordering::Relaxed) || self.fault.always)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw_all(plan: &str, seed: u64, requests: usize) -> Vec<Option<String>> {
        let faults = Faults::new(&plan.parse().unwrap(), FaultSide::Upstream, Some(seed));
        (0..requests).map(|_| faults.next_fault().map(|fault| fault.source_text)).collect()
    }

    #[test]
    fn a_seed_reproduces_its_faults() {
        let plan = "cut@20@30%,drop@30%";
        assert_eq!(draw_all(plan, 7, 100), draw_all(plan, 7, 100));
        assert_ne!(draw_all(plan, 7, 100), draw_all(plan, 8, 100));
    }

    #[test]
    fn fault_shares_refer_to_all_replies() {
        let count = |plan: &str, fault: Option<&str>| {
            draw_all(plan, 1, 10_000).iter().filter(|drawn| drawn.as_deref() == fault).count()
        };
        let near = |found: usize, expected: usize| found.abs_diff(expected) < 300;
        assert!(near(count("cut@20@30%,drop@10%", None), 6_000));
        assert!(near(count("cut@20@30%,drop@10%", Some("drop@10%")), 1_000));
        assert!(near(count("cut@20,drop@50%", Some("cut@20")), 5_000));
        assert!(near(count("cut,drop,stall@20%", Some("drop")), 4_000));
        assert_eq!(count("cut", Some("cut")), 10_000);
    }
}
