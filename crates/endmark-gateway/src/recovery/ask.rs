//! How the rest of a cut part is asked for: by prefill where the upstream can go on with an unfinished
//! message, else in a user turn (PC-3).

use endmark_core::{
    AskFailure, AskedFrom, CorrectionAsk, CutKind, Ending, Join, Reply, ResumeAsk, SeamStyle, Stop,
};
use endmark_store::Purpose;
use endmark_wire::openai_chat::{Partial, PrefillVariant, ProviderError, Terms, ToolPrefill};
use http::StatusCode;

use super::account::Account;
use super::call::CallFailure;
use super::capabilities::Capability;
use super::continuation::{Continuation, call};
use super::expected::Expected;
use super::flow::{ClientGone, Flow};
use super::site::Site;
use super::suspect::{Following, Suspect};
use crate::chat::{Exchange, Part};
use crate::settings::Prefill;

/// The log's word for a call that goes on with the unfinished message itself.
const PREFILL: &str = "prefill";

/// A limit that every model takes, and most contexts have room for.
const MODEST_LIMIT: u64 = 1_024;

/// Asks for the rest of one part.
pub(super) struct Asker<'a> {
    exchange: &'a Exchange,
    site: Site<'a>,
    suspect: &'a Suspect,
    account: &'a mut Account,
    capability: Capability,
    /// The upstream refused a prefill in this very exchange.
    prefill_refused: bool,
    /// Whether the last answer will tell what the upstream does with a prefill.
    to_learn: bool,
    /// The upstream refused a limit that the client had not set.
    limit_refused: bool,
    /// How each call was asked for, whether or not it was answered.
    pub(super) strategies: Vec<String>,
    /// The other upstream, once it was asked.
    pub(super) other_upstream: Option<String>,
    pub(super) following: Option<Following>,
}

/// Why a step could not be answered.
pub(super) enum Unanswered {
    /// The machine decides how to go on.
    Failed(AskFailure),
    /// Nobody is left to answer.
    ClientGone,
}

impl From<ClientGone> for Unanswered {
    fn from(_: ClientGone) -> Self {
        Self::ClientGone
    }
}

impl<'a> Asker<'a> {
    pub(super) async fn new(exchange: &'a Exchange, suspect: &'a Suspect, account: &'a mut Account) -> Self {
        let mut asker = Self {
            exchange,
            site: Site::of(exchange),
            suspect,
            account,
            capability: Capability::Unknown,
            prefill_refused: false,
            to_learn: false,
            limit_refused: false,
            strategies: Vec::new(),
            other_upstream: None,
            following: None,
        };
        let is_down = exchange.gateway.standing.is_down(asker.site.name());
        if asker.site.is_left_after(suspect.reply.ending) || is_down {
            asker.leave().await;
        }
        asker.settle_in().await;
        asker
    }

    /// Goes to the other upstream, of which nothing is known that was found out about the first.
    async fn leave(&mut self) -> bool {
        let left = self.site.leave();
        if left {
            tracing::info!(
                request = self.exchange.id,
                to = self.site.name(),
                "the rest is asked for elsewhere"
            );
            (self.prefill_refused, self.to_learn, self.limit_refused) = (false, false, false);
            self.settle_in().await;
        }
        left
    }

    async fn settle_in(&mut self) {
        let subject = self.subject();
        self.capability = self.exchange.gateway.capabilities.of(self.site.name(), &subject).await;
    }

    fn asked_by_prefill(&self) -> bool {
        self.strategies.last().is_some_and(|strategy| strategy.starts_with(PREFILL))
    }

    /// Notes how the next call asks, and of whom if that is another upstream than the first.
    fn note(&mut self, strategy: &str) {
        if self.site.is_fallback() {
            self.other_upstream = Some(self.site.name().to_owned());
            self.strategies.push(format!("{strategy}@{}", self.site.name()));
        } else {
            self.strategies.push(strategy.to_owned());
        }
    }

    /// Asks for the rest of what `ask` says is there so far: of the upstream that began it, and where that is
    /// not able, of the one that can stand in for it.
    pub(super) async fn resume(
        &mut self,
        ask: &ResumeAsk,
        flow: &mut Flow<'_>,
    ) -> Result<(Reply, Join), Unanswered> {
        loop {
            match self.resume_here(ask, flow).await {
                Ok((reply, join)) => {
                    if self.site.is_left_after(reply.ending) {
                        self.leave().await;
                    }
                    return Ok((reply, join));
                }
                Err(Unanswered::Failed(AskFailure::Lost(_) | AskFailure::Final(_))) if self.leave().await => {
                }
                // How the other one takes a request is found out here: of that the first knows nothing.
                Err(Unanswered::Failed(AskFailure::Rejected(_))) if self.site.is_fallback() => {}
                other => return other,
            }
            self.strategies.pop();
        }
    }

    async fn resume_here(
        &mut self,
        ask: &ResumeAsk,
        flow: &mut Flow<'_>,
    ) -> Result<(Reply, Join), Unanswered> {
        let (request, suspect) = (self.site.request.clone(), self.suspect);
        let own = request.limit.unwrap_or(0);
        let at_least = self.exchange.gateway.settings.resume.continuation_tokens;
        if ask.again || ask.so_far.is_empty() {
            // There is nothing to go on from; the same request with more room is the whole remedy.
            self.note("again");
            let limit = self.limit(self.wanted(own.saturating_mul(2).max(at_least)))?;
            // Where the stream was lost, and not its room too small, not even that: the same bytes.
            let is_same = ask.kind == CutKind::Dropped && request.stream && request.choices == 1;
            let (body, carried) = if is_same {
                self.account.limit_sent = request.limit;
                (request.body().to_vec(), request.limit)
            } else {
                (request.with_limit(terms(limit, flow.is_live())), Some(limit))
            };
            let continuation = self.call(body, limit, &expecting(suspect, "", ask, None), flow).await?;
            return Ok((self.reply(continuation, carried), Join::Exact));
        }
        let prefill = self.prefill();
        self.note(if prefill.is_some() { PREFILL } else { "user_turn" });
        let limit = self.limit(self.wanted(own.max(at_least)))?;
        let rest = ask.so_far.strip_prefix(request.prefill.as_deref().unwrap_or("")).unwrap_or(&ask.so_far);
        let partial = self.partial(rest);
        let terms = terms(limit, flow.is_live());
        if let Some(variant) = prefill {
            let body = request.with_prefill(&partial, terms, variant, tool_prefill(rest));
            let from = match self.capability {
                Capability::Continues => AskedFrom::Cut,
                Capability::Echoes | Capability::None | Capability::Unknown => AskedFrom::Unknown,
            };
            let expected = expecting(suspect, &ask.so_far, ask, Some(from));
            let continuation = self.call(body, limit, &expected, flow).await?;
            let join = self.join_of_prefill(&continuation).await;
            Ok((self.reply(continuation, Some(limit)), join))
        } else {
            let body = request.with_prompt(&partial, &ask.prompt, terms);
            let expected = expecting(suspect, "", ask, Some(ask.from));
            let continuation = self.call(body, limit, &expected, flow).await?;
            if self.prefill_refused && self.capability == Capability::Unknown {
                // The same request in another form was taken: it was the prefill that was refused.
                self.found(Capability::None).await;
            }
            Ok((self.reply(continuation, Some(limit)), Join::Stitched(ask.from)))
        }
    }

    /// Asks for the same content in the demanded form.
    pub(super) async fn correct(
        &mut self,
        ask: &CorrectionAsk,
        flow: &mut Flow<'_>,
    ) -> Result<Reply, Unanswered> {
        let request = self.site.request.clone();
        let at_least = self.exchange.gateway.settings.resume.continuation_tokens;
        self.note("correction");
        let limit = self.limit(request.limit.unwrap_or(0).max(at_least))?;
        let body = request.with_correction(&self.partial(&ask.text), &ask.prompt, terms(limit, false));
        let arguments = self.is_call();
        let purpose = Purpose::Correction;
        let expected = Expected { purpose, echo: "", so_far: "", demanded: None, from: None, arguments };
        let continuation = self.call(body, limit, &expected, flow).await?;
        Ok(self.reply(continuation, Some(limit)))
    }

    /// Draws the lesson from how the last answer could be joined, when there was one to draw.
    pub(super) async fn learn(&mut self, joined: Option<SeamStyle>) {
        if std::mem::take(&mut self.to_learn) {
            let found =
                if joined == Some(SeamStyle::Exact) { Capability::Continues } else { Capability::None };
            self.found(found).await;
        }
    }

    fn limit(&mut self, wanted: u64) -> Result<u64, Unanswered> {
        self.account.limit(wanted).ok_or_else(|| {
            Unanswered::Failed(AskFailure::Budget(
                "the request has used up [resume] max_extra_tokens".to_owned(),
            ))
        })
    }

    /// The limit to ask for: what is wanted, unless the upstream refused that; then no more than the client's
    /// own, which it took, or else a modest one.
    fn wanted(&self, wanted: u64) -> u64 {
        match self.site.request.limit {
            _ if !self.limit_refused => wanted,
            Some(own) => own,
            None => wanted.min(MODEST_LIMIT),
        }
    }

    fn is_call(&self) -> bool {
        matches!(self.suspect.slot.part, Part::ToolCall(_))
    }

    fn partial<'b>(&'b self, so_far: &'b str) -> Partial<'b> {
        match &self.suspect.slot.part {
            Part::Text => Partial::Text(so_far),
            Part::ToolCall(call) => Partial::ToolCall {
                call,
                content_before: &self.suspect.content_before,
                calls_before: &self.suspect.calls_before,
            },
        }
    }

    /// The way to prefill, unless the upstream is known not to take one.
    fn prefill(&self) -> Option<PrefillVariant> {
        if self.prefill_refused {
            return None;
        }
        match self.site.destination.upstream.prefill {
            Prefill::Never => None,
            Prefill::Auto if self.capability == Capability::None => None,
            Prefill::Auto | Prefill::Assistant => Some(PrefillVariant::Plain),
            Prefill::ContinueFinalMessage => Some(PrefillVariant::ContinueFinalMessage),
            Prefill::Prefix => Some(PrefillVariant::PrefixFlag),
            Prefill::Partial => Some(PrefillVariant::PartialFlag),
        }
    }

    /// How far an answer to a prefill can be trusted to go on from the cut.
    async fn join_of_prefill(&mut self, continuation: &Continuation) -> Join {
        if continuation.echoed {
            if self.capability == Capability::Unknown {
                self.found(Capability::Echoes).await;
            }
            return Join::Exact;
        }
        if self.became_calls(continuation) {
            return Join::Exact;
        }
        match self.capability {
            Capability::Continues => Join::Stitched(AskedFrom::Cut),
            // An upstream that echoes and now does not has answered something else.
            Capability::Echoes | Capability::None => Join::Stitched(AskedFrom::Unknown),
            Capability::Unknown => {
                // A refusal or a broken stream says nothing about what the upstream does with a prefill.
                let said = matches!(continuation.stop, Some(Stop::Normal | Stop::Sequence | Stop::Limit));
                self.to_learn = said && continuation.ending == Ending::Clean;
                Join::Stitched(AskedFrom::Unknown)
            }
        }
    }

    /// Whether the upstream read the unfinished text as a tool call and finished that.
    fn became_calls(&self, continuation: &Continuation) -> bool {
        !self.is_call() && !continuation.calls.is_empty() && continuation.text.is_empty()
    }

    async fn call(
        &mut self,
        body: Vec<u8>,
        limit: u64,
        expected: &Expected<'_>,
        flow: &mut Flow<'_>,
    ) -> Result<Continuation, Unanswered> {
        match call(self.exchange, &self.site, body, expected, flow).await {
            Ok(continuation) => {
                self.account.book(continuation.usage.as_ref(), limit);
                Ok(continuation)
            }
            Err(CallFailure::ClientGone(_)) => Err(Unanswered::ClientGone),
            Err(CallFailure::Lost(why)) => Err(Unanswered::Failed(AskFailure::Lost(why))),
            Err(CallFailure::Rejected { status, error }) => {
                let why = format!("the upstream refused with {status}: {}", error.message);
                if is_about_the_limit(&error) && !self.limit_refused {
                    self.limit_refused = true;
                } else if self.asked_by_prefill() && is_about_the_prefill(status, &error) {
                    self.prefill_refused = true;
                } else {
                    // Asked the same way again, it would be refused again.
                    return Err(Unanswered::Failed(AskFailure::Final(why)));
                }
                Err(Unanswered::Failed(AskFailure::Rejected(why)))
            }
        }
    }

    /// What a capability is remembered for: tool calls are continued differently from text.
    fn subject(&self) -> String {
        let model = &self.site.request.model;
        match self.suspect.slot.part {
            Part::Text => model.clone(),
            Part::ToolCall(_) => format!("{model}#tool_calls"),
        }
    }

    async fn found(&mut self, capability: Capability) {
        self.capability = capability;
        let subject = self.subject();
        self.exchange.gateway.capabilities.learn(self.site.name(), &subject, capability).await;
    }

    /// The answer as the machine takes it. Tool calls after a text are kept for later: the text before them
    /// is complete.
    fn reply(&mut self, continuation: Continuation, limit: Option<u64>) -> Reply {
        let instead_of_text = self.became_calls(&continuation) && !continuation.echoed;
        let mut stop = continuation.stop;
        let mut ending = continuation.ending;
        if !self.is_call() && !continuation.calls.is_empty() {
            self.following = Some(Following {
                calls: continuation.calls,
                ending: std::mem::replace(&mut ending, Ending::Clean),
                stop: stop.replace(Stop::Normal),
                instead_of_text,
            });
        }
        Reply {
            text: continuation.text,
            ending,
            stop,
            output_tokens: continuation.usage.map(|usage| usage.completion),
            limit,
            reasoned: continuation.reasoned,
        }
    }
}

fn expecting<'a>(
    suspect: &'a Suspect,
    echo: &'a str,
    ask: &'a ResumeAsk,
    from: Option<AskedFrom>,
) -> Expected<'a> {
    let arguments = matches!(suspect.slot.part, Part::ToolCall(_));
    let purpose = Purpose::Resume;
    Expected { purpose, echo, so_far: &ask.so_far, demanded: suspect.demanded.as_ref(), from, arguments }
}

/// Whether a refusal can have the prefill for its reason, and another way of asking may be taken: not where
/// the credential, the model or the length is what the upstream minds.
fn is_about_the_prefill(status: StatusCode, error: &ProviderError) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::INTERNAL_SERVER_ERROR
    ) && !error.is_context_length()
}

/// Whether a refusal minds the limit of output tokens, or that prompt and limit together are too long.
fn is_about_the_limit(error: &ProviderError) -> bool {
    let message = error.message.to_ascii_lowercase();
    let names_limit = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    error.is_context_length() || names_limit.iter().any(|name| message.contains(name))
}

fn terms(limit: u64, stream: bool) -> Terms {
    // The usage of every call counts, whether or not the client asked for it.
    Terms { limit, stream, include_usage: stream }
}

/// How a cut tool call is shown. Where the template writes calls as text, the model goes on in the middle of
/// one; with nothing said yet, or cut after a blank, it would go astray there, and writes the call anew.
fn tool_prefill(arguments: &str) -> ToolPrefill {
    if arguments.contains('"') && !arguments.ends_with(char::is_whitespace) {
        ToolPrefill::Hermes
    } else {
        ToolPrefill::Calls
    }
}
