//! Requests the rest of a cut part: by prefill if the upstream can continue an unfinished message, or else in an
//! additional user turn (PC-3).

mod prefill;
mod refusal;
mod room;
mod showing;

use bytes::Bytes;
use endmark_recovery::stitch::ReasoningSigns;
use endmark_recovery::{
    AskFailure, AskedFrom, CorrectionAsk, CutKind, Ending, Join, PromptExcerpt, Reply, RequestedReply,
    ResumeAsk, Stop, Strategy,
};
use endmark_store::Purpose;
use endmark_wire::ask::{Ask, ContinuationRequest, Terms, ToolPrefill};
use endmark_wire::reply::{Continuation as Further, ToolCall};

use super::account::Account;
use super::bound::Bound;
use super::call::CallFailure;
use super::capabilities::Capability;
use super::case::Case;
use super::continuation::{Continuation, call};
use super::expected::{ExpectedAnswer, is_same_value};
use super::site::Site;
use super::stream_usage::{StreamUsage, names_usage_field};
use super::suspect::{LaterCalls, Suspect, has_made_up_arguments};
use crate::reply::Part;
use crate::reply::{ClientGone, Flow};
pub(super) use room::has_room_to_restart;

use refusal::{RefusalTerm, RefusedFeature, is_about_the_limit, is_about_the_prefill, refusal_duration};
use showing::{call_so_far, expect_text, expected_answer, expected_call, partial, tool_prefill};

/// The strategy in the log: continue the unfinished message.
const PREFILL: &str = "prefill";

/// The strategy in the log: continue with the provider's own continuation token.
const NATIVE: &str = "native";

/// The strategy in the log: use a call from an earlier response.
const OFFERED: &str = "earlier_answer";

/// The strategies in the log: request the complete reply again, because nothing had arrived, or because no
/// continuation could be joined.
const AGAIN: &str = "again";
const RESTART: &str = "restart";

/// Requests the rest of one part.
// Fields: the state of the loop that makes the calls for one part.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the calls")]
pub(super) struct Asker<'a> {
    case: &'a Case<'a>,
    site: Site<'a>,
    suspect: &'a Suspect,
    account: &'a mut Account,
    /// The kind of cut that the next call is for.
    kind: CutKind,
    /// The first bound that ended or prevented a call.
    pub(super) bound: Option<Bound>,
    live: bool,
    /// How a cut tool call is presented to the upstream.
    tool_prefill: ToolPrefill,
    capability: Capability,
    /// Whether to request the usage of streams. The upstream is known to accept that.
    asks_usage: bool,
    /// Features that the upstream has refused for this reply.
    refused: RefusedFeature,
    /// The provider's own continuation token for the last response.
    native: Option<Further>,
    /// Whether joining the last response will show how the upstream handles a prefill.
    must_learn: bool,
    /// The strategy of each call, including failed ones.
    pub(super) strategies: Vec<String>,
    /// The other upstream, if it was called.
    pub(super) other_upstream: Option<String>,
    pub(super) following: Option<LaterCalls>,
    /// A call from an earlier response that was not used yet.
    offered_calls: Option<LaterCalls>,
    /// Whether the model wants no more calls, according to the last response: it had room for more, and ended by
    /// itself.
    ended_itself: bool,
    /// The provider's signature for the text of the last response.
    signature: Option<String>,
    /// The call in the last response that replaces the cut one.
    answered_call: Option<ToolCall>,
    /// The client's stop sequence that ended the last response.
    pub(super) sequence: Option<String>,
    /// The response to the last repeated request, if that response is whole.
    pub(super) repeated_body: Option<Bytes>,
}

/// The reason why a step returned no reply.
pub(super) enum StepFailure {
    /// The call failed. The state machine decides what to do next.
    Failed(AskFailure),
    /// The client has disconnected.
    ClientGone,
}

impl From<ClientGone> for StepFailure {
    fn from(_: ClientGone) -> Self {
        Self::ClientGone
    }
}

impl<'a> Asker<'a> {
    /// Creates the state for a part. Continuations are streamed if `live` is set.
    pub(super) async fn new(
        case: &'a Case<'a>,
        suspect: &'a Suspect,
        account: &'a mut Account,
        live: bool,
    ) -> Self {
        let mut asker = Self {
            case,
            site: Site::new(case),
            suspect,
            account,
            kind: CutKind::Format,
            bound: None,
            live,
            tool_prefill: ToolPrefill::Calls,
            capability: Capability::Unknown,
            asks_usage: true,
            refused: RefusedFeature::default(),
            native: suspect.continuation.clone(),
            must_learn: false,
            strategies: Vec::new(),
            other_upstream: None,
            following: None,
            offered_calls: suspect.offered_calls.clone(),
            ended_itself: false,
            signature: None,
            answered_call: None,
            sequence: None,
            repeated_body: None,
        };
        let is_down = case.sender.upstream_health.is_down(asker.site.name());
        if asker.site.leaves_after(suspect.reply.ending) || is_down {
            asker.leave().await;
        }
        asker.prepare().await;
        asker
    }

    /// Switches to the other upstream, and discards the knowledge about the first one.
    async fn leave(&mut self) -> bool {
        let left = self.site.leave();
        if left {
            tracing::info!(request = self.case.id, to = self.site.name(), "the rest is asked for elsewhere");
            (self.refused, self.must_learn) = (RefusedFeature::default(), false);
            // A continuation token is valid only for the upstream that issued it.
            self.native = None;
            self.prepare().await;
        }
        left
    }

    async fn prepare(&mut self) {
        let subject = self.subject();
        self.capability = self.case.capabilities.get_or_load(self.case, self.site.name(), &subject).await;
        self.asks_usage = self.takes_usage_field().await;
    }

    async fn takes_usage_field(&self) -> bool {
        let request = &self.site.request;
        let is_needless = !self.live || request.format().facts().reports_usage_unasked;
        let source = self.case.usage_source(self.site.name(), &request.view().model);
        is_needless || source.load().await != StreamUsage::Refused
    }

    fn terms(&self, limit: u64, stream: bool) -> Terms {
        // Request usage even if the client did not, because the usage of every call counts.
        Terms { limit, stream, include_usage: stream && self.asks_usage }
    }

    fn uses_prefill(&self) -> bool {
        self.strategies.last().is_some_and(|strategy| strategy.starts_with(PREFILL))
    }

    /// Records the strategy of the next call, and its upstream if that is not the first one.
    fn note(&mut self, strategy: &str) {
        if self.site.is_fallback() {
            self.other_upstream = Some(self.site.name().to_owned());
            self.strategies.push(format!("{strategy}@{}", self.site.name()));
        } else {
            self.strategies.push(strategy.to_owned());
        }
    }

    /// Requests the rest of the text in `ask`, first from the original upstream and then from the fallback.
    pub(super) async fn resume(
        &mut self,
        ask: &ResumeAsk,
        flow: &mut Flow<'_>,
    ) -> Result<(Reply, Join), StepFailure> {
        self.kind = ask.kind;
        loop {
            match self.resume_at(ask, flow).await {
                Ok((reply, join)) => {
                    if self.site.leaves_after(reply.ending) {
                        self.leave().await;
                    }
                    return Ok((reply, join));
                }
                Err(StepFailure::Failed(AskFailure::Lost(_) | AskFailure::Final(_)))
                    if self.leave().await => {}
                // The capabilities of the first upstream do not apply to the other one, so determine them again.
                Err(StepFailure::Failed(AskFailure::Rejected(_))) if self.site.is_fallback() => {}
                other => return other,
            }
            self.strategies.pop();
        }
    }

    async fn resume_at(
        &mut self,
        ask: &ResumeAsk,
        flow: &mut Flow<'_>,
    ) -> Result<(Reply, Join), StepFailure> {
        if let Some(answered) = self.take_from_earlier(ask) {
            return Ok(answered);
        }
        if ask.wanted != RequestedReply::Rest || ask.so_far.is_empty() {
            return self.repeat(ask, flow).await;
        }
        let request = self.site.request.clone();
        let view = request.view();
        let at_least = self.case.settings.resume.continuation_tokens;
        let wanted = self.requestable_limit(view.limit.unwrap_or(0).max(at_least));
        let prefilled = view.prefill.as_deref().unwrap_or("");
        let rest = ask.so_far.strip_prefix(prefilled).unwrap_or(&ask.so_far);
        if let Some(answered) = self.continue_by_token(ask, rest.len(), wanted, flow).await? {
            return Ok(answered);
        }
        let limit = self.reserve_limit(wanted)?;
        let call = call_so_far(self.suspect, rest);
        let partial = partial(self.suspect, rest, call.as_ref());
        let terms = self.terms(limit, flow.is_live());
        let free_text = matches!(&self.suspect.slot.part, Part::ToolCall(call) if call.free_text);
        let tool = tool_prefill(rest);
        if self.is_call() && self.tool_prefill != tool {
            // An upstream that rejects one form may accept the other.
            (self.tool_prefill, self.refused.prefill) = (tool, None);
            self.prepare().await;
        }
        // No known server continues the input of a custom tool.
        let prefill = self.prefill().filter(|_| !free_text).and_then(|variant| {
            request.continuation(&Ask::Prefill { so_far: partial, variant, tool }, terms)
        });
        if let Some(outgoing) = prefill {
            self.note(PREFILL);
            return self.continue_by_prefill(ask, outgoing, tool, limit, flow).await;
        }
        if !self.case.settings.resume.strategies.has(Strategy::Prompt) {
            let why = "no other way to ask for the rest is in [resume] strategies";
            return Err(StepFailure::Failed(AskFailure::Final(why.to_owned())));
        }
        self.note("user_turn");
        // Show less than was received. The overlap at the beginning of the response proves where it continues.
        let shown = ask.so_far.get(..ask.shown.length).unwrap_or(&ask.so_far);
        let shown = shown.strip_prefix(prefilled).unwrap_or(shown);
        let call = call_so_far(self.suspect, shown);
        let so_far = showing::partial(self.suspect, shown, call.as_ref());
        let outgoing = request.continuation(&Ask::Prompt { so_far, prompt: &ask.prompt }, terms);
        let outgoing = outgoing.ok_or_else(unsupported_request)?;
        let expected = expect_text(expected_answer(self.suspect, "", ask, Some(Join::Prompted)));
        let continuation = self.call((outgoing.body, terms.stream), limit, &expected, flow).await?;
        if self.refused.prefill == Some(RefusalTerm::Permanent) && self.capability == Capability::Unknown {
            // The upstream accepted the same request in another form, so the prefill was the reason for the rejection.
            self.note_capability(Capability::None).await;
        }
        let is_lone_call = continuation.is_lone_call;
        let reply = self.convert_reply(continuation, Some(limit));
        // The request was for this call alone, so the response does not show whether other calls follow.
        self.ended_itself &= !is_lone_call;
        Ok((reply, Join::Prompted))
    }

    /// Returns a call from an earlier response, which costs no request. Returns `None` if there is no such call.
    fn take_from_earlier(&mut self, ask: &ResumeAsk) -> Option<(Reply, Join)> {
        let LaterCalls { mut calls, ending, stop, .. } = self.offered_calls.take()?;
        let behind = calls.split_off(1);
        let call = calls.pop()?;
        self.note(OFFERED);
        let reply = Reply {
            text: call.arguments.clone(),
            ending,
            stop,
            output_tokens: None,
            limit: None,
            reasoned: false,
        };
        self.ended_itself = is_ended_by_model(&reply);
        self.answered_call = Some(call);
        let reply = self.split_calls(behind, reply, false);
        let join = if ask.so_far.is_empty() { Join::Exact } else { Join::Prompted };
        Some((reply, join))
    }

    /// Requests the complete reply, because there is nothing to continue or no continuation could be joined. The same
    /// request with a higher limit is the only remedy.
    async fn repeat(&mut self, ask: &ResumeAsk, flow: &mut Flow<'_>) -> Result<(Reply, Join), StepFailure> {
        let request = self.site.request.clone();
        let view = request.view();
        self.note(if ask.wanted == RequestedReply::Restart { RESTART } else { AGAIN });
        let limit = self.reserve_more_room()?;
        // Repeat the same bytes if the stream was lost and its limit was high enough, or if the upstream rejects a
        // limit and the client had set none.
        let is_lost = ask.kind == CutKind::Dropped && view.stream;
        let is_unlimited = self.refused.limit && view.limit.is_none();
        let is_bounded = view.limit.is_none_or(|own| own <= limit);
        let (body, stream, carried) = if view.choices == 1 && ((is_lost && is_bounded) || is_unlimited) {
            self.account.limit_sent = view.limit;
            let asking = if self.asks_usage { request.with_usage_request() } else { None };
            (asking.unwrap_or_else(|| request.body().to_vec()), view.stream, view.limit)
        } else {
            let terms = self.terms(limit, flow.is_live());
            let outgoing = request.continuation(&Ask::Again, terms).ok_or_else(unsupported_request)?;
            (outgoing.body, terms.stream, Some(limit))
        };
        let calls_so_far = self.following.take();
        // The complete reply is requested, so a cut call is expected at its original position.
        let expected = expected_answer(self.suspect, "", ask, None);
        let mut continuation = self.call((body, stream), limit, &expected, flow).await?;
        // If the client already has the beginning of a reply, its other parts do not change.
        self.repeated_body = continuation.body.take().filter(|_| ask.wanted != RequestedReply::Restart);
        let mut reply = self.convert_reply(continuation, carried);
        if self.is_call() && has_made_up_arguments(&reply, self.suspect.schema.as_ref()) {
            reply.text.clear();
        }
        if ask.wanted == RequestedReply::Restart && reply.text.trim().is_empty() {
            // A reply that contains only calls differs from one that began with text.
            self.following = calls_so_far;
        }
        Ok((reply, Join::Exact))
    }

    /// Continues with the provider's own token. Returns `None` if there is no token, or if the provider rejects it.
    async fn continue_by_token(
        &mut self,
        ask: &ResumeAsk,
        came: usize,
        wanted: u64,
        flow: &mut Flow<'_>,
    ) -> Result<Option<(Reply, Join)>, StepFailure> {
        let Some(further) = self.native.take().filter(|_| !self.is_call()) else { return Ok(None) };
        let limit = self.reserve_limit(wanted)?;
        // The limit of such a call includes the preceding tokens.
        let before = self.account.total().unwrap_or_default().completion;
        let terms = Terms { limit: limit.saturating_add(before), ..self.terms(limit, flow.is_live()) };
        let outgoing = self.site.request.continuation(&Ask::Native { token: &further.token }, terms);
        let Some(outgoing) = outgoing else { return Ok(None) };
        // The response repeats the text after the token's position.
        let behind = ask.so_far.len().saturating_sub(came.saturating_sub(further.text));
        let Some(echo) = ask.so_far.get(behind..) else { return Ok(None) };
        self.note(NATIVE);
        let expected = ExpectedAnswer { exact: true, ..expected_answer(self.suspect, echo, ask, None) };
        match self.call((outgoing.body, terms.stream), limit, &expected, flow).await {
            Ok(continuation) => {
                let exact = continuation.has_echo || echo.is_empty();
                let join = if exact { Join::Exact } else { Join::Stitched(AskedFrom::Unknown) };
                Ok(Some((self.convert_reply(continuation, Some(limit)), join)))
            }
            // Try another strategy.
            Err(StepFailure::Failed(AskFailure::Rejected(_) | AskFailure::Final(_)))
                if !self.refused.refuses_everyone =>
            {
                self.strategies.pop();
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Requests that the model continues its own unfinished message.
    async fn continue_by_prefill(
        &mut self,
        ask: &ResumeAsk,
        outgoing: ContinuationRequest,
        tool: ToolPrefill,
        limit: u64,
        flow: &mut Flow<'_>,
    ) -> Result<(Reply, Join), StepFailure> {
        let stream = flow.is_live();
        let join = match self.capability {
            Capability::Continues => Join::InMessage,
            Capability::EchoesPrefill | Capability::None | Capability::Unknown => Join::Shown,
        };
        let shown = ask.so_far.len().saturating_sub(outgoing.unshown_bytes);
        let (shown, unshown) = ask.so_far.split_at_checked(shown).unwrap_or((&ask.so_far, ""));
        // The model repeats text that is still held, so nothing can be forwarded before that text has arrived.
        let mut expected = expected_answer(self.suspect, shown, ask, Some(join));
        expected.closed = !unshown.is_empty();
        if tool == ToolPrefill::Hermes {
            // The call was shown as text. A server that does not recognise it as a call also responds with text.
            expected = expect_text(expected);
        }
        let mut continuation = self.call((outgoing.body, stream), limit, &expected, flow).await?;
        if !unshown.is_empty() {
            match continuation.text.strip_prefix(unshown) {
                Some(rest) => continuation.text = rest.to_owned(),
                None if self.has_only_calls(&continuation) => {}
                None => {
                    // The model did not continue at the cut, so there is nothing to join.
                    self.refused.prefill = Some(RefusalTerm::Permanent);
                    let why = "the model did not continue after its own white space";
                    return Err(StepFailure::Failed(AskFailure::Unfit(why.to_owned())));
                }
            }
        }
        let join = self.prefill_join(&continuation).await;
        Ok((self.convert_reply(continuation, Some(limit)), join))
    }

    /// Requests the same content in the required format.
    pub(super) async fn correct(
        &mut self,
        ask: &CorrectionAsk,
        flow: &mut Flow<'_>,
    ) -> Result<Reply, StepFailure> {
        let request = self.site.request.clone();
        let at_least = self.case.settings.resume.continuation_tokens;
        self.note("correction");
        self.kind = CutKind::Format;
        let limit = self.reserve_limit(request.view().limit.unwrap_or(0).max(at_least))?;
        let call = call_so_far(self.suspect, &ask.text);
        let wrong = partial(self.suspect, &ask.text, call.as_ref());
        let outgoing =
            request.continuation(&Ask::Correction { wrong, prompt: &ask.prompt }, self.terms(limit, false));
        let outgoing = outgoing.ok_or_else(unsupported_request)?;
        let expected = ExpectedAnswer {
            purpose: Purpose::Correction,
            echo: "",
            so_far: "",
            required_format: None,
            join: None,
            question: (PromptExcerpt { length: 0, quoted_from: 0 }, ""),
            known_signs: ReasoningSigns::default(),
            exact: false,
            closed: false,
            call: expected_call(self.suspect),
        };
        let expected = expect_text(expected);
        let continuation = self.call((outgoing.body, false), limit, &expected, flow).await?;
        let (following, ended_itself) = (self.following.take(), self.ended_itself);
        let reply = self.convert_reply(continuation, Some(limit));
        // The request was for another form of this part, so the response says nothing about the calls after it.
        (self.following, self.ended_itself) = (following.or(self.following.take()), ended_itself);
        Ok(reply)
    }

    /// Returns the provider's signature for the `whole` part. The signature of a call is valid only for the exact
    /// arguments.
    pub(super) fn part_signature(&self, whole: &str) -> Option<String> {
        if !self.is_call() {
            return self.signature.clone();
        }
        self.answered_call.as_ref().filter(|call| is_same_value(&call.arguments, whole))?.signature.clone()
    }

    /// Records which bound ended a call. The first such bound ends the recovery.
    fn note_bound(&mut self, bound: Bound) {
        self.bound.get_or_insert(bound);
    }

    fn is_call(&self) -> bool {
        matches!(self.suspect.slot.part, Part::ToolCall(_))
    }

    async fn call(
        &mut self,
        request: (Vec<u8>, bool),
        limit: u64,
        expected: &ExpectedAnswer<'_>,
        flow: &mut Flow<'_>,
    ) -> Result<Continuation, StepFailure> {
        let patience = &mut self.account.patience;
        match call(self.case, &self.site, request, expected, patience, flow).await {
            Ok(continuation) => {
                let is_time_over =
                    continuation.ending == Ending::OverCap && self.account.patience.call().is_zero();
                match () {
                    () if continuation.is_looping => self.note_bound(Bound::Repetition),
                    () if is_time_over => self.note_bound(self.account.time_bound()),
                    () => {}
                }
                let at_most = continuation.max_tokens.map_or(limit, |tokens| tokens.min(limit));
                self.account.charge(continuation.spent.as_ref(), continuation.ending, at_most, self.kind);
                self.account.last_id.clone_from(&continuation.id);
                self.account.last_upstream = Some(self.site.name().to_owned());
                flow.set_answer_id(continuation.id.as_deref());
                self.native.clone_from(&continuation.native);
                Ok(continuation)
            }
            Err(CallFailure::ClientGone(_)) => Err(StepFailure::ClientGone),
            Err(CallFailure::Lost(why)) => Err(StepFailure::Failed(AskFailure::Lost(why))),
            Err(CallFailure::AnswerLost(why)) => {
                self.account.note_lost_answer(limit, self.kind);
                Err(StepFailure::Failed(AskFailure::Lost(why)))
            }
            Err(error @ CallFailure::Timeout(_)) => {
                self.account.note_lost_answer(limit, self.kind);
                self.note_bound(self.account.time_bound());
                Err(StepFailure::Failed(AskFailure::Budget(error.to_string())))
            }
            Err(CallFailure::Unusable { why, spent, ending }) => {
                match spent {
                    Some(spent) => self.account.charge(Some(&spent), ending, limit, self.kind),
                    None => self.account.note_lost_answer(limit, self.kind),
                }
                Err(StepFailure::Failed(AskFailure::Unusable(why)))
            }
            Err(CallFailure::Rejected { status, error }) => {
                let why = format!("the upstream refused with {status}: {}", error.message);
                self.refused.refuses_everyone |= error.is_about_the_account();
                if self.asks_usage && names_usage_field(Some(&error)) {
                    self.asks_usage = false;
                    let model = &self.site.request.view().model;
                    self.case.usage_source(self.site.name(), model).note_refusal(true).await;
                } else if is_about_the_limit(&error) && !self.refused.limit {
                    self.refused.limit = true;
                } else if self.uses_prefill() && is_about_the_prefill(status, &error) {
                    self.refused.prefill = Some(refusal_duration(status, &error));
                } else {
                    // Do not repeat the request, because it would be rejected again.
                    return Err(StepFailure::Failed(AskFailure::Final(why)));
                }
                Err(StepFailure::Failed(AskFailure::Rejected(why)))
            }
        }
    }

    /// Converts a response for the state machine. Tool calls after a text or after the cut call are kept for later,
    /// because everything before them is complete.
    fn convert_reply(&mut self, continuation: Continuation, limit: Option<u64>) -> Reply {
        let replaces_text =
            self.has_only_calls(&continuation) && self.may_be_a_call() && !continuation.has_echo;
        (self.signature, self.sequence) = (continuation.signature, continuation.sequence);
        self.answered_call = continuation.call;
        let reply = Reply {
            text: continuation.text,
            ending: continuation.ending,
            stop: continuation.stop,
            output_tokens: continuation
                .spent
                .filter(|spent| spent.reports_output)
                .map(|spent| spent.usage.completion),
            limit,
            reasoned: continuation.has_reasoning,
        };
        // Arguments that arrive as text do not show whether the model wants to make another call.
        self.ended_itself = is_ended_by_model(&reply) && self.answered_call.is_some();
        self.split_calls(continuation.calls, reply, replaces_text)
    }

    /// Returns the reply without the calls that followed it in the response. These calls carry the stop reason.
    fn split_calls(&mut self, calls: Vec<ToolCall>, reply: Reply, replaces_text: bool) -> Reply {
        self.following = None;
        if calls.is_empty() {
            return reply;
        }
        self.following = Some(LaterCalls { calls, ending: reply.ending, stop: reply.stop, replaces_text });
        Reply { ending: Ending::Clean, stop: Some(Stop::Normal), ..reply }
    }

    /// Whether the model may have wanted further calls but had no room for them. Calls that followed in the response
    /// are judged separately.
    pub(super) fn may_lack_calls(&self) -> bool {
        may_lack_calls(self.case, self.suspect) && self.following.is_none() && !self.ended_itself
    }

    /// Whether the call was taken from an earlier response.
    pub(super) fn used_earlier_answer(&self) -> bool {
        self.suspect.offered_calls.is_some() && self.offered_calls.is_none()
    }
}

/// Whether calls may be missing after a part. This requires that the part is the last call, that the reply did not
/// end by itself, and that the request permits several calls.
pub(super) fn may_lack_calls(case: &Case<'_>, suspect: &Suspect) -> bool {
    let is_only = matches!(&suspect.slot.part, Part::ToolCall(call) if call.legacy);
    let allows_more = case.request.allows_parallel_calls() || !suspect.before.received_calls().is_empty();
    let may_have_more = allows_more && !is_only;
    suspect.is_last_call && may_have_more && !is_ended_by_model(&suspect.reply)
}

/// Whether the model ended a reply by itself. Some servers report this even if the limit was reached.
fn is_ended_by_model(reply: &Reply) -> bool {
    reply.ending == Ending::Clean
        && matches!(reply.stop, Some(Stop::Normal | Stop::Sequence))
        && !reply.is_at_limit()
}

/// Returns the failure for a format that does not support this kind of request.
fn unsupported_request() -> StepFailure {
    StepFailure::Failed(AskFailure::Final("the request's format has no way to ask so".to_owned()))
}
