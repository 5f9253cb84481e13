//! Reads the first reply of a stream and forwards it at the same time.
//!
//! The gateway holds back only events that could make an incomplete reply look complete: the event with the
//! stop reason, and all later ones. If parts have end events of their own, each of these is held until the
//! next event. If the end is certain, nothing is held back, unless usage is still missing.

use std::collections::HashMap;
use std::pin::pin;

use endmark_recovery::Ending;
use endmark_wire::error::ProviderError;
use endmark_wire::reply::{Choice, Event, Piece, Received};
use endmark_wire::sse::{Decoder, Frame, Tail};
use endmark_wire::stream::Reader;
use endmark_wire::writer::Writer;
use tokio::time::Instant;

use super::certain_calls::CertainCalls;
use super::suspects::{Suspects, find_suspects, limit_surplus_choices, worst_judgement};
use super::waiting::WaitingChoices;
use crate::admission::BytesReservation;
use crate::body::{AnyBody, TimedBody};
use crate::exchange::Exchange;
use crate::ledger::{Call, CallEnd, CallUsage, RequestEnd, read_late_usage};
use crate::reply::{ClientGone, ClientStream};
use crate::settings::ResumeMode;
use crate::upstream::frame_without_claims;
use crate::work::{self, LARGE_BYTES, LargeInput};

/// Events that arrive together are forwarded together up to this size, because forwarding an event costs as
/// much as reading it.
const MAX_GATHERED_BYTES: usize = 2 * 1024;

/// A stream after its last byte.
pub(crate) enum StreamObservation {
    /// The stream could not be read to its end, and was forwarded without parsing. Its end is that of the HTTP body.
    Unread(Ending),
    Read(Box<ObservedStream>),
}

/// A stream that was read to its end.
pub(crate) struct ObservedStream {
    pub(crate) reader: Box<dyn Reader>,
    /// Writes to the client, and contains the events that are held back.
    pub(crate) writer: Box<dyn Writer>,
    pub(crate) ending: Ending,
    /// The error with which the upstream ended the stream, if any.
    pub(crate) error: Option<ProviderError>,
    /// Number of bytes of each part that the client has.
    pub(crate) sent_parts: SentParts,
    /// Bytes after the last complete frame.
    pub(crate) residue: Vec<u8>,
    /// The choices, each with the parts that may be cut.
    pub(crate) parts: StreamParts,
    /// The usage of the call.
    pub(crate) spent: Option<CallUsage>,
    /// The memory reserved for the stream.
    pub(crate) _memory: BytesReservation,
    pub(crate) _large: LargeInput,
}

/// The choices of a stream, each with the parts that may be cut.
pub(crate) type StreamParts = Vec<(StreamChoice, Suspects)>;

/// A choice of a stream.
pub(crate) enum StreamChoice {
    /// The choice arrived, at this index among the received ones.
    Received(usize),
    /// No part of the choice arrived.
    Missing(Box<Choice>),
}

impl StreamChoice {
    /// Returns the received content of the choice.
    pub(crate) fn choice<'a>(&'a self, received: &'a Received) -> Option<&'a Choice> {
        match self {
            Self::Received(at) => received.choices().get(*at),
            Self::Missing(choice) => Some(choice),
        }
    }
}

/// Number of bytes of each part that the client has. A part is the text of a choice, or the arguments of a
/// tool call.
#[derive(Debug, Default)]
pub(crate) struct SentParts(HashMap<(u32, Option<u32>), usize>);

impl SentParts {
    /// Returns the number of bytes that the client has. Returns `None` for a tool call that the client has
    /// not received at all.
    pub(crate) fn sent_bytes(&self, choice: u32, call: Option<u32>) -> Option<usize> {
        self.0.get(&(choice, call)).copied()
    }

    fn merge(&mut self, other: Self) {
        for (part, length) in other.0 {
            *self.0.entry(part).or_default() += length;
        }
    }

    fn add(&mut self, event: &Event) {
        for delta in &event.pieces {
            let (call, length) = match &delta.piece {
                Piece::Text(text) => (None, text.len()),
                Piece::ToolCall { index, arguments, .. } => (Some(*index), arguments.len()),
                Piece::Reasoning(_) | Piece::Refusal(_) => continue,
            };
            *self.0.entry((delta.choice, call)).or_default() += length;
        }
    }
}

/// Forwards the upstream's stream to the client until the stream ends or its end is uncertain. Then settles
/// its upstream call.
///
/// # Errors
/// [`ClientGone`] if the client has disconnected.
pub(crate) async fn observe_stream(
    exchange: &Exchange,
    call: Option<Call>,
    upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<StreamObservation, ClientGone> {
    let limits = &exchange.gateway.settings.limits;
    let mut upstream = TimedBody::new(upstream, limits.idle, exchange.client.deadline);
    let mut observer = Observer::new(exchange);
    let (mut received_bytes, mut large) = (0_usize, None);
    let mut ready = None;
    let ending = loop {
        let next = if let Some(next) = ready.take() {
            next
        } else {
            let next = exchange.gateway.stopping.unless_interrupted(pin!(upstream.next())).await;
            next.unwrap_or(Err(Ending::Interrupted))
        };
        let data = match next {
            Ok(Some(data)) => data,
            // A reply that is forwarded without parsing ends like its HTTP body.
            Ok(None) if observer.is_unread => break Ending::Clean,
            Ok(None) => break observer.ending_at_close(),
            Err(ending) => break ending,
        };
        received_bytes = received_bytes.saturating_add(data.len());
        if large.is_none() && received_bytes >= LARGE_BYTES && !observer.is_unread {
            large = Some(work::enter_pool_if_large(received_bytes).await);
        }
        let gathered = observer.outgoing.len();
        let ended = observer.read(&data);
        if let Some(call) = &call {
            call.record_text((!observer.is_unread).then(|| observer.reader.received().choices()));
        }
        if let Some(ending) = ended {
            // The end waits for its record and for usage that may follow. Earlier events do not wait.
            let end = observer.outgoing.split_off(gathered);
            client.send(std::mem::replace(&mut observer.outgoing, end)).await?;
            break ending;
        }
        if observer.outgoing.len() < MAX_GATHERED_BYTES {
            ready = upstream.next_ready().await;
        }
        if ready.is_none() {
            client.send(std::mem::take(&mut observer.outgoing)).await?;
        }
    };
    if ending == Ending::Clean && call.is_some() && observer.ended_without_usage() {
        let Observer { decoder, reader, late_bytes: behind, .. } = &mut observer;
        *behind = read_late_usage(decoder, reader, &mut upstream).await;
    }
    let large = match large {
        Some(large) => large,
        // A continuation request contains the complete original request.
        None => {
            work::enter_pool_if_large(received_bytes.saturating_add(exchange.attempt.request.body().len()))
                .await
        }
    };
    let FinishedStream { mut observed, last, is_unread: unread } = observer.finish(ending, large);
    // Settle the call before the client gets the last bytes, so that a complete reply is recorded as complete.
    if let Some(call) = call {
        // If parsing stopped at some event, the stream was too long to keep.
        let ending = if unread && ending == Ending::Clean { Ending::OverCap } else { ending };
        let end =
            CallEnd { is_unread: unread, ..call_end(observed.reader.received(), ending, &observed.parts) };
        observed.spent = call.settle(end);
    }
    client.send(last).await?;
    if unread {
        exchange.calls.watch.end(RequestEnd::Unread);
        client.send(observed.residue).await?;
        return Ok(StreamObservation::Unread(ending));
    }
    Ok(StreamObservation::Read(Box::new(observed)))
}

/// Maximum number of missing choices to consider. No provider returns more.
const MAX_MISSING_CHOICES: u32 = 128;

fn collect_parts(
    exchange: &Exchange,
    received: &Received,
    ending: Ending,
    error: Option<&ProviderError>,
) -> StreamParts {
    let mut choices: Vec<StreamChoice> = (0..received.choices().len()).map(StreamChoice::Received).collect();
    if ending != Ending::Clean {
        // If a failed stream contains nothing of a choice, the choice counts as cut at its beginning.
        let asked_for = 0..exchange.attempt.request.view().choices.min(MAX_MISSING_CHOICES);
        let missing = asked_for.filter(|index| received.choice_at(*index).is_none());
        choices.extend(missing.map(|index| StreamChoice::Missing(Box::new(Choice::new(index)))));
    }
    let of = |whose: StreamChoice| {
        let choice = whose.choice(received)?;
        let ending = if choice.finish.is_some() { Ending::Clean } else { ending };
        let parts = find_suspects(exchange, choice, 0, ending, received.output_tokens(), error);
        Some((whose, parts))
    };
    let mut choices: StreamParts = choices.into_iter().filter_map(of).collect();
    limit_surplus_choices(exchange, choices.iter_mut().map(|(_, parts)| parts));
    choices
}

/// Returns how the stream's call ended.
fn call_end(received: &Received, ending: Ending, parts: &StreamParts) -> CallEnd {
    CallEnd {
        judgement: worst_judgement(parts.iter().map(|(_, parts)| parts.worst)),
        ..CallEnd::from_stream(ending, received)
    }
}

// Fields: the state of one pass over a stream. Most of it changes with each event.
struct Observer<'a> {
    exchange: &'a Exchange,
    decoder: Decoder,
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    /// Whether an uncertain end of the reply is held back.
    holds_end: bool,
    /// Whether tool calls and everything after them are held back until they are whole.
    holds_calls: bool,
    /// Tool calls that wait for the next event.
    waiting: WaitingChoices,
    sent_parts: SentParts,
    /// Number of bytes of each part that are held back.
    unsent_parts: SentParts,
    outgoing: Vec<u8>,
    is_unread: bool,
    error: Option<ProviderError>,
    /// When heartbeats were first held back together with other events.
    idle_since: Option<Instant>,
    /// Tool calls that are known to be whole, with the length of their arguments in bytes.
    whole_calls: HashMap<u32, usize>,
    certain_calls: CertainCalls,
    memory: BytesReservation,
    /// Memory for the tool calls, in addition to their bytes.
    entry_bytes: usize,
    /// Bytes that arrived after the end.
    late_bytes: Vec<u8>,
}

impl<'a> Observer<'a> {
    fn new(exchange: &'a Exchange) -> Self {
        let cap = exchange.gateway.settings.limits.reply_bytes;
        Self {
            exchange,
            decoder: Decoder::new(cap),
            reader: exchange.attempt.request.stream(cap),
            writer: exchange.attempt.request.writer(cap),
            holds_end: false,
            holds_calls: false,
            waiting: WaitingChoices::default(),
            sent_parts: SentParts::default(),
            unsent_parts: SentParts::default(),
            outgoing: Vec::new(),
            is_unread: false,
            error: None,
            idle_since: None,
            whole_calls: HashMap::new(),
            certain_calls: CertainCalls::default(),
            entry_bytes: 0,
            late_bytes: Vec::new(),
            memory: exchange.gateway.held_bytes.new_reservation(exchange.gateway.settings.limits.held_bytes),
        }
    }

    /// Processes bytes. Returns how the stream ended, if it did.
    fn read(&mut self, data: &[u8]) -> Option<Ending> {
        if self.is_unread {
            self.outgoing.extend_from_slice(data);
            return None;
        }
        // Received tool calls use memory in addition to their bytes.
        let entry_bytes = self.reader.received().entry_bytes();
        let grown = entry_bytes.saturating_sub(std::mem::replace(&mut self.entry_bytes, entry_bytes));
        let has_room = self.memory.grow(data.len() + grown);
        let too_long = self.decoder.push(data).is_err() || !has_room;
        // Usually everything is forwarded unchanged.
        self.outgoing.reserve_exact(self.decoder.finished_bytes());
        while let Some(frame) = self.decoder.next_frame() {
            if let Some(ending) = self.observe_frame(frame_without_claims(frame)) {
                return Some(ending);
            }
        }
        if too_long {
            // A frame above the limit cannot be parsed. The rest is forwarded and cannot be recovered.
            self.is_unread = true;
            self.outgoing.extend(self.writer.release());
            let decoder = std::mem::replace(&mut self.decoder, Decoder::new(0));
            if let Tail::Residue(bytes) = decoder.finish() {
                self.outgoing.extend_from_slice(&bytes);
            }
        }
        None
    }

    fn observe_frame(&mut self, frame: Frame) -> Option<Ending> {
        let event = match self.reader.read_frame(&frame) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(request = self.exchange.client.id, %error, "the upstream sent an event that cannot be read");
                if error.is_broken_chunk() && self.exchange.mode() != ResumeMode::Warn {
                    // The content of this event is missing from everything after it, so the reply ends before
                    // the event.
                    return Some(Ending::UpstreamError);
                }
                // The client may be able to parse this event, but the rest can no longer be recovered.
                self.outgoing.extend_from_slice(&frame.raw);
                return None;
            }
        };
        if self.exchange.attempt.requests_usage && event.only_counts() {
            // The client did not request this event.
            return None;
        }
        let ending = match (&event.error, event.is_done) {
            (Some(_), _) => Some(Ending::UpstreamError),
            (None, true) => Some(Ending::Clean),
            (None, false) => None,
        };
        if self.is_held_back(&event) {
            if !self.holds_calls && !self.waiting.is_empty() {
                self.unsent_parts.add(&event);
            }
            self.writer.hold(frame, &event);
        } else {
            if !event.is_idle {
                self.sent_parts.merge(std::mem::take(&mut self.unsent_parts));
            }
            self.sent_parts.add(&event);
            self.writer.pass(&frame, &event, &mut self.outgoing);
        }
        self.error = event.error;
        ending
    }

    /// Whether an event must be held back until the end of the reply is certain.
    fn is_held_back(&mut self, event: &Event) -> bool {
        if event.is_idle {
            return self.is_held_back_while_idle();
        }
        self.holds_calls |= self.exchange.gateway.settings.tools.hold
            && event.pieces.iter().any(|delta| matches!(delta.piece, Piece::ToolCall { .. }));
        self.certain_calls.observe_event(self.reader.received(), event);
        let is_end = event.error.is_some() || self.ends_in_doubt(event);
        self.holds_end |= is_end;
        let had_waited = !self.waiting.is_empty();
        let waits = self.writer.calls_arrive_complete()
            && self.waiting.process_event(self.exchange, self.reader.received(), event);
        // The waiting tool call may be cut, so forward neither that call nor anything after it.
        self.holds_calls |= had_waited && is_end;
        // A tool call can be continued only before its end is reported.
        self.holds_calls = self.holds_calls || event.completed_call.is_some_and(|call| self.is_cut(call));
        self.holds_calls
            || is_end
            || event.completes_part
            || waits
            || (self.holds_end && event.pieces.is_empty())
    }

    /// Whether a comment or a ping is held back. It must not overtake held events, unless the client would receive
    /// nothing for too long.
    fn is_held_back_while_idle(&mut self) -> bool {
        if !self.writer.is_holding() {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        since.elapsed() < self.exchange.gateway.settings.limits.heartbeat
    }

    /// Whether a tool call was reported as complete although its arguments have begun and are not JSON.
    fn is_cut(&mut self, call: u32) -> bool {
        // Formats that report the end of tool calls have one choice.
        let Some(known) = self.reader.received().call_at(0, call) else { return false };
        if self.whole_calls.get(&call) == Some(&known.arguments.len()) {
            // These arguments were already found to be whole.
            return false;
        }
        if known.free_text {
            // Only the following events can show whether it is cut.
            return false;
        }
        let arguments = known.arguments.trim();
        let is_cut =
            !arguments.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err();
        if !is_cut {
            self.whole_calls.insert(call, known.arguments.len());
        }
        is_cut
    }

    /// Whether an event reports the end of a reply, and that end is uncertain.
    fn ends_in_doubt(&mut self, event: &Event) -> bool {
        let received = self.reader.received();
        if event.is_done {
            // Without a finish reason, this end is as doubtful as a closed connection.
            return received.choices().iter().any(|choice| choice.finish.is_none());
        }
        let choices = event.finishes.iter().filter_map(|finish| received.choice_at(finish.choice));
        let ended: Vec<&Choice> = choices.collect();
        let doubt = ended.iter().any(|choice| !self.is_certainly_whole(choice, event));
        if !doubt {
            let calls: Vec<(u32, usize)> =
                ended.iter().map(|choice| (choice.index, choice.tool_calls.len())).collect();
            self.certain_calls.note_certain(calls);
        }
        doubt
    }

    /// Whether an ended choice certainly needs no recovery. Its usage may still be missing.
    fn is_certainly_whole(&self, choice: &Choice, event: &Event) -> bool {
        let view = self.exchange.attempt.request.view();
        // A client may disconnect at the end of its reply, so the usage must arrive before that.
        let is_awaited = self.exchange.attempt.requests_usage && view.choices == 1;
        let count_may_come = event.usage.is_none()
            && (is_awaited || (self.exchange.single_reply_limit().is_some() && view.include_usage));
        let is_disclosed =
            self.exchange.gateway.settings.disclose.always || choice.unknown_finish_reason().is_some();
        if is_disclosed || count_may_come {
            return false;
        }
        let Some(sure) = self.certain_calls.first_doubtful_call(choice.index) else { return false };
        let counted = self.reader.received().output_tokens();
        find_suspects(self.exchange, choice, sure, Ending::Clean, counted, None).remaining.is_empty()
    }

    /// Returns how a stream ended when its connection closed. It ended normally if every choice has a finish reason.
    /// If the format's last event is missing, all requested choices must also be present.
    fn ending_at_close(&self) -> Ending {
        let choices = self.reader.received().choices();
        let request = &self.exchange.attempt.request;
        let is_all = !request.format().facts().needs_last_event
            || u32::try_from(choices.len()).is_ok_and(|count| count >= request.view().choices);
        if is_all && !choices.is_empty() && choices.iter().all(|choice| choice.finish.is_some()) {
            Ending::Clean
        } else {
            Ending::Dropped
        }
    }

    /// Whether the stream ended normally, but without usage.
    fn ended_without_usage(&self) -> bool {
        let received = self.reader.received();
        !self.is_unread && received.is_done() && !received.is_counted()
    }

    fn finish(mut self, ending: Ending, large: LargeInput) -> FinishedStream {
        let last = std::mem::take(&mut self.outgoing);
        let mut residue = self.late_bytes;
        match self.decoder.finish() {
            Tail::Clean => {}
            Tail::Frame(frame) => residue.extend(frame_without_claims(frame).raw),
            Tail::Residue(bytes) => residue.extend(bytes),
        }
        let parts = if self.is_unread {
            Vec::new()
        } else {
            collect_parts(self.exchange, self.reader.received(), ending, self.error.as_ref())
        };
        let observed = ObservedStream {
            reader: self.reader,
            writer: self.writer,
            ending,
            error: self.error,
            sent_parts: self.sent_parts,
            residue,
            parts,
            spent: None,
            _memory: self.memory,
            _large: large,
        };
        FinishedStream { observed, last, is_unread: self.is_unread }
    }
}

/// A stream after its end, with the bytes that were not forwarded yet.
struct FinishedStream {
    observed: ObservedStream,
    /// The last bytes, which the client has not received yet.
    last: Vec<u8>,
    /// Whether the stream could not be read to its end and was forwarded without parsing.
    is_unread: bool,
}
