//! Replies that come as a stream, and go to the client as one, whatever it took to make them whole.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::pin::pin;

use endmark_core::Ending;
use endmark_wire::error::ProviderError;
use endmark_wire::reply::{Choice, Received, ToolCall, Usage};
use endmark_wire::writer::{ChoiceEnd, Closing as Ends, CutCall, End as ReplyEnd, StreamError, Writer};
use http::Response;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

use super::Exchange;
use super::client::{ClientStream, LiveSlot, Waiter};
use super::disclose::{Disclosure, Outcome};
use super::observe::{Observed, Sent, observe};
use super::settle::{self, Settled};
use super::slot::Part;
use super::suspects::{Suspects, before, lead, suspects, without_surplus, worst};
use crate::body::{AnyBody, made, passing};
use crate::ledger::{Call, CallEnd, Ended};
use crate::recovery::{Account, Allowance, ClientGone, Flow, Mended, Suspect, mend};
use crate::stopping::Interrupted;
use crate::upstream::of_another_body;

/// Answers with the stream's head at once; the rest follows as it comes.
pub(crate) fn streamed(mut exchange: Box<Exchange>, answer: Response<AnyBody>) -> Response<AnyBody> {
    let call = exchange.call.take();
    let (mut head, upstream) = answer.into_parts();
    // How it ends is not known yet, so nothing can be said of it as a whole.
    of_another_body(&mut head.headers);
    let body = made(exchange.gateway.settings.limits.stream_bytes, |outlet| {
        let relaying = async move {
            let mut client = ClientStream::new(outlet);
            match relay(&exchange, call, upstream, &mut client).await {
                // Nobody takes it for a whole one.
                Ok(End::Broken) => Err("the upstream broke off".into()),
                Ok(End::Orderly) | Err(ClientGone) => Ok(()),
            }
        };
        relaying.instrument(tracing::Span::current())
    });
    Response::from_parts(head, passing(body))
}

/// How the client's stream ends.
enum End {
    /// As the protocol ends one, with an error event or without.
    Orderly,
    /// By breaking off, since it passed unread and so did its end.
    Broken,
}

async fn relay(
    exchange: &Exchange,
    call: Option<Call>,
    upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<End, ClientGone> {
    let observed = observe(exchange, upstream, client).await?;
    let Observed { reader, mut writer, ending, error, sent, last, residue, unread, _holding } = observed;
    let received = reader.received();
    let parts = if unread { Vec::new() } else { parts(exchange, received, ending, error.as_ref()) };
    // Before the last bytes go to the client: what it has whole is written down as that.
    if let Some(call) = call {
        // A stream that passed unread from some event on was too long to be kept.
        let ending = if unread && ending == Ending::Clean { Ending::OverCap } else { ending };
        call.settle(CallEnd { unread, ..ended(received, ending, &parts) });
    }
    client.send(last).await?;
    if unread {
        exchange.calls.watch.end(Ended::Unread);
        client.send(residue).await?;
        return Ok(if ending == Ending::Clean { End::Orderly } else { End::Broken });
    }
    let came = received.choices().iter().map(|choice| choice.received).sum();
    let mut account = Account::new(Allowance::of(exchange, received.output_tokens(), came));
    account.open(received.usage(), ending);
    let mut closing = Closing {
        exchange,
        received,
        ending,
        sent: &sent,
        writer: writer.as_mut(),
        client,
        account,
        worst: Outcome::Whole,
        ends: Vec::new(),
        failed: None,
        given_up: None,
        is_told: error.is_some(),
    };
    let given_up = if Instant::now() < exchange.deadline {
        let choices = pin!(timeout_at(exchange.deadline, closing.choices(&parts)));
        match exchange.gateway.stopping.unless_interrupted(choices).await {
            Ok(Ok(ended)) => ended.map(|()| None)?,
            Ok(Err(_)) => Some(GivenUp::TookTooLong),
            Err(Interrupted) => Some(GivenUp::Stopped),
        }
    } else {
        Some(GivenUp::TookTooLong)
    };
    if let Some(why) = given_up {
        closing.given_up(why);
    }
    exchange.calls.watch.end(Ended::Replied(closing.worst));
    closing.end(residue).await?;
    Ok(End::Orderly)
}

/// More choices than these are not missed: no provider gives as many.
const MOST_CHOICES: u32 = 128;

/// The choices of a stream, each with its parts that may be cut.
type Parts<'a> = Vec<(Cow<'a, Choice>, Suspects)>;

fn parts<'a>(
    exchange: &Exchange,
    received: &'a Received,
    ending: Ending,
    error: Option<&ProviderError>,
) -> Parts<'a> {
    let mut choices: Vec<Cow<'a, Choice>> = received.choices().iter().map(Cow::Borrowed).collect();
    if ending != Ending::Clean {
        // What a stream that went wrong has nothing of is a reply, too, cut before its first character.
        let asked_for = 0..exchange.request.view().choices.min(MOST_CHOICES);
        let missing = asked_for.filter(|index| received.choice_at(*index).is_none());
        choices.extend(missing.map(|index| Cow::Owned(Choice::new(index))));
    }
    let of = |choice: Cow<'a, Choice>| {
        let ending = if choice.finish.is_some() { Ending::Clean } else { ending };
        let parts = suspects(exchange, &choice, 0, ending, received.output_tokens(), error);
        (choice, parts)
    };
    let mut choices: Parts<'_> = choices.into_iter().map(of).collect();
    without_surplus(exchange, choices.iter_mut().map(|(_, parts)| parts));
    choices
}

/// How the call ended whose answer the stream is.
fn ended(received: &Received, ending: Ending, parts: &Parts<'_>) -> CallEnd {
    CallEnd {
        stop: received.choices().first().and_then(|choice| choice.finish.as_ref()?.stop),
        judged: worst(parts.iter().map(|(_, parts)| parts.worst)),
        usage: received.usage().cloned(),
        model: received.model().map(str::to_owned),
        ..CallEnd::new(ending)
    }
}

/// The end of a stream: what was held back, and what was done for it.
struct Closing<'a> {
    exchange: &'a Exchange,
    received: &'a Received,
    /// How the upstream's stream ended.
    ending: Ending,
    /// Bytes of each part that the client has.
    sent: &'a Sent,
    writer: &'a mut dyn Writer,
    client: &'a mut ClientStream,
    account: Account,
    /// The worst outcome of any choice.
    worst: Outcome,
    /// The choices that get another end than their own.
    ends: Vec<OtherEnd>,
    /// Why the reply is not whole, where its own stream did not say that it ended.
    failed: Option<Disclosure>,
    /// Why nothing more was done for it.
    given_up: Option<GivenUp>,
    /// The upstream has said by an error that its stream is over.
    is_told: bool,
}

/// Why a reply is left as it is before all was done for it that could be.
#[derive(Debug, Clone, Copy)]
enum GivenUp {
    /// All the time that a request has was over.
    TookTooLong,
    /// The gateway was.
    Stopped,
}

/// Another end of a choice than its own.
struct OtherEnd {
    choice: u32,
    /// None where the provider's own word stays.
    end: Option<ReplyEnd>,
    endmark: Option<Box<RawValue>>,
    rewritten: bool,
}

impl Closing<'_> {
    /// Every choice to its end.
    async fn choices(&mut self, parts: &Parts<'_>) -> Result<(), ClientGone> {
        let mut untouched = Vec::new();
        for (choice, parts) in parts {
            let mut disclosure = Disclosure::new(self.exchange);
            let mut settled = Settled::default();
            for part in &parts.left {
                let mended = self.part(choice, part, &mut settled).await?;
                settle::add(
                    self.exchange,
                    choice,
                    part,
                    mended,
                    &mut self.account,
                    &mut disclosure,
                    &mut settled,
                )
                .await?;
            }
            if self.fails_behind(choice) && disclosure.outcome() == Outcome::Whole {
                // Whole calls came, and the upstream says that more of the reply failed: its word stands.
                disclosure.broke_off();
                self.worst = self.worst.max(disclosure.outcome());
                self.failed.get_or_insert(disclosure);
                continue;
            }
            self.worst = self.worst.max(disclosure.outcome());
            if disclosure.has_something() {
                self.choice(choice, &settled, &disclosure).await?;
            } else {
                untouched.push(choice.index);
            }
        }
        let unfinished =
            |index: &u32| self.received.choice_at(*index).is_none_or(|choice| choice.finish.is_none());
        if self.ending != Ending::Clean && untouched.iter().any(unfinished) {
            let disclosure = self.broke_off();
            self.failed.get_or_insert(disclosure);
        }
        Ok(())
    }

    /// Whether the upstream said by an error that it failed behind this choice's calls.
    fn fails_behind(&self, choice: &Choice) -> bool {
        self.ending == Ending::UpstreamError && choice.finish.is_none() && !choice.tool_calls.is_empty()
    }

    /// One part of a choice, which goes on where the client has its beginning.
    async fn part(
        &mut self,
        choice: &Choice,
        part: &Suspect,
        settled: &mut Settled,
    ) -> Result<Mended, ClientGone> {
        let had = self.sent(choice, part);
        let goes_on = match (&part.slot.part, had) {
            // Behind what the server made up nothing can stand.
            (Part::ToolCall(call), Some(had)) => {
                had <= part.reply.text.len()
                    && choice.takes_more(call)
                    && self.writer.goes_on(choice.index, call)
            }
            _ => true,
        };
        let mut flow = match had {
            _ if !goes_on || !self.writer.can_write() => Flow::Closed,
            Some(sent) => Flow::Live(LiveSlot {
                client: &mut *self.client,
                writer: &mut *self.writer,
                slot: &part.slot,
                sent,
            }),
            None => Flow::Held(Waiter { client: &mut *self.client, writer: &*self.writer }),
        };
        let mended = mend(self.exchange, part, &mut self.account, &mut flow).await?;
        if let (Flow::Live(slot), Some(text)) = (&mut flow, &mended.text) {
            let sent = slot.sent();
            // What the client has is the beginning of the text: the core refuses any other join.
            slot.extend(text.get(sent..).unwrap_or_default()).await?;
        }
        if let Flow::Live(slot) = &flow {
            settled.went_on |= Some(slot.sent()) > had;
        }
        Ok(mended)
    }

    /// It cannot be made whole any more.
    fn given_up(&mut self, why: GivenUp) {
        self.failed = Some(self.broke_off());
        self.given_up = Some(why);
    }

    /// The reply is not whole, and nothing more is done for it.
    fn broke_off(&mut self) -> Disclosure {
        let mut disclosure = Disclosure::new(self.exchange);
        disclosure.broke_off();
        self.worst = self.worst.max(disclosure.outcome());
        disclosure
    }

    /// Bytes of a part that the client has; none of a call that it has nothing of, which can only come as a whole.
    fn sent(&self, choice: &Choice, part: &Suspect) -> Option<usize> {
        match &part.slot.part {
            Part::Text => {
                let sent = self.sent.of(choice.index, None).unwrap_or(0);
                Some(match before(self.exchange, choice) {
                    "" => lead(self.exchange, &choice.text).len() + sent,
                    before => sent.saturating_sub(before.len()),
                })
            }
            Part::ToolCall(call) => self.sent.of(choice.index, Some(call.index)),
        }
    }

    /// The end of a choice for which something was done, or of which something is to be told.
    async fn choice(
        &mut self,
        choice: &Choice,
        settled: &Settled,
        disclosure: &Disclosure,
    ) -> Result<(), ClientGone> {
        let mut left_out = BTreeSet::new();
        let mut is_begun = false;
        if !settled.cut_calls.is_empty() {
            for (call, becomes) in self.writer.leave_cut(choice.index, &settled.cut_calls) {
                match becomes {
                    CutCall::LeftOut => drop(left_out.insert(call)),
                    CutCall::Begun => is_begun = true,
                }
            }
        }
        if settled.has_more() {
            self.held_calls(choice, settled, &left_out).await?;
        }
        if let Some(signature) = settled.signature.as_ref().filter(|_| !settled.text_became_call) {
            let bytes = self.writer.signature(choice.index, signature);
            self.client.send(bytes).await?;
        }
        if let Some(sequence) = settled.sequence.as_ref().filter(|_| settled.end == Some(ReplyEnd::Turn)) {
            self.writer.stops_at(choice.index, sequence);
        }
        if let Some(id) = &settled.new_calls_in {
            self.writer.answered_by(id);
        }
        let last_is_left_out = settled.last_new_call_is_cut && !self.writer.shows_cut_calls();
        let written = settled.new_calls.len().saturating_sub(usize::from(last_is_left_out));
        for call in settled.new_calls.iter().take(written) {
            let bytes = self.writer.tool_call(choice.index, call);
            self.client.send(bytes).await?;
        }
        let is_left_out = !left_out.is_empty() || last_is_left_out;
        if let Some(call) = settled.left_out(choice).filter(|_| is_left_out && !is_begun)
            && self.writer.can_write()
        {
            let bytes = self.writer.text(choice.index, &call.left_out());
            self.client.send(bytes).await?;
        }
        if is_begun || (settled.end.is_none() && choice.finish.is_none()) {
            // Cut off, and not mended: there is no word of the protocol for that but an error.
            self.failed.get_or_insert_with(|| disclosure.clone());
            return Ok(());
        }
        self.ends.push(OtherEnd {
            choice: choice.index,
            end: settled.end,
            endmark: disclosure.json(),
            rewritten: settled.text.is_some(),
        });
        Ok(())
    }

    /// Calls that the client has nothing of yet: whole, or as far as they came where that can be told.
    async fn held_calls(
        &mut self,
        choice: &Choice,
        settled: &Settled,
        left_out: &BTreeSet<u32>,
    ) -> Result<(), ClientGone> {
        let whole: HashMap<u32, &ToolCall> = settled.calls.iter().map(|call| (call.index, call)).collect();
        for call in &choice.tool_calls {
            if self.sent.of(choice.index, Some(call.index)).is_some() || left_out.contains(&call.index) {
                continue;
            }
            let call = whole.get(&call.index).copied().unwrap_or(call);
            let bytes = self.writer.tool_call(choice.index, call);
            self.client.send(bytes).await?;
        }
        Ok(())
    }

    /// The end of the stream itself.
    async fn end(&mut self, residue: Vec<u8>) -> Result<(), ClientGone> {
        let ends: Vec<ChoiceEnd<'_>> = self
            .ends
            .iter()
            .map(|other| ChoiceEnd {
                choice: other.choice,
                end: other.end,
                endmark: other.endmark.as_deref(),
                rewritten: other.rewritten,
            })
            .collect();
        let passes = ends.is_empty() && self.ending == Ending::Clean;
        // However the bytes ended. In what follows the last whole frame it may stand all the same.
        let lacks_end = self.exchange.request.format().wants_last_event()
            && !self.received.is_done()
            && residue.is_empty();
        // Behind an error that the client was told of nothing is made up.
        let end_lost = !self.is_told && (self.ending != Ending::Clean || lacks_end);
        if end_lost && self.failed.is_none() {
            self.note_lost_end();
        }
        self.note_successor();
        let bytes = if let Some(disclosure) = &self.failed {
            self.writer.error(&StreamError {
                message: &self.what_broke(disclosure),
                kind: "endmark_reply_cut",
                endmark: disclosure.json().as_deref(),
                choices: &ends,
            })
        } else {
            let mut bytes = self.writer.close(&Ends { choices: &ends, usage: self.usage(), end_lost });
            if passes {
                bytes.extend(residue);
            }
            bytes
        };
        self.client.send(bytes).await
    }

    /// The tokens that the end has to tell: of all calls where there was more than one, and what was counted before a stream
    /// broke off that would have told them at its end.
    fn usage(&self) -> Option<Usage> {
        if self.account.has_further_calls() {
            return self.account.total();
        }
        self.account.first().cloned().filter(|_| self.ending != Ending::Clean)
    }

    /// The reply is all there, and what its server was to say behind it is not: its last event, or what it counted.
    fn note_lost_end(&self) {
        let every_choice_ended = self.received.choices().iter().all(|choice| choice.finish.is_some());
        if every_choice_ended {
            let upstream = self.exchange.upstream_name();
            tracing::info!(
                request = self.exchange.id,
                upstream,
                ending = self.ending.name(),
                "a stream broke off behind the end of its reply"
            );
            self.exchange.gateway.metrics.end_lost(upstream);
        }
    }

    /// The client goes on from the id that its stream began with; its server has all of the reply under that of the last
    /// answer. A call's result goes to the response that has the call.
    fn note_successor(&self) {
        let is_whole = self.failed.is_none() && self.worst.is_delivered_whole();
        let has_calls = self.received.choices().iter().any(|choice| !choice.tool_calls.is_empty());
        if let (Some(id), Some(last)) = (self.received.id(), &self.account.last_id)
            && is_whole
            && !has_calls
            && self.account.last_upstream.as_deref() == Some(self.exchange.upstream_name())
        {
            let credential = self.exchange.calls.credential();
            self.exchange.gateway.successors.note(self.exchange.upstream_name(), credential, id, last);
        }
    }

    /// What a client is told whose reply broke off.
    fn what_broke(&self, disclosure: &Disclosure) -> String {
        match self.given_up {
            Some(GivenUp::TookTooLong) => {
                return format!(
                    "the reply of the upstream `{}` is cut: it was not over within {:?}; ask for less, or raise [limits] total_seconds",
                    self.exchange.upstream_name(),
                    self.exchange.gateway.settings.limits.total,
                );
            }
            Some(GivenUp::Stopped) => {
                return format!(
                    "the reply of the upstream `{}` is cut: the gateway stopped before it was over; send the request again, to \
                     the gateway that follows",
                    self.exchange.upstream_name(),
                );
            }
            None => {}
        }
        if self.ending == Ending::Clean {
            return format!(
                "the reply of the upstream `{}` is cut, and what it was about to do is not known ({}): raise its output \
                 limit, or send the request again",
                self.exchange.upstream_name(),
                disclosure.reason(),
            );
        }
        format!(
            "the reply of the upstream `{}` is cut: its stream ended {} ({}); send the request again",
            self.exchange.upstream_name(),
            self.ending.name(),
            disclosure.reason(),
        )
    }
}
