//! The ways to request the rest of a reply.

use endmark_recovery::{AskFailure, AskedFrom, CutKind, Join, Reply, RequestedReply, ResumeAsk};
use endmark_wire::ask::{Ask, ContinuationRequest, Terms, ToolPrefill};

use super::super::capabilities::PrefillCapability;
use super::super::expected_answer::ExpectedAnswer;
use super::super::suspect::has_invented_arguments;
use super::presentation::{expect_text, expected_answer};
use super::refusal::RefusalTerm;
use super::{Asker, NATIVE_STRATEGY, REPEAT_STRATEGY, RESTART_STRATEGY, StepFailure, unsupported_request};
use crate::reply::Flow;

impl Asker<'_> {
    /// Requests the complete reply again, with a higher limit. Used if there is nothing to continue, or if no
    /// continuation could be joined.
    pub(super) async fn repeat(
        &mut self,
        ask: &ResumeAsk,
        flow: &mut Flow<'_>,
    ) -> Result<(Reply, Join), StepFailure> {
        let request = self.site.request.clone();
        let view = request.view();
        self.note_strategy(if ask.wanted == RequestedReply::Restart {
            RESTART_STRATEGY
        } else {
            REPEAT_STRATEGY
        });
        let limit = self.reserve_restart_limit()?;
        // Send exactly the original bytes if the stream was lost and its limit was high enough. Do the same
        // if the upstream rejects a limit that the client did not set.
        let is_lost = ask.kind == CutKind::Dropped && view.stream;
        let is_unlimited = self.refused_features.limit && view.limit.is_none();
        let is_bounded = view.limit.is_none_or(|own| own <= limit);
        let (body, stream, limit_in_request) =
            if view.choices == 1 && ((is_lost && is_bounded) || is_unlimited) {
                self.account.limit_sent = view.limit;
                let asking = if self.requests_usage { request.with_usage_request() } else { None };
                (asking.unwrap_or_else(|| request.body().to_vec()), view.stream, view.limit)
            } else {
                let terms = self.terms(limit, flow.is_live());
                let outgoing = request.continuation(&Ask::Again, terms).ok_or_else(unsupported_request)?;
                (outgoing.body, terms.stream, Some(limit))
            };
        let calls_so_far = self.later_calls.take();
        // The complete reply is requested, so a cut tool call is expected at its original position.
        let expected = expected_answer(self.suspect, "", ask, None);
        let mut continuation = self.make_call((body, stream), limit, &expected, flow).await?;
        // A restart replaces only this part, and keeps all other parts of the reply.
        self.repeated_body = continuation.body.take().filter(|_| ask.wanted != RequestedReply::Restart);
        let mut reply = self.convert_reply(continuation, limit_in_request);
        if self.is_call() && has_invented_arguments(&reply, self.suspect.schema.as_ref()) {
            reply.text.clear();
        }
        if ask.wanted == RequestedReply::Restart && reply.text.trim().is_empty() {
            // The cut reply began with text, so the tool calls of a reply without text do not belong to it.
            self.later_calls = calls_so_far;
        }
        Ok((reply, Join::Exact))
    }

    /// Continues with the provider's own token. Returns `None` if there is no token, or if the provider rejects it.
    pub(super) async fn continue_by_token(
        &mut self,
        ask: &ResumeAsk,
        received_bytes: usize,
        wanted: u64,
        flow: &mut Flow<'_>,
    ) -> Result<Option<(Reply, Join)>, StepFailure> {
        let Some(further) = self.continuation_token.take().filter(|_| !self.is_call()) else {
            return Ok(None);
        };
        let limit = self.reserve_limit(wanted)?;
        // For a continuation token, the upstream counts the preceding tokens towards the limit.
        let before = self.account.total().unwrap_or_default().completion;
        let terms = Terms { limit: limit.saturating_add(before), ..self.terms(limit, flow.is_live()) };
        let outgoing = self.site.request.continuation(&Ask::Native { token: &further.token }, terms);
        let Some(outgoing) = outgoing else { return Ok(None) };
        // The response repeats the text after the token's position.
        let behind = ask.so_far.len().saturating_sub(received_bytes.saturating_sub(further.text));
        let Some(echo) = ask.so_far.get(behind..) else { return Ok(None) };
        self.note_strategy(NATIVE_STRATEGY);
        let expected = ExpectedAnswer { is_exact: true, ..expected_answer(self.suspect, echo, ask, None) };
        match self.make_call((outgoing.body, terms.stream), limit, &expected, flow).await {
            Ok(continuation) => {
                let exact = continuation.has_echo || echo.is_empty();
                let join = if exact { Join::Exact } else { Join::Stitched(AskedFrom::Unknown) };
                Ok(Some((self.convert_reply(continuation, Some(limit)), join)))
            }
            // Try another strategy.
            Err(StepFailure::Failed(AskFailure::Rejected(_) | AskFailure::Final(_)))
                if !self.refused_features.refuses_all_requests =>
            {
                self.strategies.pop();
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Asks the model to continue its own unfinished message.
    pub(super) async fn continue_by_prefill(
        &mut self,
        ask: &ResumeAsk,
        outgoing: ContinuationRequest,
        tool: ToolPrefill,
        limit: u64,
        flow: &mut Flow<'_>,
    ) -> Result<(Reply, Join), StepFailure> {
        let stream = flow.is_live();
        let join = match self.capability {
            PrefillCapability::Continues => Join::InMessage,
            PrefillCapability::EchoesPrefill | PrefillCapability::None | PrefillCapability::Unknown => {
                Join::Shown
            }
        };
        let shown = ask.so_far.len().saturating_sub(outgoing.unshown_bytes);
        let (shown, unshown) = ask.so_far.split_at_checked(shown).unwrap_or((&ask.so_far, ""));
        // The model must first repeat the white space that was not shown. Forward nothing before that is
        // certain.
        let mut expected = expected_answer(self.suspect, shown, ask, Some(join));
        expected.is_held_back = !unshown.is_empty();
        if tool == ToolPrefill::Hermes {
            // The tool call was sent as text. A server that does not recognise it as a call also responds
            // with text.
            expected = expect_text(expected);
        }
        let mut continuation = self.make_call((outgoing.body, stream), limit, &expected, flow).await?;
        if !unshown.is_empty() {
            match continuation.text.strip_prefix(unshown) {
                Some(rest) => continuation.text = rest.to_owned(),
                None if self.has_only_calls(&continuation) => {}
                None => {
                    // The model did not continue at the cut, so there is nothing to join.
                    self.refused_features.prefill = Some(RefusalTerm::Permanent);
                    let why = "the model did not continue after its own white space";
                    return Err(StepFailure::Failed(AskFailure::Unfit(why.to_owned())));
                }
            }
        }
        let join = self.prefill_join(&continuation).await;
        Ok((self.convert_reply(continuation, Some(limit)), join))
    }
}
