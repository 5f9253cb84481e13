//! The state of a request for a reply, in any format, which all later stages share.

mod budget_headers;
mod changes;
mod tool_schemas;

pub(crate) use budget_headers::BudgetDisclosure;
pub(crate) use changes::RequestChanges;
pub(crate) use tool_schemas::ToolSchemas;

use std::sync::Arc;
use std::time::Duration;

use endmark_recovery::Ending;
use endmark_store::Recorder;
use endmark_text::Format;
use endmark_wire::request::Request;
use http::HeaderMap;
use tokio::time::Instant;

use crate::admission::{BodyWorkPermit, BytesReservation, PermitClaim};
use crate::body::{AnyBody, with_idle_timeout};
use crate::gateway::Gateway;
use crate::ledger::{Call, Calls, RequestEnd, UsageReader};
use crate::recovery::{RecoveryCase, Schema, StoreWaitLimit, UpstreamSender};
use crate::request_body::CompressedBody;
use crate::settings::ResumeMode;
use crate::shaping::{CondensedRequest, READ_TOOL, ShapingContext, Summariser, compact_refused};
use crate::upstream::{Destination, remove_body_headers};

/// One request for a reply, after its first call has been reserved in the budgets.
pub(crate) struct Exchange {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) client: ClientRequest,
    /// Records the outcome without the request's secrets, which only the upstream may read.
    pub(crate) recorder: Recorder,
    /// Remaining time that the reply may wait for the store.
    pub(crate) store_wait_limit: StoreWaitLimit,
    /// The upstream calls of the request.
    pub(crate) calls: Calls,
    /// Whether this is the closing request of a session with an exhausted budget.
    pub(crate) is_closing: bool,
    /// What to disclose to the client about its budgets.
    pub(crate) budget: BudgetDisclosure,
    /// How the client's request was changed before it was sent upstream.
    pub(crate) changes: RequestChanges,
    /// The schemas of the tools that the request offers.
    pub(crate) tool_schemas: ToolSchemas,
    pub(crate) attempt: Attempt,
    /// Memory and a thread for processing the body, until the reply begins to stream.
    pub(crate) work: Option<BodyWorkPermit>,
}

/// The request and the requirements of the client. They never change.
pub(crate) struct ClientRequest {
    /// The id that `endmark log show` accepts.
    pub(crate) id: String,
    /// The task: the client's name for it, or the session.
    pub(crate) task_id: String,
    /// The number of the conversation's turn that the reply answers, from 1.
    pub(crate) turn_number: u32,
    /// The recovery mode, unless the upstream is another Endmark: see [`Exchange::mode`].
    pub(crate) mode: ResumeMode,
    /// How many times the client has already sent this request.
    pub(crate) retries: u32,
    /// The format that the message text must have, if any.
    pub(crate) required_format: Option<Format>,
    /// The schema that the message text must match, if any.
    pub(crate) schema: Option<Schema>,
    /// The deadline for the whole request.
    pub(crate) deadline: Instant,
    /// The request's claim to a permit. The permit is held while any work for the request is in progress,
    /// even after the client disconnects.
    pub(crate) _claim: Option<Arc<PermitClaim>>,
    /// The memory reserved for the body.
    pub(crate) _body_memory: BytesReservation,
}

/// The current attempt to get a reply: the upstream and the request that is sent to it.
pub(crate) struct Attempt {
    /// The request for the upstream, without the additions of [`Attempt::requests_usage`].
    pub(crate) request: Request,
    /// The compressed request, which is valid only for the original upstream.
    pub(crate) encoded: Option<CompressedBody>,
    /// The upstream that answers.
    pub(crate) destination: Destination,
    pub(crate) fallback: Option<Destination>,
    /// Whether the upstream that answers is the fallback.
    pub(crate) is_fallback: bool,
    /// The client's original request, while a different request is sent to another upstream.
    pub(crate) saved_request: Option<Request>,
    /// The call that returns the reply, until it is settled.
    pub(crate) call: Option<Call>,
    /// Whether the gateway requested the usage of the stream although the client did not. The usage event is not
    /// forwarded.
    pub(crate) requests_usage: bool,
    /// The request before the older part of its conversation was condensed.
    pub(crate) uncondensed: Option<Request>,
    /// Whether the request may be condensed if the provider rejects it as too long. This is done only once.
    pub(crate) may_condense: bool,
    /// The number of retries before the reply began.
    pub(crate) retries: u32,
    /// How many of these retries followed a reply that broke off before the client received any of it.
    pub(crate) lost_replies: u32,
    /// How often the model has read omitted parts of tool results so far.
    pub(crate) reading_rounds: u32,
}

impl Exchange {
    /// Switches to the other upstream and its model. A second call switches back.
    pub(crate) fn toggle_fallback(&mut self) {
        let Some(fallback) = &mut self.attempt.fallback else { return };
        std::mem::swap(fallback, &mut self.attempt.destination);
        self.attempt.is_fallback = !self.attempt.is_fallback;
        if self.attempt.is_fallback {
            let mut request = self.attempt.destination.adapt(&self.attempt.request);
            if self.attempt.destination.upstream.endmark && self.offers_read_tool() {
                // The other upstream's reply is forwarded unread, and would contain calls of this tool.
                request = request.without_tool(&READ_TOOL);
            }
            self.attempt.saved_request = Some(std::mem::replace(&mut self.attempt.request, request));
        } else if let Some(own) = self.attempt.saved_request.take() {
            self.attempt.request = own;
        }
    }

    /// Condenses a request that the provider rejected as too long. Returns whether there is a new request to send.
    pub(crate) async fn condense(&mut self) -> bool {
        if !std::mem::replace(&mut self.attempt.may_condense, false) {
            return false;
        }
        let refused = match &self.attempt.uncondensed {
            Some(own) if self.attempt.is_fallback => self.attempt.destination.adapt(own),
            Some(own) => own.clone(),
            None => self.attempt.request.clone(),
        };
        let condensed = compact_refused(&self.subject(), &refused).await;
        let Some(CondensedRequest { request, summary }) = condensed else { return false };
        if self.changes.summary.is_none() {
            self.gateway.metrics.note_compaction(self.upstream_name(), summary.mode);
        }
        self.attempt.request = request;
        self.changes.summary = Some(summary);
        self.changes.compaction_stopped = None;
        self.attempt.encoded = None;
        remove_body_headers(&mut self.attempt.destination.headers);
        true
    }

    /// Returns the data that shaping needs to change the request.
    pub(crate) fn subject(&self) -> ShapingContext<'_> {
        ShapingContext {
            shaping: &self.gateway.shaping,
            settings: &self.gateway.settings,
            store: &self.gateway.store,
            id: &self.client.id,
            credential: self.calls.credential(),
            session: self.calls.session(),
            upstream: self.upstream_name(),
            summariser: Some(Summariser {
                client: &self.gateway.client,
                destination: &self.attempt.destination,
                calls: &self.calls,
            }),
        }
    }

    /// Whether the model is offered the tool for reading omitted parts of tool results. Calls of this tool
    /// must not reach the client.
    pub(crate) fn offers_read_tool(&self) -> bool {
        self.changes.offers_read_tool
    }

    /// Forwards a response without parsing it, and returns its body. At its end, the call is settled with `ending`.
    pub(crate) fn forward_unread(&mut self, body: AnyBody, ending: Ending) -> AnyBody {
        self.calls.watch.end(RequestEnd::Unread);
        let body = with_idle_timeout(body, self.gateway.settings.limits.idle);
        match self.attempt.call.take() {
            Some(call) => call.settle_with_body(body, ending, None),
            None => body,
        }
    }

    /// Forwards a response that needs no recovery, and reads only its usage.
    pub(crate) fn forward_reading_usage(&mut self, head: &HeaderMap, body: AnyBody) -> AnyBody {
        self.calls.watch.end(RequestEnd::Unread);
        let limits = &self.gateway.settings.limits;
        let body = with_idle_timeout(body, limits.idle);
        let Some(call) = self.attempt.call.take() else { return body };
        let reservation = self.gateway.held_bytes.new_reservation(limits.held_bytes);
        let listener = UsageReader::new(self.attempt.request.clone(), head, limits.reply_bytes, reservation);
        call.settle_with_body(body, Ending::Clean, Some(listener))
    }

    /// Returns the schema of this tool's arguments, if it has one.
    pub(crate) fn tool_schema(&self, name: &str) -> Option<Schema> {
        self.tool_schemas.find(&self.attempt.request, name)
    }

    /// Returns the data that recovery needs.
    pub(crate) fn case(&self) -> RecoveryCase<'_> {
        let gateway = &*self.gateway;
        RecoveryCase {
            id: &self.client.id,
            task_id: &self.client.task_id,
            turn_number: self.client.turn_number,
            mode: self.mode(),
            sets_limit: self.sets_limit(),
            is_closing: self.is_closing,
            withdrawn_tool: self.offers_read_tool().then_some(READ_TOOL.name),
            request: &self.attempt.request,
            destination: &self.attempt.destination,
            fallback: self.attempt.fallback.as_ref(),
            sender: UpstreamSender { client: &gateway.client, upstream_health: &gateway.upstream_health },
            calls: &self.calls,
            recorder: &self.recorder,
            store_wait_limit: &self.store_wait_limit,
            settings: &gateway.settings,
            capabilities: &gateway.capabilities,
            stream_usages: &gateway.stream_usages,
            metrics: &gateway.metrics,
            stopping: &gateway.stopping,
        }
    }

    /// Returns the recovery mode. It is off if the upstream is another Endmark, which recovers replies itself.
    pub(crate) fn mode(&self) -> ResumeMode {
        if self.attempt.destination.upstream.endmark { ResumeMode::Off } else { self.client.mode }
    }

    /// Returns the time since the request began.
    pub(crate) fn elapsed(&self) -> Duration {
        let left = self.client.deadline.saturating_duration_since(Instant::now());
        self.gateway.settings.limits.total.saturating_sub(left)
    }

    /// Returns the name of the upstream that answers.
    pub(crate) fn upstream_name(&self) -> &str {
        &self.attempt.destination.upstream.name
    }

    /// Whether the client limited its reply. If the format requires a limit, a very high one does not count.
    pub(crate) fn sets_limit(&self) -> bool {
        let cap = self.gateway.settings.resume.treat_limit_as_cap;
        let is_cap = |limit: u64| self.attempt.request.format().facts().limit_is_required && limit >= cap;
        self.attempt.request.view().limit.is_some_and(|limit| !is_cap(limit))
    }

    /// Returns the number of output tokens at which a reply must have been cut, whatever its stop reason is.
    pub(crate) fn single_reply_limit(&self) -> Option<u64> {
        // With several choices, the reported count is their sum and does not describe a single one.
        let view = self.attempt.request.view();
        if view.choices == 1 { view.limit } else { None }
    }
}
