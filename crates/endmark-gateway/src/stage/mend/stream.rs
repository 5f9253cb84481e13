//! Recovers a stream that has ended, part by part. The missing text is sent to the client as it arrives.

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;

use endmark_recovery::Ending;
use endmark_wire::reply::{Choice, Received, ToolCall};
use endmark_wire::writer::{CutCall, ReportedEnd as ReplyEnd, Writer};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::choice::{SettledChoice, add_part, prepare_part};
use crate::disclosure::Disclosure;
use crate::exchange::Exchange;
use crate::recovery::{Allowance, MendedPart, Suspect, TokenAccount, mend};
use crate::reply::{ClientGone, ClientStream, Flow, LiveSlot, Outcome, ReplyPart, WaitingClient};
use crate::stage::observe::stream::{ObservedStream, SentParts, StreamParts};
use crate::stage::observe::suspects::{client_beginning, text_before_part};
use crate::stopping::Interrupted;

/// A stream after recovery.
pub(crate) struct MendedStream {
    pub(crate) observed: Box<ObservedStream>,
    pub(crate) account: TokenAccount,
    pub(crate) result: MendedReply,
}

/// The result of recovery, over all choices of a reply.
pub(crate) struct MendedReply {
    /// The worst outcome of all choices.
    pub(crate) worst_outcome: Outcome,
    /// The choices whose end is replaced.
    pub(crate) replaced_ends: Vec<ReplacedEnd>,
    /// Why the reply is not whole, if the stream did not report an end.
    pub(crate) failure: Option<Disclosure>,
    /// Why recovery stopped early.
    pub(crate) early_stop: Option<EarlyStop>,
    /// An incomplete choice, if the client should get an error for it.
    pub(crate) incomplete: Option<Disclosure>,
}

/// Judges each part of a stream, and recovers it if necessary.
///
/// # Errors
/// [`ClientGone`] if the client has disconnected.
pub(crate) async fn mend_stream(
    exchange: &Exchange,
    mut observed: Box<ObservedStream>,
    client: &mut ClientStream,
) -> Result<MendedStream, ClientGone> {
    let ObservedStream { reader, writer, ending, sent_parts: sent, parts, spent, .. } = &mut *observed;
    let received = reader.received();
    let allowance =
        Allowance::new(&exchange.case(), exchange.elapsed(), received.output_tokens(), received.choices());
    let mut account = TokenAccount::new(allowance);
    account.note_first_call(spent.as_ref(), *ending);
    let mut mending = StreamMender {
        exchange,
        received,
        ending: *ending,
        sent_parts: sent,
        writer: writer.as_mut(),
        client,
        account,
        result: MendedReply {
            worst_outcome: Outcome::Whole,
            replaced_ends: Vec::new(),
            failure: None,
            early_stop: None,
            incomplete: None,
        },
    };
    let given_up = if Instant::now() < exchange.client.deadline {
        let choices = pin!(timeout_at(exchange.client.deadline, mending.mend_choices(parts)));
        match exchange.gateway.stopping.unless_interrupted(choices).await {
            Ok(Ok(ended)) => ended.map(|()| None)?,
            Ok(Err(_)) => Some(EarlyStop::Timeout),
            Err(Interrupted) => Some(EarlyStop::Stopped),
        }
    } else {
        Some(EarlyStop::Timeout)
    };
    if let Some(why) = given_up {
        mending.note_early_stop(why);
    }
    let StreamMender { account, result, .. } = mending;
    Ok(MendedStream { observed, account, result })
}

/// A stream whose parts are being recovered.
struct StreamMender<'a> {
    exchange: &'a Exchange,
    received: &'a Received,
    /// How the upstream's stream ended.
    ending: Ending,
    /// Number of bytes of each part that the client has.
    sent_parts: &'a SentParts,
    writer: &'a mut dyn Writer,
    client: &'a mut ClientStream,
    account: TokenAccount,
    result: MendedReply,
}

/// Why recovery stopped early.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EarlyStop {
    /// The time limit of the request was exceeded.
    Timeout,
    /// The gateway was stopped.
    Stopped,
}

/// The end that replaces a choice's own.
pub(crate) struct ReplacedEnd {
    pub(crate) choice: u32,
    /// The new end. `None` means the provider's own end.
    pub(crate) end: Option<ReplyEnd>,
    pub(crate) endmark: Option<Box<RawValue>>,
    pub(crate) rewritten: bool,
}

impl StreamMender<'_> {
    /// Recovers every choice.
    async fn mend_choices(&mut self, parts: &mut StreamParts) -> Result<(), ClientGone> {
        let mut untouched = Vec::new();
        for (stream_choice, parts) in parts {
            let Some(choice) = stream_choice.choice(self.received) else { continue };
            let mut disclosure = Disclosure::new(self.exchange);
            let mut settled = SettledChoice::default();
            let mut is_unchanged = true;
            for part in &mut parts.remaining {
                prepare_part(part, &settled);
                let mended = self.mend_part(choice, part, &mut settled).await?;
                is_unchanged &= matches!(mended, MendedPart::Untouched | MendedPart::Whole { .. });
                add_part(
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
            if self.fails_after_calls(choice) && is_unchanged {
                // All received tool calls are whole, but the upstream reports that the rest of the reply
                // failed. Its error is kept.
                disclosure.note_break();
                self.result.worst_outcome = self.result.worst_outcome.max(disclosure.outcome());
                self.result.failure.get_or_insert(disclosure);
                continue;
            }
            if let Some(word) = choice.unknown_finish_reason() {
                disclosure.note_unknown_end(word);
            }
            self.result.worst_outcome = self.result.worst_outcome.max(disclosure.outcome());
            if disclosure.is_error() {
                self.result.incomplete.get_or_insert_with(|| disclosure.clone());
            }
            if disclosure.has_content() {
                self.write_choice_end(choice, &settled, &disclosure).await?;
            } else {
                untouched.push(choice.index);
            }
        }
        let unfinished =
            |index: &u32| self.received.choice_at(*index).is_none_or(|choice| choice.finish.is_none());
        if self.ending != Ending::Clean && untouched.iter().any(unfinished) {
            let disclosure = self.note_break();
            self.result.failure.get_or_insert(disclosure);
        }
        Ok(())
    }

    /// Whether the upstream reported an error after this choice's tool calls.
    fn fails_after_calls(&self, choice: &Choice) -> bool {
        self.ending == Ending::UpstreamError && choice.finish.is_none() && !choice.tool_calls.is_empty()
    }

    /// Recovers one part of a choice. If the client has its beginning, the rest is sent as it arrives.
    async fn mend_part(
        &mut self,
        choice: &Choice,
        part: &Suspect,
        settled: &mut SettledChoice,
    ) -> Result<MendedPart, ClientGone> {
        let already_sent = self.sent_bytes(choice, part);
        let can_extend = match (&part.slot.part, already_sent) {
            // Arguments that the server invented cannot be extended.
            (ReplyPart::ToolCall(call), Some(had)) => {
                had <= part.reply.text.len()
                    && choice.can_extend_call(call)
                    && self.writer.can_continue(choice.index, call)
            }
            _ => true,
        };
        let mut flow = match already_sent {
            _ if !can_extend || !self.writer.can_write() => Flow::Closed,
            Some(sent) => Flow::Live(LiveSlot {
                client: &mut *self.client,
                writer: &mut *self.writer,
                slot: &part.slot,
                sent_bytes: sent,
            }),
            None => Flow::Held(WaitingClient { client: &mut *self.client, writer: &*self.writer }),
        };
        let mended = mend(&self.exchange.case(), part, &mut self.account, &mut flow).await?;
        if let (Flow::Live(slot), Some(text)) = (&mut flow, mended.text()) {
            let sent = slot.sent_bytes();
            // The client has the beginning of the text. The state machine rejects joins that would change it.
            slot.extend(text.get(sent..).unwrap_or_default()).await?;
        }
        if let Flow::Live(slot) = &flow {
            settled.is_continued |= Some(slot.sent_bytes()) > already_sent;
        }
        Ok(mended)
    }

    /// Records that recovery stopped.
    fn note_early_stop(&mut self, why: EarlyStop) {
        self.result.failure = Some(self.note_break());
        self.result.early_stop = Some(why);
    }

    /// Records that the reply broke off. Returns the disclosure for the client.
    fn note_break(&mut self) -> Disclosure {
        let mut disclosure = Disclosure::new(self.exchange);
        disclosure.note_break();
        self.result.worst_outcome = self.result.worst_outcome.max(disclosure.outcome());
        disclosure
    }

    /// Returns the number of bytes of a part that the client has. Returns `None` if the client has nothing of
    /// a tool call, which can then be sent only as a whole.
    fn sent_bytes(&self, choice: &Choice, part: &Suspect) -> Option<usize> {
        match &part.slot.part {
            ReplyPart::Text => {
                let sent = self.sent_parts.sent_bytes(choice.index, None).unwrap_or(0);
                Some(match text_before_part(self.exchange, choice) {
                    "" => client_beginning(self.exchange, &choice.text).len() + sent,
                    before => sent.saturating_sub(before.len()),
                })
            }
            ReplyPart::ToolCall(call) => self.sent_parts.sent_bytes(choice.index, Some(call.index)),
        }
    }

    /// Writes the end of a choice that was recovered or has something to disclose.
    async fn write_choice_end(
        &mut self,
        choice: &Choice,
        settled: &SettledChoice,
        disclosure: &Disclosure,
    ) -> Result<(), ClientGone> {
        let mut omitted_calls = BTreeSet::new();
        let mut is_begun = false;
        if !settled.cut_calls.is_empty() {
            for (call, treatment) in self.writer.note_cut_calls(choice.index, &settled.cut_calls) {
                match treatment {
                    CutCall::Omitted => drop(omitted_calls.insert(call)),
                    CutCall::Started => is_begun = true,
                }
            }
        }
        if settled.is_changed() {
            self.send_held_calls(choice, settled, &omitted_calls).await?;
        }
        if let Some(signature) = settled.signature.as_ref().filter(|_| !settled.replaces_text_by_call) {
            let bytes = self.writer.write_signature(choice.index, signature);
            self.client.send(bytes).await?;
        }
        if let Some(sequence) = settled.sequence.as_ref().filter(|_| settled.end == Some(ReplyEnd::Turn)) {
            self.writer.set_stop_sequence(choice.index, sequence);
        }
        if let Some(id) = &settled.new_calls_in {
            self.writer.set_response_id(id);
        }
        let last_is_left_out = settled.last_new_call_is_cut && !self.writer.shows_cut_calls();
        let written = settled.new_calls.len().saturating_sub(usize::from(last_is_left_out));
        for call in settled.new_calls.iter().take(written) {
            let bytes = self.writer.write_tool_call(choice.index, call);
            self.client.send(bytes).await?;
        }
        let is_left_out = !omitted_calls.is_empty() || last_is_left_out;
        if let Some(call) = settled.omitted_call(choice).filter(|_| is_left_out && !is_begun)
            && self.writer.can_write()
        {
            let bytes = self.writer.write_text(choice.index, &call.omission_text());
            self.client.send(bytes).await?;
        }
        if is_begun || (settled.end.is_none() && choice.finish.is_none()) {
            // The choice is cut and was not recovered. In this protocol, only an error can report that.
            self.result.failure.get_or_insert_with(|| disclosure.clone());
            return Ok(());
        }
        self.result.replaced_ends.push(ReplacedEnd {
            choice: choice.index,
            end: settled.end,
            endmark: disclosure.json(),
            rewritten: settled.text.is_some(),
        });
        Ok(())
    }

    /// Sends the tool calls that the client has not received at all: completely, or as received if the cut
    /// can be disclosed. Also sends the rest of a begun tool call if that rest was held back.
    async fn send_held_calls(
        &mut self,
        choice: &Choice,
        settled: &SettledChoice,
        omitted_calls: &BTreeSet<u32>,
    ) -> Result<(), ClientGone> {
        let whole: HashMap<u32, &ToolCall> = settled.calls.iter().map(|call| (call.index, call)).collect();
        for call in &choice.tool_calls {
            let known = whole.get(&call.index).copied();
            let bytes = match self.sent_parts.sent_bytes(choice.index, Some(call.index)) {
                _ if omitted_calls.contains(&call.index) => continue,
                None => self.writer.write_tool_call(choice.index, known.unwrap_or(call)),
                Some(sent) => {
                    // Recovery has already written the rest of recovered calls, and a call that stays cut gets no more.
                    let rest = call.arguments.get(sent..).filter(|rest| !rest.is_empty());
                    let is_held = known.is_none() && !settled.cut_calls.contains(&call.index);
                    let rest = rest.filter(|_| is_held && self.writer.can_continue(choice.index, call));
                    rest.and_then(|rest| self.writer.write_arguments(choice.index, call, rest))
                        .unwrap_or_default()
                }
            };
            self.client.send(bytes).await?;
        }
        Ok(())
    }
}
