//! Reads the first reply of a stream and forwards it at the same time.
//!
//! The gateway holds back only events that could make an incomplete reply look complete, which are the event with the
//! stop reason and all later ones. If parts have end events of their own, each of these is held until the next event.
//! If the end is certain, nothing is held back, unless usage is still missing.

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
use super::suspects::{Suspects, suspects, without_surplus, worst};
use super::waiting::WaitingChoices;
use crate::admission::BytesReservation;
use crate::body::{AnyBody, TimedBody};
use crate::exchange::Exchange;
use crate::ledger::{Call, CallEnd, CallUsage, RequestEnd, read_late_usage};
use crate::reply::{ClientGone, ClientStream};
use crate::settings::Mode;
use crate::upstream::frame_without_claims;
use crate::work::{self, LARGE_BYTES, LargeInput};

/// Events that arrive together are forwarded together up to this size, because forwarding one costs as much as
/// reading it.
const MAX_GATHERED_BYTES: usize = 2 * 1024;

/// A stream after its last byte.
pub(crate) enum SeenStream {
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
    pub(crate) parts: Parts,
    /// The usage of the call.
    pub(crate) spent: Option<CallUsage>,
    /// The memory reserved for the stream.
    pub(crate) _holding: BytesReservation,
    pub(crate) _large: LargeInput,
}

/// The choices of a stream, each with the parts that may be cut.
pub(crate) type Parts = Vec<(StreamChoice, Suspects)>;

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

/// Number of bytes of each part that the client has. A part is the text of a choice, or the arguments of a call.
#[derive(Debug, Default)]
pub(crate) struct SentParts(HashMap<(u32, Option<u32>), usize>);

impl SentParts {
    /// Returns the number of bytes that the client has, or `None` for a call of which it has nothing.
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

/// Forwards the upstream's stream to the client until it ends or its end is in doubt. Then settles its call.
///
/// # Errors
/// [`ClientGone`] if the client has disconnected.
pub(crate) async fn stream(
    exchange: &Exchange,
    call: Option<Call>,
    upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<SeenStream, ClientGone> {
    let limits = &exchange.gateway.settings.limits;
    let mut upstream = TimedBody::new(upstream, limits.idle, exchange.client.deadline);
    let mut observer = Observer::new(exchange);
    let (mut came, mut large) = (0_usize, None);
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
        came = came.saturating_add(data.len());
        if large.is_none() && came >= LARGE_BYTES && !observer.is_unread {
            large = Some(work::large(came).await);
        }
        let gathered = observer.outgoing.len();
        let ended = observer.read(&data);
        if let Some(call) = &call {
            call.read((!observer.is_unread).then(|| observer.reader.received().choices()));
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
        None => work::large(came.saturating_add(exchange.attempt.request.body().len())).await,
    };
    let PassedParts { mut observed, last, is_unread: unread } = observer.finish(ending, large);
    // Settle the call before the client gets the last bytes, so that a complete reply is recorded as complete.
    if let Some(call) = call {
        // A stream that stopped being parsed at some event was too long to keep.
        let ending = if unread && ending == Ending::Clean { Ending::OverCap } else { ending };
        let end =
            CallEnd { is_unread: unread, ..call_end(observed.reader.received(), ending, &observed.parts) };
        observed.spent = call.settle(end);
    }
    client.send(last).await?;
    if unread {
        exchange.calls.watch.end(RequestEnd::Unread);
        client.send(observed.residue).await?;
        return Ok(SeenStream::Unread(ending));
    }
    Ok(SeenStream::Read(Box::new(observed)))
}

/// Maximum number of missing choices to consider. No provider returns more.
const MAX_CHOICES: u32 = 128;

fn parts(exchange: &Exchange, received: &Received, ending: Ending, error: Option<&ProviderError>) -> Parts {
    let mut choices: Vec<StreamChoice> = (0..received.choices().len()).map(StreamChoice::Received).collect();
    if ending != Ending::Clean {
        // If a failed stream contains nothing of a choice, the choice counts as cut at its beginning.
        let asked_for = 0..exchange.attempt.request.view().choices.min(MAX_CHOICES);
        let missing = asked_for.filter(|index| received.choice_at(*index).is_none());
        choices.extend(missing.map(|index| StreamChoice::Missing(Box::new(Choice::new(index)))));
    }
    let of = |whose: StreamChoice| {
        let choice = whose.choice(received)?;
        let ending = if choice.finish.is_some() { Ending::Clean } else { ending };
        let parts = suspects(exchange, choice, 0, ending, received.output_tokens(), error);
        Some((whose, parts))
    };
    let mut choices: Parts = choices.into_iter().filter_map(of).collect();
    without_surplus(exchange, choices.iter_mut().map(|(_, parts)| parts));
    choices
}

/// Returns how the stream's call ended.
fn call_end(received: &Received, ending: Ending, parts: &Parts) -> CallEnd {
    CallEnd {
        judgement: worst(parts.iter().map(|(_, parts)| parts.worst)),
        ..CallEnd::stream(ending, received)
    }
}

// Fields: the state of one pass over a stream, most of which changes with each event.
struct Observer<'a> {
    exchange: &'a Exchange,
    decoder: Decoder,
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    /// Whether an end in doubt is held back.
    holds_end: bool,
    /// Whether calls and everything after them are held back until they are whole.
    holds_calls: bool,
    /// Calls that wait for the next event.
    waiting: WaitingChoices,
    sent_parts: SentParts,
    /// Number of bytes of each part that are held back.
    unsent_parts: SentParts,
    outgoing: Vec<u8>,
    is_unread: bool,
    error: Option<ProviderError>,
    /// Since when heartbeats are held back together with other events.
    idle_since: Option<Instant>,
    /// Calls that are known to be whole, with the length of their arguments in bytes.
    whole_calls: HashMap<u32, usize>,
    certain_calls: CertainCalls,
    holding: BytesReservation,
    /// Memory for the calls, in addition to their bytes.
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
            holding: exchange.gateway.held_bytes.part(exchange.gateway.settings.limits.held_bytes),
        }
    }

    /// Processes bytes. Returns how the stream ended, if it did.
    fn read(&mut self, data: &[u8]) -> Option<Ending> {
        if self.is_unread {
            self.outgoing.extend_from_slice(data);
            return None;
        }
        // The content that arrived earlier uses this memory in addition to its bytes.
        let entry_bytes = self.reader.received().entry_bytes();
        let grown = entry_bytes.saturating_sub(std::mem::replace(&mut self.entry_bytes, entry_bytes));
        let has_room = self.holding.grow(data.len() + grown);
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
                if error.is_broken_chunk() && self.exchange.mode() != Mode::Warn {
                    // Everything after this event lacks its content, so the reply ends before it.
                    return Some(Ending::UpstreamError);
                }
                // The client may be able to parse this event, but the rest cannot be recovered any more.
                self.outgoing.extend_from_slice(&frame.raw);
                return None;
            }
        };
        if self.exchange.attempt.asks_usage && event.only_counts() {
            // The client did not request this event.
            return None;
        }
        let ending = match (&event.error, event.is_done) {
            (Some(_), _) => Some(Ending::UpstreamError),
            (None, true) => Some(Ending::Clean),
            (None, false) => None,
        };
        if self.is_held_back(&event) {
            if !self.holds_calls && !self.waiting.is_over() {
                self.unsent_parts.add(&event);
            }
            self.writer.hold(frame, &event);
        } else {
            if !event.idle {
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
        if event.idle {
            return self.is_held_back_while_idle();
        }
        self.holds_calls |= self.exchange.gateway.settings.tools.hold
            && event.pieces.iter().any(|delta| matches!(delta.piece, Piece::ToolCall { .. }));
        self.certain_calls.take(self.reader.received(), event);
        let is_end = event.error.is_some() || self.ends_in_doubt(event);
        self.holds_end |= is_end;
        let had_waited = !self.waiting.is_over();
        let waits =
            self.writer.calls_come_whole() && self.waiting.next(self.exchange, self.reader.received(), event);
        // The held call may be cut, so nothing before it may be forwarded any more.
        self.holds_calls |= had_waited && is_end;
        // A call can be continued only before its end is reported.
        self.holds_calls = self.holds_calls || event.closed_call.is_some_and(|call| self.is_cut(call));
        self.holds_calls || is_end || event.closes || waits || (self.holds_end && event.pieces.is_empty())
    }

    /// Whether a comment or a ping is held back. It must not overtake held events, unless the client would receive
    /// nothing for too long.
    fn is_held_back_while_idle(&mut self) -> bool {
        if !self.writer.holds() {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        since.elapsed() < self.exchange.gateway.settings.limits.heartbeat
    }

    /// Whether a call was reported as complete although its arguments have begun and are not JSON.
    fn is_cut(&mut self, call: u32) -> bool {
        // Formats that report the end of calls have one choice.
        let Some(known) = self.reader.received().call_at(0, call) else { return false };
        if self.whole_calls.get(&call) == Some(&known.arguments.len()) {
            // The call was reported complete before.
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

    /// Whether an event reports the end of a reply, and that end is in doubt.
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
        let is_awaited = self.exchange.attempt.asks_usage && view.choices == 1;
        let count_may_come = event.usage.is_none()
            && (is_awaited || (self.exchange.single_reply_limit().is_some() && view.include_usage));
        let is_disclosed = self.exchange.gateway.settings.disclose.always || choice.unknown_end().is_some();
        if is_disclosed || count_may_come {
            return false;
        }
        let Some(sure) = self.certain_calls.first_doubtful_call(choice.index) else { return false };
        let counted = self.reader.received().output_tokens();
        suspects(self.exchange, choice, sure, Ending::Clean, counted, None).remaining.is_empty()
    }

    /// Returns how a stream ended when its connection closed. It ended normally if every choice has a finish reason.
    /// If the format's last event is missing, all requested choices must also be present.
    fn ending_at_close(&self) -> Ending {
        let choices = self.reader.received().choices();
        let request = &self.exchange.attempt.request;
        let is_all = !request.format().facts().wants_last_event
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

    fn finish(mut self, ending: Ending, large: LargeInput) -> PassedParts {
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
            parts(self.exchange, self.reader.received(), ending, self.error.as_ref())
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
            _holding: self.holding,
            _large: large,
        };
        PassedParts { observed, last, is_unread: self.is_unread }
    }
}

/// The forwarded and the remaining data of a stream.
struct PassedParts {
    observed: ObservedStream,
    /// The last bytes, which the client has not received yet.
    last: Vec<u8>,
    /// Whether the stream could not be read to its end and was forwarded without parsing.
    is_unread: bool,
}
