//! A request for a reply, in any format: the state that all stages share from its delivery on.

mod budget_told;
mod changed;
mod tool_schemas;

pub(crate) use budget_told::BudgetTold;
pub(crate) use changed::Changed;
pub(crate) use tool_schemas::ToolSchemas;

use std::sync::Arc;
use std::time::Duration;

use endmark_recovery::Ending;
use endmark_store::Recorder;
use endmark_text::Format;
use endmark_wire::request::Request;
use http::HeaderMap;
use tokio::time::Instant;

use crate::admission::{Claim, Holding, Work};
use crate::body::{AnyBody, unbroken};
use crate::gateway::Gateway;
use crate::ledger::{Call, Calls, Ended, Listener};
use crate::recovery::{Case, Schema, Sender, StorePatience};
use crate::request_body::Encoded;
use crate::settings::Mode;
use crate::shaping::{Condensed, READ_TOOL, Subject, Summariser, compact_refused};
use crate::upstream::{Destination, of_changed_body};

/// One request for a reply, from the moment at which its calls are counted.
pub(crate) struct Exchange {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) client: ClientRequest,
    /// Records its outcome without its secrets, which only the upstream may read and may repeat.
    pub(crate) recorder: Recorder,
    /// How long its reply may still wait for the store.
    pub(crate) store_patience: StorePatience,
    /// Its upstream calls.
    pub(crate) calls: Calls,
    /// Whether it is the last request of its session, whose budget is used up.
    pub(crate) is_closing: bool,
    /// What the client learns about its budgets.
    pub(crate) budget: BudgetTold,
    /// How the client's request was changed before it was sent upstream.
    pub(crate) changed: Changed,
    /// The schemas of the tools that the request offers.
    pub(crate) tool_schemas: ToolSchemas,
    pub(crate) attempt: Attempt,
    /// The processing of its body, until its reply begins to stream.
    pub(crate) work: Option<Work>,
}

/// What the client sent and requires. It never changes.
pub(crate) struct ClientRequest {
    /// The id that `endmark log show` explains.
    pub(crate) id: String,
    /// The task that it belongs to: named by the client, otherwise its session.
    pub(crate) task_id: String,
    /// The number of the conversation's turn that is being answered, from 1.
    pub(crate) turn_number: u32,
    /// The mode that applies, unless another Endmark answers: see [`Exchange::mode`].
    pub(crate) mode: Mode,
    /// How often the client has sent this request before.
    pub(crate) retries: u32,
    /// The required grammar of the message text, if any.
    pub(crate) demanded: Option<Format>,
    /// The schema of the message text, if any.
    pub(crate) schema: Option<Schema>,
    /// The deadline for the whole request.
    pub(crate) deadline: Instant,
    /// The claim to be served, held while any part of it is in progress, even after its client has disconnected.
    pub(crate) _claim: Option<Arc<Claim>>,
    /// The memory held for its body.
    pub(crate) _holding: Holding,
}

/// The current attempt to get a reply: the request as it is sent, and the upstream.
pub(crate) struct Attempt {
    /// The request as the upstream gets it, without the additions of [`Attempt::asks_usage`].
    pub(crate) request: Request,
    /// The request in its compressed form, for its original upstream.
    pub(crate) encoded: Option<Encoded>,
    /// The upstream that answers.
    pub(crate) destination: Destination,
    /// The fallback upstream.
    pub(crate) fallback: Option<Destination>,
    /// Whether the upstream that answers is the fallback.
    pub(crate) stands_in: bool,
    /// The client's own request, while another upstream gets a changed one.
    pub(crate) set_aside: Option<Request>,
    /// The call whose answer is the reply, until it is settled.
    pub(crate) call: Option<Call>,
    /// Whether the usage of the stream was requested although the client did not. The client does not get the usage
    /// event.
    pub(crate) asks_usage: bool,
    /// The request before its older part was condensed, if it was.
    pub(crate) uncondensed: Option<Request>,
    /// Whether it may be condensed if its provider refuses it for length. It is condensed only once.
    pub(crate) may_condense: bool,
    /// Retries before there was a reply.
    pub(crate) retries: u32,
    /// How many of them followed a reply that broke off before the client had any of it.
    pub(crate) lost_replies: u32,
    /// How often the model read omitted parts of results before it gave the reply.
    pub(crate) rounds_of_reading: u32,
}

impl Exchange {
    /// Lets the other upstream answer, with one of its models. A second time reverts that.
    pub(crate) fn let_stand_in(&mut self) {
        let Some(fallback) = &mut self.attempt.fallback else { return };
        std::mem::swap(fallback, &mut self.attempt.destination);
        self.attempt.stands_in = !self.attempt.stands_in;
        if self.attempt.stands_in {
            let mut request = self.attempt.destination.adapted(&self.attempt.request);
            if self.attempt.destination.upstream.endmark && self.offers_reading() {
                // Its reply is passed on unread, and so would be calls of the tool.
                request = request.withdrawing(&READ_TOOL);
            }
            self.attempt.set_aside = Some(std::mem::replace(&mut self.attempt.request, request));
        } else if let Some(own) = self.attempt.set_aside.take() {
            self.attempt.request = own;
        }
    }

    /// Condenses a request that its provider refused for length. Returns whether there is a new request to send.
    pub(crate) async fn condense(&mut self) -> bool {
        if !std::mem::replace(&mut self.attempt.may_condense, false) {
            return false;
        }
        let refused = match &self.attempt.uncondensed {
            Some(own) if self.attempt.stands_in => self.attempt.destination.adapted(own),
            Some(own) => own.clone(),
            None => self.attempt.request.clone(),
        };
        let condensed = compact_refused(&self.subject(), &refused).await;
        let Some(Condensed { request, summary }) = condensed else { return false };
        if self.changed.summary.is_none() {
            self.gateway.metrics.compacted(self.upstream_name(), summary.mode);
        }
        self.attempt.request = request;
        self.changed.summary = Some(summary);
        self.changed.compaction_stopped = None;
        self.attempt.encoded = None;
        of_changed_body(&mut self.attempt.destination.headers);
        true
    }

    /// Returns what a change of the request needs to know.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
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

    /// Whether the request offers the tool that reads omitted parts of results. Calls of that tool are not the
    /// client's.
    pub(crate) fn offers_reading(&self) -> bool {
        self.changed.offers_reading
    }

    /// Lets an answer pass as it comes, `ending` so as far as Endmark is concerned: its call is over when it ends.
    pub(crate) fn pass_unread(&mut self, body: AnyBody, ending: Ending) -> AnyBody {
        self.calls.watch.end(Ended::Unread);
        let body = unbroken(body, self.gateway.settings.limits.idle);
        match self.attempt.call.take() {
            Some(call) => call.follow(body, ending, None),
            None => body,
        }
    }

    /// As `pass_unread`, for an answer that needs no recovery: only its usage is read.
    pub(crate) fn pass_heard(&mut self, head: &HeaderMap, body: AnyBody) -> AnyBody {
        self.calls.watch.end(Ended::Unread);
        let limits = &self.gateway.settings.limits;
        let body = unbroken(body, limits.idle);
        let Some(call) = self.attempt.call.take() else { return body };
        let holding = self.gateway.held.part(limits.held_bytes);
        let listener = Listener::new(self.attempt.request.clone(), head, limits.reply_bytes, holding);
        call.follow(body, Ending::Clean, Some(listener))
    }

    /// Returns the schema of this tool's arguments, if it has one.
    pub(crate) fn tool_schema(&self, name: &str) -> Option<Schema> {
        self.tool_schemas.of(&self.attempt.request, name)
    }

    /// Returns what recovery needs to know.
    pub(crate) fn case(&self) -> Case<'_> {
        let gateway = &*self.gateway;
        Case {
            id: &self.client.id,
            task_id: &self.client.task_id,
            turn_number: self.client.turn_number,
            mode: self.mode(),
            sets_limit: self.sets_limit(),
            is_closing: self.is_closing,
            withdrawn: self.offers_reading().then_some(READ_TOOL.name),
            request: &self.attempt.request,
            destination: &self.attempt.destination,
            fallback: self.attempt.fallback.as_ref(),
            sender: Sender { client: &gateway.client, standing: &gateway.standing },
            calls: &self.calls,
            recorder: &self.recorder,
            store_patience: &self.store_patience,
            settings: &gateway.settings,
            capabilities: &gateway.capabilities,
            stream_usages: &gateway.stream_usages,
            metrics: &gateway.metrics,
            stopping: &gateway.stopping,
        }
    }

    /// Returns the mode of recovery. It is off if the upstream is another Endmark, which recovers by itself.
    pub(crate) fn mode(&self) -> Mode {
        if self.attempt.destination.upstream.endmark { Mode::Off } else { self.client.mode }
    }

    /// Returns how long it has taken so far.
    pub(crate) fn took(&self) -> Duration {
        let left = self.client.deadline.saturating_duration_since(Instant::now());
        self.gateway.settings.limits.total.saturating_sub(left)
    }

    /// Returns the name of the upstream that answers.
    pub(crate) fn upstream_name(&self) -> &str {
        &self.attempt.destination.upstream.name
    }

    /// Whether the client itself limited its reply. If its format requires a limit, a very high one does not count.
    pub(crate) fn sets_limit(&self) -> bool {
        let cap = self.gateway.settings.resume.treat_limit_as_cap;
        let is_cap = |limit: u64| self.attempt.request.format().facts().limit_is_required && limit >= cap;
        self.attempt.request.view().limit.is_some_and(|limit| !is_cap(limit))
    }

    /// Returns the output tokens at which a single reply must be cut, whatever its stop reason.
    pub(crate) fn limit_of_one_reply(&self) -> Option<u64> {
        // With several choices, the reported count is their sum and does not describe one.
        let view = self.attempt.request.view();
        if view.choices == 1 { view.limit } else { None }
    }
}
