//! Requests the rest of a cut part. It uses a prefill if the upstream can continue an unfinished message, and
//! an additional user turn otherwise (PC-3).

mod prefill;
mod presentation;
mod refusal;
mod strategies;
mod token_limits;

use bytes::Bytes;
use endmark_recovery::stitch::ReasoningSigns;
use endmark_recovery::{
    AskFailure, CorrectionRequest, CutKind, Ending, Join, PromptExcerpt, Reply, RequestedReply, ResumeAsk,
    Stop, Strategy,
};
use endmark_store::Purpose;
use endmark_wire::ask::{Ask, Terms, ToolPrefill};
use endmark_wire::reply::{Continuation as Further, ToolCall};

use super::account::TokenAccount;
use super::bound::RecoveryBound;
use super::call::CallFailure;
use super::capabilities::PrefillCapability;
use super::case::RecoveryCase;
use super::continuation::{Continuation, make_call};
use super::expected_answer::{ExpectedAnswer, is_same_value};
use super::rest_upstream::RestUpstream;
use super::stream_usage::{StreamUsage, names_usage_field};
use super::suspect::{LaterCalls, Suspect};
use crate::reply::ReplyPart;
use crate::reply::{ClientGone, Flow};
pub(super) use token_limits::has_room_to_restart;

use presentation::{call_so_far, expect_text, expected_answer, expected_call, partial_message, tool_prefill};
use refusal::{RefusalTerm, RefusedFeatures, is_about_the_limit, is_about_the_prefill, refusal_duration};

/// The strategy in the log: continue the unfinished message.
const PREFILL_STRATEGY: &str = "prefill";

/// The strategy in the log: continue with the provider's own continuation token.
const NATIVE_STRATEGY: &str = "native";

/// The strategy in the log: use a tool call from an earlier response.
const EARLIER_CALL_STRATEGY: &str = "earlier_answer";

/// The strategy in the log: request the complete reply again, because nothing had arrived.
const REPEAT_STRATEGY: &str = "again";
/// The strategy in the log: request the complete reply again, because no continuation could be joined.
const RESTART_STRATEGY: &str = "restart";

/// Requests the rest of one part.
// Fields: the state of the loop that makes the calls for one part.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the calls")]
pub(super) struct Asker<'a> {
    case: &'a RecoveryCase<'a>,
    site: RestUpstream<'a>,
    suspect: &'a Suspect,
    account: &'a mut TokenAccount,
    /// The kind of cut that the next call should repair.
    kind: CutKind,
    /// The first bound that ended or prevented a call.
    pub(super) bound: Option<RecoveryBound>,
    is_streamed: bool,
    /// How a cut tool call is presented to the upstream.
    tool_prefill: ToolPrefill,
    capability: PrefillCapability,
    /// Whether to request the usage of streams. This is set only if the upstream is known to accept such a
    /// request.
    requests_usage: bool,
    /// Features that the upstream has refused for this reply.
    refused_features: RefusedFeatures,
    /// The provider's own continuation token for the last response.
    continuation_token: Option<Further>,
    /// Whether joining the last response will show how the upstream handles a prefill.
    must_learn: bool,
    /// The strategy of each call, including failed ones.
    pub(super) strategies: Vec<String>,
    /// The other upstream, if it was called.
    pub(super) other_upstream: Option<String>,
    pub(super) later_calls: Option<LaterCalls>,
    /// An unused tool call from an earlier response.
    offered_calls: Option<LaterCalls>,
    /// Whether the last response shows that the model wants no more tool calls, because the model ended it
    /// below the limit.
    model_ended_reply: bool,
    /// The provider's signature for the text of the last response.
    signature: Option<String>,
    /// The tool call in the last response that replaces the cut one.
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
    /// Creates the state for a part. Continuations are streamed if `is_streamed` is set.
    pub(super) async fn new(
        case: &'a RecoveryCase<'a>,
        suspect: &'a Suspect,
        account: &'a mut TokenAccount,
        is_streamed: bool,
    ) -> Self {
        let mut asker = Self {
            case,
            site: RestUpstream::new(case),
            suspect,
            account,
            kind: CutKind::Format,
            bound: None,
            is_streamed,
            tool_prefill: ToolPrefill::Calls,
            capability: PrefillCapability::Unknown,
            requests_usage: true,
            refused_features: RefusedFeatures::default(),
            continuation_token: suspect.continuation.clone(),
            must_learn: false,
            strategies: Vec::new(),
            other_upstream: None,
            later_calls: None,
            offered_calls: suspect.offered_calls.clone(),
            model_ended_reply: false,
            signature: None,
            answered_call: None,
            sequence: None,
            repeated_body: None,
        };
        let is_down = case.sender.upstream_health.is_down(asker.site.name());
        if asker.site.note_ending(suspect.reply.ending) || is_down {
            asker.switch_upstream().await;
        }
        asker.load_capabilities().await;
        asker
    }

    /// Switches to the other upstream, and discards the knowledge about the first one. Returns `false` if
    /// there is no other upstream.
    async fn switch_upstream(&mut self) -> bool {
        let left = self.site.switch();
        if left {
            tracing::info!(
                request = self.case.id,
                to = self.site.name(),
                "the rest is requested from the fallback"
            );
            (self.refused_features, self.must_learn) = (RefusedFeatures::default(), false);
            // A continuation token is valid only for the upstream that issued it.
            self.continuation_token = None;
            self.load_capabilities().await;
        }
        left
    }

    async fn load_capabilities(&mut self) {
        let subject = self.capability_key();
        self.capability = self.case.capabilities.get_or_load(self.case, self.site.name(), &subject).await;
        self.requests_usage = self.accepts_usage_field().await;
    }

    async fn accepts_usage_field(&self) -> bool {
        let request = &self.site.request;
        let is_needless = !self.is_streamed || request.format().facts().always_reports_usage;
        let source = self.case.usage_source(self.site.name(), &request.view().model);
        is_needless || source.load().await != StreamUsage::Refused
    }

    fn terms(&self, limit: u64, stream: bool) -> Terms {
        // Request usage even if the client did not, because the usage of every call counts.
        Terms { limit, stream, include_usage: stream && self.requests_usage }
    }

    fn uses_prefill(&self) -> bool {
        self.strategies.last().is_some_and(|strategy| strategy.starts_with(PREFILL_STRATEGY))
    }

    /// Records the strategy of the next call, and its upstream if that is not the first one.
    fn note_strategy(&mut self, strategy: &str) {
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
                    if self.site.note_ending(reply.ending) {
                        self.switch_upstream().await;
                    }
                    return Ok((reply, join));
                }
                Err(StepFailure::Failed(AskFailure::Lost(_) | AskFailure::Final(_)))
                    if self.switch_upstream().await => {}
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
        if let Some(answered) = self.take_earlier_call(ask) {
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
        let partial = partial_message(self.suspect, rest, call.as_ref());
        let terms = self.terms(limit, flow.is_live());
        let free_text = matches!(&self.suspect.slot.part, ReplyPart::ToolCall(call) if call.free_text);
        let tool = tool_prefill(rest);
        if self.is_call() && self.tool_prefill != tool {
            // An upstream that rejects one form may accept the other.
            (self.tool_prefill, self.refused_features.prefill) = (tool, None);
            self.load_capabilities().await;
        }
        // No known server continues the input of a custom tool.
        let prefill = self.prefill_variant().filter(|_| !free_text).and_then(|variant| {
            request.continuation(&Ask::Prefill { so_far: partial, variant, tool }, terms)
        });
        if let Some(outgoing) = prefill {
            self.note_strategy(PREFILL_STRATEGY);
            return self.continue_by_prefill(ask, outgoing, tool, limit, flow).await;
        }
        if !self.case.settings.resume.strategies.has(Strategy::Prompt) {
            let why = "[resume] strategies contains no other strategy";
            return Err(StepFailure::Failed(AskFailure::Final(why.to_owned())));
        }
        self.note_strategy("user_turn");
        // Show less than was received. The response then overlaps with the received text, which proves where
        // it continues.
        let shown = ask.so_far.get(..ask.shown.length).unwrap_or(&ask.so_far);
        let shown = shown.strip_prefix(prefilled).unwrap_or(shown);
        let call = call_so_far(self.suspect, shown);
        let so_far = presentation::partial_message(self.suspect, shown, call.as_ref());
        let outgoing = request.continuation(&Ask::Prompt { so_far, prompt: &ask.prompt }, terms);
        let outgoing = outgoing.ok_or_else(unsupported_request)?;
        let expected = expect_text(expected_answer(self.suspect, "", ask, Some(Join::Prompted)));
        let continuation = self.make_call((outgoing.body, terms.stream), limit, &expected, flow).await?;
        if self.refused_features.prefill == Some(RefusalTerm::Permanent)
            && self.capability == PrefillCapability::Unknown
        {
            // The upstream accepted the request in another form, so it rejected the first form because of the
            // prefill.
            self.note_capability(PrefillCapability::None).await;
        }
        let is_lone_call = continuation.is_lone_call;
        let reply = self.convert_reply(continuation, Some(limit));
        // Only this tool call was requested, so the response does not show whether other calls follow.
        self.model_ended_reply &= !is_lone_call;
        Ok((reply, Join::Prompted))
    }

    /// Returns a tool call from an earlier response, which saves a request. Returns `None` if there is no
    /// such tool call.
    fn take_earlier_call(&mut self, ask: &ResumeAsk) -> Option<(Reply, Join)> {
        let LaterCalls { mut calls, ending, stop, .. } = self.offered_calls.take()?;
        let calls_after = calls.split_off(1);
        let call = calls.pop()?;
        self.note_strategy(EARLIER_CALL_STRATEGY);
        let reply = Reply {
            text: call.arguments.clone(),
            ending,
            stop,
            output_tokens: None,
            limit: None,
            reasoned: false,
        };
        self.model_ended_reply = is_ended_by_model(&reply);
        self.answered_call = Some(call);
        let reply = self.split_calls(calls_after, reply, false);
        let join = if ask.so_far.is_empty() { Join::Exact } else { Join::Prompted };
        Some((reply, join))
    }

    /// Requests the same content in the required format.
    pub(super) async fn correct(
        &mut self,
        ask: &CorrectionRequest,
        flow: &mut Flow<'_>,
    ) -> Result<Reply, StepFailure> {
        let request = self.site.request.clone();
        let at_least = self.case.settings.resume.continuation_tokens;
        self.note_strategy("correction");
        self.kind = CutKind::Format;
        let limit = self.reserve_limit(request.view().limit.unwrap_or(0).max(at_least))?;
        let call = call_so_far(self.suspect, &ask.text);
        let wrong = partial_message(self.suspect, &ask.text, call.as_ref());
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
            known_markers: ReasoningSigns::default(),
            is_exact: false,
            is_held_back: false,
            call: expected_call(self.suspect),
        };
        let expected = expect_text(expected);
        let continuation = self.make_call((outgoing.body, false), limit, &expected, flow).await?;
        let (following, ended_itself) = (self.later_calls.take(), self.model_ended_reply);
        let reply = self.convert_reply(continuation, Some(limit));
        // The request was for another form of this part, so the response does not show which calls follow the
        // part.
        (self.later_calls, self.model_ended_reply) = (following.or(self.later_calls.take()), ended_itself);
        Ok(reply)
    }

    /// Returns the provider's signature for the `whole` part. The signature of a tool call is valid only for
    /// the exact arguments.
    pub(super) fn part_signature(&self, whole: &str) -> Option<String> {
        if !self.is_call() {
            return self.signature.clone();
        }
        self.answered_call.as_ref().filter(|call| is_same_value(&call.arguments, whole))?.signature.clone()
    }

    /// Records which bound ended a call. The first such bound ends the recovery.
    fn note_bound(&mut self, bound: RecoveryBound) {
        self.bound.get_or_insert(bound);
    }

    fn is_call(&self) -> bool {
        matches!(self.suspect.slot.part, ReplyPart::ToolCall(_))
    }

    async fn make_call(
        &mut self,
        request: (Vec<u8>, bool),
        limit: u64,
        expected: &ExpectedAnswer<'_>,
        flow: &mut Flow<'_>,
    ) -> Result<Continuation, StepFailure> {
        let patience = &mut self.account.retry_waits;
        match make_call(self.case, &self.site, request, expected, patience, flow).await {
            Ok(continuation) => {
                let is_time_over = continuation.ending == Ending::OverCap
                    && self.account.retry_waits.time_for_call().is_zero();
                match () {
                    () if continuation.is_looping => self.note_bound(RecoveryBound::Repetition),
                    () if is_time_over => self.note_bound(self.account.time_bound()),
                    () => {}
                }
                let at_most = continuation.max_tokens.map_or(limit, |tokens| tokens.min(limit));
                self.account.charge(continuation.spent.as_ref(), continuation.ending, at_most, self.kind);
                self.account.last_id.clone_from(&continuation.id);
                self.account.last_upstream = Some(self.site.name().to_owned());
                flow.set_answer_id(continuation.id.as_deref());
                self.continuation_token.clone_from(&continuation.resume_token);
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
                self.refused_features.refuses_all_requests |= error.is_about_the_account();
                if self.requests_usage && names_usage_field(Some(&error)) {
                    self.requests_usage = false;
                    let model = &self.site.request.view().model;
                    self.case.usage_source(self.site.name(), model).note_refusal(true).await;
                } else if is_about_the_limit(&error) && !self.refused_features.limit {
                    self.refused_features.limit = true;
                } else if self.uses_prefill() && is_about_the_prefill(status, &error) {
                    self.refused_features.prefill = Some(refusal_duration(status, &error));
                } else {
                    // Do not repeat the request, because it would be rejected again.
                    return Err(StepFailure::Failed(AskFailure::Final(why)));
                }
                Err(StepFailure::Failed(AskFailure::Rejected(why)))
            }
        }
    }

    /// Converts a response for the state machine. Tool calls after a text or after the cut tool call are kept
    /// for later, because everything before them is complete.
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
        // If the arguments arrive as text, the response does not show whether the model wants another tool
        // call.
        self.model_ended_reply = is_ended_by_model(&reply) && self.answered_call.is_some();
        self.split_calls(continuation.calls, reply, replaces_text)
    }

    /// Returns the reply without the tool calls that followed it in the response. The stop reason of the
    /// response applies to these tool calls.
    fn split_calls(&mut self, calls: Vec<ToolCall>, reply: Reply, replaces_text: bool) -> Reply {
        self.later_calls = None;
        if calls.is_empty() {
            return reply;
        }
        self.later_calls = Some(LaterCalls { calls, ending: reply.ending, stop: reply.stop, replaces_text });
        Reply { ending: Ending::Clean, stop: Some(Stop::Normal), ..reply }
    }

    /// Whether the model may have wanted more tool calls but reached its limit. Tool calls that followed in
    /// the response are judged separately.
    pub(super) fn may_lack_calls(&self) -> bool {
        may_lack_calls(self.case, self.suspect) && self.later_calls.is_none() && !self.model_ended_reply
    }

    /// Whether the tool call was taken from an earlier response.
    pub(super) fn used_earlier_response(&self) -> bool {
        self.suspect.offered_calls.is_some() && self.offered_calls.is_none()
    }
}

/// Whether tool calls may be missing after a part. This requires that the part is the last tool call, that
/// the model did not end the reply by itself, and that the request permits several tool calls.
pub(super) fn may_lack_calls(case: &RecoveryCase<'_>, suspect: &Suspect) -> bool {
    let is_legacy_call = matches!(&suspect.slot.part, ReplyPart::ToolCall(call) if call.legacy);
    let allows_more = case.request.allows_parallel_calls() || !suspect.before.received_calls().is_empty();
    let may_have_more = allows_more && !is_legacy_call;
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
    StepFailure::Failed(AskFailure::Final(
        "the request's format does not support this kind of request".to_owned(),
    ))
}
