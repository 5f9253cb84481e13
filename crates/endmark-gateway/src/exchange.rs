//! A request for a reply, in any format, on its way: what all stages from its delivery on know of it.

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
use crate::faults::Rehearsal;
use crate::gateway::Gateway;
use crate::ledger::{Call, Calls, Ended, Listener};
use crate::recovery::{Case, Schema, Sender, StorePatience};
use crate::request_body::Encoded;
use crate::settings::Mode;
use crate::shaping::{Condensed, READ_TOOL, Subject, Summariser, compact_refused};
use crate::upstream::{Destination, of_changed_body};

/// One request for a reply, from the moment on at which its calls are counted.
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about one request")]
pub(crate) struct Exchange {
    pub(crate) gateway: Arc<Gateway>,
    /// The id that `endmark log show` explains.
    pub(crate) id: String,
    /// The task it belongs to: named by the client, else its session.
    pub(crate) task_id: String,
    /// Which turn of the conversation is being answered, from 1.
    pub(crate) turn_number: u32,
    pub(crate) mode: Mode,
    /// Writes down what becomes of it, without its secrets: what of it is nobody's to read but the upstream's, which may
    /// repeat it.
    pub(crate) recorder: Recorder,
    /// How long its reply may still wait for the store.
    pub(crate) store_patience: StorePatience,
    /// The upstream calls made for it.
    pub(crate) calls: Calls,
    /// The call whose answer is the reply, until it is settled.
    pub(crate) call: Option<Call>,
    /// What goes wrong with it on command.
    pub(crate) rehearsal: Arc<Rehearsal>,
    /// The upstream that answers.
    pub(crate) destination: Destination,
    /// The one that can stand in for it.
    pub(crate) fallback: Option<Destination>,
    /// Whether the upstream that answers stands in for another.
    pub(crate) stands_in: bool,
    /// Whether it is the last one of its session, whose budget is used up.
    pub(crate) is_closing: bool,
    /// What the client is told of its budgets.
    pub(crate) budget: BudgetTold,
    /// Further tries that were made before there was a reply.
    pub(crate) retries: u32,
    /// How many of them followed a reply that broke off, of which the client had nothing.
    pub(crate) lost_replies: u32,
    /// How often the client has sent this request before.
    pub(crate) client_retries: u32,
    /// The request as the upstream that answers gets it, but for what [`Exchange::asks_usage`] adds.
    pub(crate) request: Request,
    /// Whether the upstream was asked for the tokens of its stream, and the client did not ask: it does not get the event
    /// that counts them.
    pub(crate) asks_usage: bool,
    /// The client's own request, while another upstream gets another.
    pub(crate) set_aside: Option<Request>,
    /// What of the client's request was changed before it went upstream.
    pub(crate) changed: Changed,
    /// The request before its older part was condensed, where it was.
    pub(crate) uncondensed: Option<Request>,
    /// How often the model read what was left out of a result, before it gave the reply.
    pub(crate) rounds_of_reading: u32,
    /// Whether it may be condensed where its provider refuses it for length: once.
    pub(crate) may_condense: bool,
    /// The request as it came, if it came compressed: for the upstream that it was sent to.
    pub(crate) encoded: Option<Encoded>,
    /// The grammar that the message text must follow, if one is demanded.
    pub(crate) demanded: Option<Format>,
    /// The schema that the message text must follow, if there is one.
    pub(crate) schema: Option<Schema>,
    /// The schemas of the tools that the request offers.
    pub(crate) tool_schemas: ToolSchemas,
    /// Until when the whole of it may take.
    pub(crate) deadline: Instant,
    /// It may be served for as long as anything of it goes on, also where its client is gone.
    pub(crate) _claim: Option<Arc<Claim>>,
    /// The room that its body takes.
    pub(crate) _holding: Holding,
    /// The work on its body, until its reply comes as a stream.
    pub(crate) work: Option<Work>,
}

impl Exchange {
    /// Lets the other upstream answer, with a model that it has; a second time undoes the first.
    pub(crate) fn let_stand_in(&mut self) {
        let Some(fallback) = &mut self.fallback else { return };
        std::mem::swap(fallback, &mut self.destination);
        self.stands_in = !self.stands_in;
        if self.stands_in {
            let mut request = self.destination.adapted(&self.request);
            if self.destination.upstream.endmark && self.offers_reading() {
                // Its reply passes unread, and so would calls of the tool.
                request = request.withdrawing(&READ_TOOL);
            }
            self.set_aside = Some(std::mem::replace(&mut self.request, request));
        } else if let Some(own) = self.set_aside.take() {
            self.request = own;
        }
    }

    /// Condenses a request that its provider refused for length; whether there is another one to be sent now.
    pub(crate) async fn condense(&mut self) -> bool {
        if !std::mem::replace(&mut self.may_condense, false) {
            return false;
        }
        let refused = match &self.uncondensed {
            Some(own) if self.stands_in => self.destination.adapted(own),
            Some(own) => own.clone(),
            None => self.request.clone(),
        };
        let condensed = compact_refused(&self.subject(), &refused).await;
        let Some(Condensed { request, summary }) = condensed else { return false };
        if self.changed.summary.is_none() {
            self.gateway.metrics.compacted(self.upstream_name(), summary.mode);
        }
        self.request = request;
        self.changed.summary = Some(summary);
        self.changed.compaction_stopped = None;
        self.encoded = None;
        of_changed_body(&mut self.destination.headers);
        true
    }

    /// Whose request it is, and what it may be changed with.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            shaping: &self.gateway.shaping,
            settings: &self.gateway.settings,
            store: &self.gateway.store,
            id: &self.id,
            credential: self.calls.credential(),
            session: self.calls.session(),
            upstream: self.upstream_name(),
            summariser: Some(Summariser {
                client: &self.gateway.client,
                destination: &self.destination,
                calls: &self.calls,
            }),
        }
    }

    /// Whether the request was made to offer the model the tool that reads what was left out of results: no call of it is
    /// the client's.
    pub(crate) fn offers_reading(&self) -> bool {
        self.changed.offers_reading
    }

    /// Lets an answer pass as it comes, `ending` so as far as Endmark is concerned: its call is over when it ends.
    pub(crate) fn pass_unread(&mut self, body: AnyBody, ending: Ending) -> AnyBody {
        self.calls.watch.end(Ended::Unread);
        let body = unbroken(body, self.gateway.settings.limits.idle);
        match self.call.take() {
            Some(call) => call.follow(body, ending, None),
            None => body,
        }
    }

    /// The same for an answer that nothing is done for: it is only heard what it says of its tokens.
    pub(crate) fn pass_heard(&mut self, head: &HeaderMap, body: AnyBody) -> AnyBody {
        self.calls.watch.end(Ended::Unread);
        let limits = &self.gateway.settings.limits;
        let body = unbroken(body, limits.idle);
        let Some(call) = self.call.take() else { return body };
        let holding = self.gateway.held.part(limits.held_bytes);
        let listener = Listener::new(self.request.clone(), head, limits.reply_bytes, holding);
        call.follow(body, Ending::Clean, Some(listener))
    }

    /// The schema of the arguments of this tool, if it has one.
    pub(crate) fn tool_schema(&self, name: &str) -> Option<Schema> {
        self.tool_schemas.of(&self.request, name)
    }

    /// What recovery has to know of it.
    pub(crate) fn case(&self) -> Case<'_> {
        let gateway = &*self.gateway;
        Case {
            id: &self.id,
            task_id: &self.task_id,
            turn_number: self.turn_number,
            mode: self.mode(),
            sets_limit: self.sets_limit(),
            is_closing: self.is_closing,
            withdrawn: self.offers_reading().then_some(READ_TOOL.name),
            request: &self.request,
            destination: &self.destination,
            fallback: self.fallback.as_ref(),
            sender: Sender {
                client: &gateway.client,
                standing: &gateway.standing,
                rehearsal: &self.rehearsal,
            },
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

    /// What is done for its reply: nothing where another Endmark answers, which does that itself.
    pub(crate) fn mode(&self) -> Mode {
        if self.destination.upstream.endmark { Mode::Off } else { self.mode }
    }

    /// How long it takes so far.
    pub(crate) fn took(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.gateway.settings.limits.total.saturating_sub(left)
    }

    /// The name of the upstream that answers.
    pub(crate) fn upstream_name(&self) -> &str {
        &self.destination.upstream.name
    }

    /// Whether the client itself limited its reply. Where every request has to name a limit, one from a certain height
    /// on is none of the client's own.
    pub(crate) fn sets_limit(&self) -> bool {
        let cap = self.gateway.settings.resume.treat_limit_as_cap;
        let is_cap = |limit: u64| self.request.format().facts().limit_is_required && limit >= cap;
        self.request.view().limit.is_some_and(|limit| !is_cap(limit))
    }

    /// The output tokens after which a single reply must have been cut, however it says it ended.
    pub(crate) fn limit_of_one_reply(&self) -> Option<u64> {
        // With several choices the reported count is their sum and says nothing about one.
        let view = self.request.view();
        if view.choices == 1 { view.limit } else { None }
    }
}
