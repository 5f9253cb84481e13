//! A request for a reply, in any format, and what is known of it from its admission on.
//!
//! Its way through the gateway is a module each: admitted, delivered, observed, judged, made whole, settled, disclosed.

mod admit;
mod beginning;
mod call_ids;
mod client;
mod deliver;
mod disclose;
mod history;
mod identity;
mod observe;
mod refused;
mod settle;
mod slot;
mod streamed;
mod sure;
mod suspects;
mod tool_schemas;
mod waiting;
mod whole;

pub(crate) use admit::admit;
pub(crate) use client::{LiveSlot, Waiter};
pub(crate) use deliver::deliver;
pub(crate) use disclose::Outcome;
pub(crate) use history::change_passing;
pub(crate) use refused::refused;
pub(crate) use slot::{Part, Slot};
pub(crate) use streamed::streamed;
pub(crate) use whole::whole;

use std::sync::Arc;
use std::time::Duration;

use endmark_core::{Ending, Format};
use endmark_store::Recorder;
use endmark_wire::request::Request;
use http::{HeaderMap, Uri};
use tokio::time::Instant;

use crate::body::{AnyBody, unbroken};
use crate::edge::Claim;
use crate::faults::Rehearsal;
use crate::gateway::Gateway;
use crate::held::Holding;
use crate::ledger::{Call, Calls, Ended};
use crate::recovery::{Schema, StorePatience};
use crate::request_body::Encoded;
use crate::settings::{Mode, Upstream};
use history::Changed;
use tool_schemas::ToolSchemas;

/// An upstream that may answer an exchange, and how it is reached.
pub(crate) struct Destination {
    pub(crate) upstream: Upstream,
    /// Where the request goes.
    pub(crate) uri: Uri,
    /// Where requests for the rest of its reply go that are to be streams, and where the others: in some formats the
    /// path says it.
    pub(crate) further: [Uri; 2],
    /// The headers they go with.
    pub(crate) headers: HeaderMap,
}

impl Destination {
    /// Where a request for the rest goes.
    pub(crate) fn further(&self, stream: bool) -> &Uri {
        &self.further[usize::from(stream)]
    }
}

/// One request for a reply, admitted.
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
    /// Further tries that were made before there was a reply.
    pub(crate) retries: u32,
    /// The request as the upstream that answers gets it.
    pub(crate) request: Request,
    /// The client's own request, while another upstream gets another.
    pub(crate) set_aside: Option<Request>,
    /// What of the client's request was changed before it went upstream.
    pub(crate) changed: Changed,
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
    pub(super) _claim: Option<Arc<Claim>>,
    /// The room that its body takes.
    pub(super) _holding: Holding,
}

impl Exchange {
    /// Lets the other upstream answer, with a model that it has; a second time undoes the first.
    pub(crate) fn let_stand_in(&mut self) {
        let Some(fallback) = &mut self.fallback else { return };
        std::mem::swap(fallback, &mut self.destination);
        self.stands_in = !self.stands_in;
        if self.stands_in {
            let request = self.request_for(&self.destination);
            self.set_aside = Some(std::mem::replace(&mut self.request, request));
        } else if let Some(own) = self.set_aside.take() {
            self.request = own;
        }
    }

    /// The request as the other upstream takes it: the client's own, or one for a model that it has.
    pub(crate) fn request_for(&self, other: &Destination) -> Request {
        if let Some(own) = &self.set_aside {
            return own.clone();
        }
        // One that no path can be made for has no fallback.
        self.request.elsewhere(other.upstream.model.as_deref()).unwrap_or_else(|| self.request.clone())
    }

    /// Lets an answer pass as it comes, `ending` so as far as Endmark is concerned: its call is over when it ends.
    pub(crate) fn pass_unread(&mut self, body: AnyBody, ending: Ending) -> AnyBody {
        self.calls.watch.end(Ended::Unread);
        let body = unbroken(body, self.gateway.settings.limits.idle);
        match self.call.take() {
            Some(call) => call.follow(body, ending),
            None => body,
        }
    }

    /// The schema of the arguments of this tool, if it has one.
    pub(crate) fn tool_schema(&self, name: &str) -> Option<Schema> {
        self.tool_schemas.of(&self.request, name)
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
        let is_cap = |limit: u64| self.request.format().limit_is_required() && limit >= cap;
        self.request.view().limit.is_some_and(|limit| !is_cap(limit))
    }

    /// The output tokens after which a single reply must have been cut, however it says it ended.
    pub(crate) fn limit_of_one_reply(&self) -> Option<u64> {
        // With several choices the reported count is their sum and says nothing about one.
        let view = self.request.view();
        if view.choices == 1 { view.limit } else { None }
    }
}
