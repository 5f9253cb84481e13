//! The first reply of a stream: its bytes pass as they come, and are read on the way.
//!
//! Held back is only what a client would take for the end of a reply that is not whole: from the event with the stop
//! reason on, and where parts of a reply have ends of their own, each until the next event. A reply whose end is beyond
//! doubt is not held back at all, unless its tokens are still to be counted.

use std::collections::HashMap;
use std::pin::pin;

use endmark_recovery::Ending;
use endmark_wire::error::ProviderError;
use endmark_wire::reply::{Choice, Event, Piece, Received};
use endmark_wire::sse::{Decoder, Frame, Tail};
use endmark_wire::stream::Reader;
use endmark_wire::writer::Writer;
use tokio::time::Instant;

use super::sure::Sure;
use super::suspects::{Suspects, suspects, without_surplus, worst};
use super::waiting::Waiting;
use crate::admission::Holding;
use crate::body::{AnyBody, Patient};
use crate::exchange::Exchange;
use crate::ledger::{Call, CallEnd, Ended, Spent, counts_behind};
use crate::reply::{ClientGone, ClientStream};
use crate::settings::Mode;
use crate::upstream::frame_without_claims;
use crate::work::{self, LARGE_BYTES, Large};

/// Events that came together go on together up to this size: each that goes on by itself costs as much as to read it.
const MAX_GATHERED_BYTES: usize = 2 * 1024;

/// A stream after its last byte.
pub(crate) enum Seen {
    /// It could not be read to its end, and passed unread: its end is that which HTTP says.
    Unread(Ending),
    Read(Box<Observed>),
}

/// A stream that was read to its end.
pub(crate) struct Observed {
    pub(crate) reader: Box<dyn Reader>,
    /// The client's side of it, with what is held back.
    pub(crate) writer: Box<dyn Writer>,
    pub(crate) ending: Ending,
    /// The error by which the upstream ended it.
    pub(crate) error: Option<ProviderError>,
    /// Bytes of each part that the client has.
    pub(crate) sent: Sent,
    /// Bytes after the last whole frame.
    pub(crate) residue: Vec<u8>,
    /// Its choices, each with its parts that may be cut.
    pub(crate) parts: Parts,
    /// What its call used.
    pub(crate) spent: Option<Spent>,
    /// The room that all of it takes.
    pub(crate) _holding: Holding,
    pub(crate) _large: Large,
}

/// The choices of a stream, each with its parts that may be cut.
pub(crate) type Parts = Vec<(Whose, Suspects)>;

/// A choice of a stream.
pub(crate) enum Whose {
    /// It came, at this place of what was received.
    Received(usize),
    /// Nothing of it came.
    Missing(Box<Choice>),
}

impl Whose {
    /// The choice, as far as it came.
    pub(crate) fn choice<'a>(&'a self, received: &'a Received) -> Option<&'a Choice> {
        match self {
            Self::Received(at) => received.choices().get(*at),
            Self::Missing(choice) => Some(choice),
        }
    }
}

/// How much the client has of each part: of a choice's text (no call), or of a call's arguments.
#[derive(Debug, Default)]
pub(crate) struct Sent(HashMap<(u32, Option<u32>), usize>);

impl Sent {
    /// None of a call that the client has nothing of.
    pub(crate) fn of(&self, choice: u32, call: Option<u32>) -> Option<usize> {
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

/// Passes the upstream's stream to the client until it ends, or until its end is in doubt; then settles the call that
/// gave it.
///
/// # Errors
/// [`ClientGone`] if nobody reads it any more.
pub(crate) async fn stream(
    exchange: &Exchange,
    call: Option<Call>,
    upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<Seen, ClientGone> {
    let limits = &exchange.gateway.settings.limits;
    let mut upstream = Patient::new(upstream, limits.idle, exchange.deadline);
    let mut observer = Observer::new(exchange);
    let (mut came, mut large) = (0_usize, None);
    let mut ready = None;
    let ending = loop {
        let next = match ready.take() {
            Some(next) => next,
            None => {
                let next = exchange.gateway.stopping.unless_interrupted(pin!(upstream.next())).await;
                next.unwrap_or(Err(Ending::Interrupted))
            }
        };
        let data = match next {
            Ok(Some(data)) => data,
            // What passes unread has the end that HTTP says.
            Ok(None) if observer.unread => break Ending::Clean,
            Ok(None) => break observer.ending_at_close(),
            Err(ending) => break ending,
        };
        came = came.saturating_add(data.len());
        if large.is_none() && came >= LARGE_BYTES && !observer.unread {
            large = Some(work::large(came).await);
        }
        let ended = observer.read(&data);
        if let Some(call) = &call {
            call.read((!observer.unread).then(|| observer.reader.received().choices()));
        }
        if let Some(ending) = ended {
            break ending;
        }
        if observer.outgoing.len() < MAX_GATHERED_BYTES {
            ready = upstream.next_ready().await;
        }
        if ready.is_none() {
            client.send(std::mem::take(&mut observer.outgoing)).await?;
        }
    };
    if ending == Ending::Clean && call.is_some() && observer.ended_uncounted() {
        let Observer { decoder, reader, behind, .. } = &mut observer;
        *behind = counts_behind(decoder, reader, &mut upstream).await;
    }
    let large = match large {
        Some(large) => large,
        // A continuation request contains the whole request.
        None => work::large(came.saturating_add(exchange.request.body().len())).await,
    };
    let Passed { mut observed, last, unread } = observer.finish(ending, large);
    // Before the last bytes go to the client: what it has whole is written down as that.
    if let Some(call) = call {
        // A stream that passed unread from some event on was too long to be kept.
        let ending = if unread && ending == Ending::Clean { Ending::OverCap } else { ending };
        let end = CallEnd { unread, ..ended(observed.reader.received(), ending, &observed.parts) };
        observed.spent = call.settle(end);
    }
    client.send(last).await?;
    if unread {
        exchange.calls.watch.end(Ended::Unread);
        client.send(observed.residue).await?;
        return Ok(Seen::Unread(ending));
    }
    Ok(Seen::Read(Box::new(observed)))
}

/// More choices than these are not missed: no provider gives as many.
const MOST_CHOICES: u32 = 128;

fn parts(exchange: &Exchange, received: &Received, ending: Ending, error: Option<&ProviderError>) -> Parts {
    let mut choices: Vec<Whose> = (0..received.choices().len()).map(Whose::Received).collect();
    if ending != Ending::Clean {
        // What a stream that went wrong has nothing of is a reply, too, cut before its first character.
        let asked_for = 0..exchange.request.view().choices.min(MOST_CHOICES);
        let missing = asked_for.filter(|index| received.choice_at(*index).is_none());
        choices.extend(missing.map(|index| Whose::Missing(Box::new(Choice::new(index)))));
    }
    let of = |whose: Whose| {
        let choice = whose.choice(received)?;
        let ending = if choice.finish.is_some() { Ending::Clean } else { ending };
        let parts = suspects(exchange, choice, 0, ending, received.output_tokens(), error);
        Some((whose, parts))
    };
    let mut choices: Parts = choices.into_iter().filter_map(of).collect();
    without_surplus(exchange, choices.iter_mut().map(|(_, parts)| parts));
    choices
}

/// How the call ended whose answer the stream is.
fn ended(received: &Received, ending: Ending, parts: &Parts) -> CallEnd {
    CallEnd { judged: worst(parts.iter().map(|(_, parts)| parts.worst)), ..CallEnd::stream(ending, received) }
}

struct Observer<'a> {
    exchange: &'a Exchange,
    decoder: Decoder,
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    /// An end that is in doubt is held back.
    holds_end: bool,
    /// Calls are held back until they are whole, and with them all that follows.
    holds_calls: bool,
    /// Calls that wait for what follows them.
    waiting: Waiting,
    sent: Sent,
    /// What waits with them.
    unsent: Sent,
    outgoing: Vec<u8>,
    unread: bool,
    error: Option<ProviderError>,
    /// Since when what only says that the stream lives waits behind what is held back.
    idle_since: Option<Instant>,
    /// The calls that were found to be whole, with so many bytes of arguments.
    whole_calls: HashMap<u32, usize>,
    sure: Sure,
    holding: Holding,
    /// What of it is held for calls, besides their bytes.
    entry_bytes: usize,
    /// What came behind its end.
    behind: Vec<u8>,
}

impl<'a> Observer<'a> {
    fn new(exchange: &'a Exchange) -> Self {
        let cap = exchange.gateway.settings.limits.reply_bytes;
        Self {
            exchange,
            decoder: Decoder::new(cap),
            reader: exchange.request.stream(cap),
            writer: exchange.request.writer(cap),
            holds_end: false,
            holds_calls: false,
            waiting: Waiting::default(),
            sent: Sent::default(),
            unsent: Sent::default(),
            outgoing: Vec::new(),
            unread: false,
            error: None,
            idle_since: None,
            whole_calls: HashMap::new(),
            sure: Sure::default(),
            entry_bytes: 0,
            behind: Vec::new(),
            holding: exchange.gateway.held.part(exchange.gateway.settings.limits.held_bytes),
        }
    }

    /// Takes bytes; says how the stream ended, if it did.
    fn read(&mut self, data: &[u8]) -> Option<Ending> {
        if self.unread {
            self.outgoing.extend_from_slice(data);
            return None;
        }
        // What came before took this beside its bytes.
        let entry_bytes = self.reader.received().entry_bytes();
        let grown = entry_bytes.saturating_sub(std::mem::replace(&mut self.entry_bytes, entry_bytes));
        let has_room = self.holding.grow(data.len() + grown);
        let too_long = self.decoder.push(data).is_err() || !has_room;
        // Mostly all of it passes as it came.
        self.outgoing.reserve_exact(self.decoder.finished());
        while let Some(frame) = self.decoder.next_frame() {
            if let Some(ending) = self.frame(frame_without_claims(frame)) {
                return Some(ending);
            }
        }
        if too_long {
            // A frame over the cap cannot be read; what follows passes, and cannot be mended.
            self.unread = true;
            self.outgoing.extend(self.writer.release());
            let decoder = std::mem::replace(&mut self.decoder, Decoder::new(0));
            if let Tail::Residue(bytes) = decoder.finish() {
                self.outgoing.extend_from_slice(&bytes);
            }
        }
        None
    }

    fn frame(&mut self, frame: Frame) -> Option<Ending> {
        let event = match self.reader.frame(&frame) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(request = self.exchange.id, %error, "the upstream sent an event that cannot be read");
                if error.is_broken_chunk() && self.exchange.mode() != Mode::Warn {
                    // What it held is missing in all that follows, so the reply ends before it.
                    return Some(Ending::UpstreamError);
                }
                // The client may be able to read it. What follows cannot be mended any more.
                self.outgoing.extend_from_slice(&frame.raw);
                return None;
            }
        };
        if self.exchange.asks_usage && event.only_counts() {
            // The client did not ask for it.
            return None;
        }
        let ending = match (&event.error, event.done) {
            (Some(_), _) => Some(Ending::UpstreamError),
            (None, true) => Some(Ending::Clean),
            (None, false) => None,
        };
        if self.is_held_back(&event) {
            if !self.holds_calls && !self.waiting.is_over() {
                self.unsent.add(&event);
            }
            self.writer.hold(frame, &event);
        } else {
            if !event.idle {
                self.sent.merge(std::mem::take(&mut self.unsent));
            }
            self.sent.add(&event);
            self.writer.pass(&frame, &event, &mut self.outgoing);
        }
        self.error = event.error;
        ending
    }

    /// Whether the client must not have an event before it is known how its reply ends.
    fn is_held_back(&mut self, event: &Event) -> bool {
        if event.idle {
            return self.is_held_back_while_idle();
        }
        self.holds_calls |= self.exchange.gateway.settings.tools.hold
            && event.pieces.iter().any(|delta| matches!(delta.piece, Piece::ToolCall { .. }));
        self.sure.take(self.reader.received(), event);
        let is_end = event.error.is_some() || self.ends_in_doubt(event);
        self.holds_end |= is_end;
        let had_waited = !self.waiting.is_over();
        let waits =
            self.writer.calls_come_whole() && self.waiting.next(self.exchange, self.reader.received(), event);
        // What waited may be cut. Nothing may overtake it any more.
        self.holds_calls |= had_waited && is_end;
        // Only as long as its end is not told can it go on.
        self.holds_calls = self.holds_calls || event.closed_call.is_some_and(|call| self.is_cut(call));
        self.holds_calls || is_end || event.closes || waits || (self.holds_end && event.pieces.is_empty())
    }

    /// Whether a comment or a ping waits: it overtakes nothing, but for a client that would not hear anything for long.
    fn is_held_back_while_idle(&mut self) -> bool {
        if !self.writer.holds() {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        since.elapsed() < self.exchange.gateway.settings.limits.heartbeat
    }

    /// Whether a call that is said to be complete is not: its arguments have begun, and are no JSON.
    fn is_cut(&mut self, call: u32) -> bool {
        // Formats that say so have one choice.
        let Some(known) = self.reader.received().call_at(0, call) else { return false };
        if self.whole_calls.get(&call) == Some(&known.arguments.len()) {
            // It was said before.
            return false;
        }
        if known.free_text {
            // Nothing but what follows tells.
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

    /// Whether an event says of a reply that it ended, and that is in doubt.
    fn ends_in_doubt(&mut self, event: &Event) -> bool {
        let received = self.reader.received();
        if event.done {
            // Without any finish reason before it, this end is as doubtful as a drop.
            return received.choices().iter().any(|choice| choice.finish.is_none());
        }
        let choices = event.finishes.iter().filter_map(|finish| received.choice_at(finish.choice));
        let ended: Vec<&Choice> = choices.collect();
        let doubt = ended.iter().any(|choice| !self.is_beyond_doubt(choice, event));
        if !doubt {
            let calls: Vec<(u32, usize)> =
                ended.iter().map(|choice| (choice.index, choice.tool_calls.len())).collect();
            self.sure.are_beyond_doubt(calls);
        }
        doubt
    }

    /// Whether a choice that ended needs nothing, whatever may still be counted of its tokens.
    fn is_beyond_doubt(&self, choice: &Choice, event: &Event) -> bool {
        let view = self.exchange.request.view();
        // A client that leaves when its reply ends is not to leave before its tokens are counted.
        let is_awaited = self.exchange.asks_usage && view.choices == 1;
        let count_may_come = event.usage.is_none()
            && (is_awaited || (self.exchange.limit_of_one_reply().is_some() && view.include_usage));
        let is_disclosed = self.exchange.gateway.settings.disclose.always || choice.unknown_end().is_some();
        if is_disclosed || count_may_come {
            return false;
        }
        let Some(sure) = self.sure.from(choice.index) else { return false };
        let counted = self.reader.received().output_tokens();
        suspects(self.exchange, choice, sure, Ending::Clean, counted, None).left.is_empty()
    }

    /// How a stream ended whose bytes just stopped: a finish reason for every choice is an end, too. Where the format has a
    /// last event of its own that did not come, all choices have to be there that were asked for.
    fn ending_at_close(&self) -> Ending {
        let choices = self.reader.received().choices();
        let request = &self.exchange.request;
        let is_all = !request.format().facts().wants_last_event
            || u32::try_from(choices.len()).is_ok_and(|count| count >= request.view().choices);
        if is_all && !choices.is_empty() && choices.iter().all(|choice| choice.finish.is_some()) {
            Ending::Clean
        } else {
            Ending::Dropped
        }
    }

    /// Whether the stream is at its own end, and its tokens were not counted.
    fn ended_uncounted(&self) -> bool {
        let received = self.reader.received();
        !self.unread && received.is_done() && !received.is_counted()
    }

    fn finish(mut self, ending: Ending, large: Large) -> Passed {
        let last = std::mem::take(&mut self.outgoing);
        let mut residue = self.behind;
        match self.decoder.finish() {
            Tail::Clean => {}
            Tail::Frame(frame) => residue.extend(frame_without_claims(frame).raw),
            Tail::Residue(bytes) => residue.extend(bytes),
        }
        let parts = if self.unread {
            Vec::new()
        } else {
            parts(self.exchange, self.reader.received(), ending, self.error.as_ref())
        };
        let observed = Observed {
            reader: self.reader,
            writer: self.writer,
            ending,
            error: self.error,
            sent: self.sent,
            residue,
            parts,
            spent: None,
            _holding: self.holding,
            _large: large,
        };
        Passed { observed, last, unread: self.unread }
    }
}

/// What has passed, and what is to pass.
struct Passed {
    observed: Observed,
    /// What came last of what the client is to have, and has not got yet.
    last: Vec<u8>,
    /// The stream could not be read to its end, and passed unread.
    unread: bool,
}
