//! The first reply of a stream: its bytes pass as they come, and are read on the way.
//!
//! Held back is only what a client would take for the end of a reply that is not whole: from the chunk with
//! the finish reason on. A reply whose end is beyond doubt is not held back at all.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use endmark_core::{Ending, Judgement, Validate};
use endmark_wire::openai_chat::{ChatStream, Choice, Chunk, Finish, Piece};
use endmark_wire::sse::{Decoder, Frame, Tail};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::client::ClientStream;
use super::exchange::Exchange;
use super::suspects::suspects;
use crate::body::AnyBody;
use crate::held::Holding;
use crate::recovery::{ClientGone, judgement};
use crate::settings::Mode;

/// A frame that the client has not got yet.
pub(super) struct Held {
    pub(super) frame: Frame,
    pub(super) says: Says,
}

/// What a held frame says.
pub(super) enum Says {
    /// What came of choices, how some ended, or what they cost.
    Chunk { of: Vec<u32>, finishes: Vec<Finish>, has_usage: bool },
    /// That the upstream failed.
    Error,
    /// That the stream is over.
    Done,
}

impl Held {
    /// Whether it holds the end of one of these choices.
    pub(super) fn ends_one_of(&self, choices: &[u32]) -> bool {
        match &self.says {
            Says::Chunk { finishes, .. } => finishes.iter().any(|finish| choices.contains(&finish.choice)),
            Says::Error | Says::Done => false,
        }
    }

    /// Whether something of one of these choices is in it.
    pub(super) fn is_of(&self, choices: &[u32]) -> bool {
        match &self.says {
            Says::Chunk { of, .. } => of.iter().any(|choice| choices.contains(choice)),
            Says::Error | Says::Done => false,
        }
    }

    /// Whether it only counts tokens.
    pub(super) fn only_counts(&self) -> bool {
        matches!(&self.says, Says::Chunk { of, has_usage: true, .. } if of.is_empty())
    }
}

/// A stream after its last byte.
pub(super) struct Observed {
    pub(super) stream: ChatStream,
    pub(super) held: Vec<Held>,
    pub(super) ending: Ending,
    /// Bytes of each part that the client has.
    pub(super) sent: Sent,
    /// What came last of what the client is to have, and has not got yet.
    pub(super) last: Vec<u8>,
    /// Bytes after the last whole frame.
    pub(super) residue: Vec<u8>,
    /// The stream could not be read to its end, and passed unread.
    pub(super) unread: bool,
    /// The room that all of it takes.
    _holding: Holding,
}

/// How much the client has of each part: of a choice's text (no call), or of a call's arguments.
#[derive(Debug, Default)]
pub(super) struct Sent(HashMap<(u32, Option<u32>), usize>);

impl Sent {
    pub(super) fn of(&self, choice: u32, call: Option<u32>) -> usize {
        self.0.get(&(choice, call)).copied().unwrap_or(0)
    }

    fn add(&mut self, chunk: &Chunk) {
        for delta in &chunk.pieces {
            let (call, length) = match &delta.piece {
                Piece::Text(text) => (None, text.len()),
                Piece::ToolCall { index, arguments, .. } => (Some(*index), arguments.len()),
                Piece::Reasoning(_) | Piece::Refusal(_) => continue,
            };
            *self.0.entry((delta.choice, call)).or_default() += length;
        }
    }
}

/// Passes the upstream's stream to the client until it ends, or until its end is in doubt.
pub(super) async fn observe(
    exchange: &Exchange,
    mut upstream: AnyBody,
    client: &mut ClientStream,
) -> Result<Observed, ClientGone> {
    let limits = &exchange.gateway.settings.limits;
    let mut observer = Observer::new(exchange);
    let ending = loop {
        let next = tokio::select! {
            next = next_data(&mut upstream, limits.idle, exchange.deadline) => next,
            // What nobody reads any more nobody pays for.
            () = client.gone() => return Err(ClientGone),
        };
        let data = match next {
            Ok(Some(data)) => data,
            // What passes unread has the end that HTTP says.
            Ok(None) if observer.unread => break Ending::Clean,
            Ok(None) => break observer.ending_at_close(),
            Err(ending) => break ending,
        };
        if let Some(ending) = observer.read(&data) {
            break ending;
        }
        client.send(std::mem::take(&mut observer.outgoing)).await?;
    };
    Ok(observer.finish(ending))
}

/// The next bytes; none at the end.
async fn next_data(body: &mut AnyBody, idle: Duration, deadline: Instant) -> Result<Option<Bytes>, Ending> {
    loop {
        let until = deadline.min(Instant::now() + idle);
        match timeout_at(until, body.frame()).await {
            Err(_) => return Err(Ending::Stalled),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Ending::Dropped),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

struct Observer<'a> {
    exchange: &'a Exchange,
    decoder: Decoder,
    stream: ChatStream,
    held: Vec<Held>,
    sent: Sent,
    outgoing: Vec<u8>,
    unread: bool,
    holding: Holding,
}

impl<'a> Observer<'a> {
    fn new(exchange: &'a Exchange) -> Self {
        let cap = exchange.gateway.settings.limits.reply_bytes;
        Self {
            exchange,
            decoder: Decoder::new(cap),
            stream: ChatStream::new(&exchange.request, cap),
            held: Vec::new(),
            sent: Sent::default(),
            outgoing: Vec::new(),
            unread: false,
            holding: exchange.gateway.held.part(exchange.gateway.settings.limits.held_bytes),
        }
    }

    /// Takes bytes; says how the stream ended, if it did.
    fn read(&mut self, data: &[u8]) -> Option<Ending> {
        if self.unread {
            self.outgoing.extend_from_slice(data);
            return None;
        }
        let has_room = self.holding.grow(data.len());
        let too_long = self.decoder.push(data).is_err() || !has_room;
        while let Some(frame) = self.decoder.next_frame() {
            if let Some(ending) = self.frame(frame) {
                return Some(ending);
            }
        }
        if too_long {
            // A frame over the cap cannot be read; what follows passes, and cannot be mended.
            self.unread = true;
            let decoder = std::mem::replace(&mut self.decoder, Decoder::new(0));
            if let Tail::Residue(bytes) = decoder.finish() {
                self.outgoing.extend_from_slice(&bytes);
            }
        }
        None
    }

    fn frame(&mut self, frame: Frame) -> Option<Ending> {
        let chunk = match self.stream.frame(&frame) {
            Ok(chunk) => chunk,
            Err(error) => {
                tracing::warn!(request = self.exchange.id, %error, "the upstream sent an event that cannot be read");
                if error.is_broken_chunk() && self.exchange.mode != Mode::Warn {
                    // What it held is missing in all that follows, so the reply ends before it.
                    return Some(Ending::UpstreamError);
                }
                // The client may be able to read it. What follows cannot be mended any more.
                self.outgoing.extend_from_slice(&frame.raw);
                return None;
            }
        };
        let ending = match (&chunk.error, chunk.done) {
            (Some(_), _) => Some(Ending::UpstreamError),
            (None, true) => Some(Ending::Clean),
            (None, false) => None,
        };
        let has_calls = self.exchange.gateway.settings.hold_tool_calls
            && chunk.pieces.iter().any(|delta| matches!(delta.piece, Piece::ToolCall { .. }));
        let only_ends = chunk.pieces.is_empty();
        let hold = has_calls || !self.may_pass(&chunk) || (only_ends && !self.held.is_empty());
        if hold {
            let says = match (&chunk.error, chunk.done) {
                (Some(_), _) => Says::Error,
                (None, true) => Says::Done,
                (None, false) => Says::Chunk {
                    of: chunk
                        .pieces
                        .iter()
                        .map(|delta| delta.choice)
                        .chain(chunk.finishes.iter().map(|finish| finish.choice))
                        .collect(),
                    finishes: chunk.finishes,
                    has_usage: chunk.usage.is_some(),
                },
            };
            self.held.push(Held { frame, says });
        } else {
            self.sent.add(&chunk);
            self.outgoing.extend_from_slice(&frame.raw);
        }
        ending
    }

    /// Whether a chunk says nothing about an end that is still in doubt.
    fn may_pass(&self, chunk: &Chunk) -> bool {
        if chunk.error.is_some() {
            return false;
        }
        if chunk.done {
            // Without any finish reason before it, this end is as doubtful as a drop.
            return self.stream.choices().iter().all(|choice| choice.finish.is_some());
        }
        chunk.finishes.iter().all(|finish| {
            self.stream.choice_at(finish.choice).is_none_or(|choice| self.is_beyond_doubt(choice))
        })
    }

    /// Whether a choice that ended needs nothing, whatever may still be counted of its tokens.
    fn is_beyond_doubt(&self, choice: &Choice) -> bool {
        let count_may_come =
            self.exchange.limit_of_one_reply().is_some() && self.exchange.request.include_usage;
        if self.exchange.gateway.settings.disclose_always || count_may_come {
            return false;
        }
        suspects(self.exchange, choice, Ending::Clean, self.stream.output_tokens()).iter().all(|suspect| {
            match judgement(suspect) {
                Judgement::Passed => true,
                Judgement::Whole { disclosed } => {
                    !disclosed
                        && suspect
                            .schema
                            .as_ref()
                            .is_none_or(|schema| schema.validate(&suspect.reply.text).is_empty())
                }
                Judgement::Cut(_) => false,
            }
        })
    }

    /// How a stream ended whose bytes just stopped: a finish reason for every choice is an end, too.
    fn ending_at_close(&self) -> Ending {
        let choices = self.stream.choices();
        if !choices.is_empty() && choices.iter().all(|choice| choice.finish.is_some()) {
            Ending::Clean
        } else {
            Ending::Dropped
        }
    }

    fn finish(mut self, ending: Ending) -> Observed {
        let last = std::mem::take(&mut self.outgoing);
        let residue = match self.decoder.finish() {
            Tail::Clean => Vec::new(),
            Tail::Frame(frame) => frame.raw,
            Tail::Residue(bytes) => bytes,
        };
        Observed {
            stream: self.stream,
            held: self.held,
            ending,
            sent: self.sent,
            last,
            residue,
            unread: self.unread,
            _holding: self.holding,
        }
    }
}
