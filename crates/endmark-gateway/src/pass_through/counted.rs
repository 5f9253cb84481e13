//! A request that passes and whose cost is counted: held before it is sent, and charged by the usage that its answer
//! reports, else by an estimate.

use std::sync::Arc;

use bytes::Bytes;
use endmark_recovery::Ending;
use endmark_store::Purpose;
use endmark_wire::json::Value;
use endmark_wire::paths::Service;
use http::request::Parts;
use http::{Request, Response};

use super::send;
use crate::api::Api;
use crate::body::AnyBody;
use crate::gateway::Gateway;
use crate::ledger::{CallEnd, Calls, Ended, Listener, Watch};
use crate::request_body::RequestBody;
use crate::rescue::Refusal;
use crate::route::{self, Target};
use crate::scrub::{Scrubber, Secrets};
use crate::settings::Mode;
use crate::stage::identify::caller;
use crate::upstream::secrets_in;

/// As much of a body is its session, where the client names none. To hash all of a long one takes too long.
const SESSION_BYTES: usize = 4096;

/// What is counted of a request.
pub(super) struct Counted {
    service: Service,
    model: String,
    plain: Bytes,
    /// The body as it is sent.
    sent: Bytes,
}

impl Counted {
    pub(super) fn new(service: Service, model: String, body: &RequestBody) -> Self {
        let plain = body.plain.clone();
        let sent = body.encoded.as_ref().map_or_else(|| plain.clone(), |encoded| encoded.bytes.clone());
        Self { service, model, plain, sent }
    }

    /// Holds the request in its budgets, sends it, and settles it with the end of its answer.
    ///
    /// # Errors
    /// [`Refusal::Budget`] where a budget does not admit it, else what became of the call.
    pub(super) async fn send(
        self,
        gateway: &Gateway,
        target: &Target<'_>,
        head: &Parts,
        onward: impl FnOnce(AnyBody) -> Request<AnyBody>,
    ) -> Result<Response<AnyBody>, Refusal> {
        let format = route::format_of(&head.uri, &head.headers);
        let api = Api::of_service(self.service, target.upstream.provider);
        let text = String::from_utf8_lossy(&self.plain[..self.plain.len().min(SESSION_BYTES)]);
        let caller = caller(head, &text)?;
        let stream = Value::parse(&self.plain).ok().and_then(|root| root.field("stream")?.as_bool());
        let is_streamed = stream.unwrap_or(false);
        let recorder = gateway.store.recorder(Secrets {
            of_settings: Arc::clone(&gateway.scrubber),
            of_request: Arc::new(Scrubber::new(secrets_in(&head.headers, &head.uri))),
        });
        let upstream = &target.upstream.name;
        let watch = Watch::new(
            &gateway.metrics,
            &gateway.stopping,
            caller.request_id.clone(),
            upstream.clone(),
            api,
            is_streamed,
            &head.headers,
        );
        let budgets = Arc::clone(&gateway.budgets);
        let calls = Calls::new(recorder, watch, caller, Mode::Off, (format, api), budgets);
        let opened = calls.open(Purpose::Reply, upstream, &self.model, is_streamed, &self.plain).await;
        let mut call = match opened {
            Ok(call) => call,
            Err(why) => {
                calls.watch.end(Ended::Failed);
                return Err(Refusal::Budget(why));
            }
        };
        let answer = match send(gateway, target, onward(call.sends(self.sent))).await {
            Ok(answer) => answer,
            Err(refusal) => {
                calls.watch.end(Ended::Failed);
                call.settle(CallEnd::new(ending_of(&refusal)));
                return Err(refusal);
            }
        };
        let (head, body) = answer.into_parts();
        let body = call.answered(head.status, body);
        calls.watch.end(if head.status.is_success() { Ended::Unread } else { Ended::Refused });
        let limits = &gateway.settings.limits;
        let holding = gateway.held.part(limits.held_bytes);
        let listener = Listener::of_service(self.service, &head.headers, limits.reply_bytes, holding);
        let body = call.follow(body, Ending::Clean, head.status.is_success().then_some(listener));
        Ok(Response::from_parts(head, body))
    }
}

/// How a call ended that got no answer.
fn ending_of(refusal: &Refusal) -> Ending {
    match refusal {
        Refusal::Unreachable { error, .. } => error.ending(),
        _ => Ending::UpstreamError,
    }
}
