//! A streamed reply, chunk by chunk.

use endmark_recovery::Stop;

use super::candidate::{
    call_arguments, has_extra, is_grounded, is_in_pieces, is_thought, last_content_part, number, part_call,
    part_signature, part_text, tally_other_part, web_searches, will_continue,
};
use super::error;
use super::stop;
use super::usage;
use crate::json::{Fields, Value};
use crate::reply::{ChoicePiece, Event, EventError, Fidelity, Piece, Received};
use crate::sse::Frame;
use crate::stream::{FrameData, Reader, frame_data};

/// No request can ask for more candidates than this. The calls of further candidates are not counted.
const MAX_CANDIDATES: usize = 128;

/// Reads a streamed reply.
#[derive(Debug, Clone)]
pub(super) struct ContentReader {
    has_stop: bool,
    received: Received,
    /// The number of calls so far, by candidate.
    call_counts: Vec<(u32, u32)>,
    /// The candidates whose last piece is a call with empty arguments.
    ending_in_empty_call: Vec<u32>,
}

impl ContentReader {
    pub(super) fn new(has_stop: bool, keep_bytes: usize) -> Self {
        Self {
            has_stop,
            received: Received::new(keep_bytes),
            call_counts: Vec::new(),
            ending_in_empty_call: Vec::new(),
        }
    }

    fn read_event(&mut self, root: Value<'_>) -> Event {
        // Most events have none of the fields that are read below, and one pass over the fields shows this.
        let fields = Fields::new(root);
        let error = fields.get("error").and_then(|_| error::read(root));
        let mut event = Event { error, has_no_choices: true, ..Event::default() };
        if self.received.choices().is_empty() {
            self.received
                .note_identity(root.non_empty_text("modelVersion"), root.non_empty_text("responseId"));
        }
        let mut are_bare = true;
        for (position, candidate) in (0..).zip(fields.get("candidates").into_iter().flat_map(Value::items)) {
            event.has_no_choices = false;
            are_bare &= self.read_candidate(candidate, position, &mut event);
        }
        if let Some(blocked) = fields.get("promptFeedback").and_then(|_| stop::prompt_refusal(root)) {
            self.received.add_pieces(0, &[], false);
            self.received.end(0, Some(blocked.clone()), Fidelity::Exact);
            event.finishes.push(blocked);
        }
        event.usage = fields.get("usageMetadata").and_then(usage::counts);
        if event.usage.is_some() {
            self.received.note_tier(usage::tier(root));
        }
        event.only_begins = event.error.is_none() && event.finishes.is_empty() && are_bare;
        event
    }

    /// Records the content of parts that are neither text nor calls.
    fn note_other_parts(&mut self, index: u32, parts: &[Value<'_>]) {
        if let Some(written) = self.received.written_tally(index) {
            for part in parts {
                tally_other_part(*part, written);
            }
        }
    }

    /// Reads a candidate. Returns whether it contains no part.
    fn read_candidate(&mut self, candidate: Value<'_>, position: u32, event: &mut Event) -> bool {
        let fields = Fields::new(candidate);
        let index = fields.get("index").and_then(number).unwrap_or(position);
        let finish = fields.get("finishReason").and_then(|_| stop::read(candidate, index, self.has_stop));
        let at_limit = finish.as_ref().is_some_and(|finish| finish.stop == Some(Stop::Limit));
        let parts = fields.get("content").and_then(|content| content.field("parts"));
        let parts: Vec<Value<'_>> = parts.into_iter().flat_map(Value::items).collect();
        let (last, is_bare) = (last_content_part(parts.iter().copied()), parts.is_empty());
        let is_unsaid =
            |part: Value<'_>| has_extra(part) && part_text(part).is_none() && part_call(part).is_none();
        let ends_unsaid = last.is_some_and(is_unsaid);
        let is_beside = is_grounded(candidate) || parts.iter().any(|part| has_extra(*part));
        let before = event.pieces.len();
        let (mut fidelity, mut thought) = (Fidelity::Exact, false);
        let (mut signatures, mut more) = (Vec::new(), None);
        for part in parts.iter().copied() {
            let in_thought = is_thought(part);
            thought |= in_thought;
            let text = part.field("text").filter(|_| !in_thought);
            let signature = part_signature(part).filter(|_| !in_thought);
            let piece = if let Some(text) = text.and_then(|text| self.received.decode(index, None, text)) {
                fidelity = fidelity.max(Fidelity::from_exactness(text.exact));
                Piece::Text(text.text.into_owned())
            } else if in_thought {
                Piece::Reasoning(part.non_empty_text("text").unwrap_or_default())
            } else if let Some(call) = part_call(part) {
                fidelity = fidelity.max(Fidelity::partial_if(is_in_pieces(call)));
                more = Some(will_continue(call));
                Piece::ToolCall {
                    index: self.next_call(index),
                    id: call.non_empty_text("id"),
                    name: call.non_empty_text("name"),
                    arguments: call_arguments(call, at_limit && last == Some(part)).to_owned(),
                }
            } else {
                continue;
            };
            if let Some(signature) = signature {
                let call = if let Piece::ToolCall { index, .. } = &piece { Some(*index) } else { None };
                signatures.push((call, signature));
            }
            let is_empty = matches!(&piece, Piece::Text(text) | Piece::Reasoning(text) if text.is_empty());
            if !is_empty {
                event.pieces.push(ChoicePiece { choice: index, piece });
            }
        }
        if thought {
            // Create the choice. The pieces of the thought are added below, in their order.
            self.received.add_pieces(index, &[], false);
            self.received.note_hidden_reasoning(index);
        }
        let pieces = event.pieces.get(before..).unwrap_or_default();
        if let Some(last) = pieces.last() {
            self.ending_in_empty_call.retain(|candidate| *candidate != index);
            if matches!(&last.piece, Piece::ToolCall { arguments, .. } if is_empty(arguments))
                && self.ending_in_empty_call.len() < MAX_CANDIDATES
            {
                self.ending_in_empty_call.push(index);
            }
        } else if at_limit && self.ending_in_empty_call.contains(&index) {
            self.received.note_unparsed_arguments(index);
        }
        self.received.add_pieces(index, pieces, false);
        self.note_other_parts(index, &parts);
        if ends_unsaid {
            self.received.note_unrequestable(index);
        } else if is_beside {
            self.received.note_extra_content(index);
        }
        if let Some(more) = more {
            self.received.set_unfinished(index, more);
        }
        for (call, signature) in signatures {
            self.received.note_signature(index, call, signature);
        }
        if fields.get("continuationToken").is_some() {
            self.received.set_continuation(index, candidate.non_empty_text("continuationToken"));
        }
        self.note_searches(candidate, index);
        self.received.end(index, finish.clone(), fidelity);
        event.finishes.extend(finish);
        is_bare
    }

    fn note_searches(&mut self, candidate: Value<'_>, index: u32) {
        let searches = web_searches(candidate, self.received.model().unwrap_or_default());
        self.received.update_searches(index, |known| known.max(searches));
    }

    fn next_call(&mut self, candidate: u32) -> u32 {
        let known = self.call_counts.iter().position(|(index, _)| *index == candidate);
        let Some(position) = known else {
            if self.call_counts.len() < MAX_CANDIDATES {
                self.call_counts.push((candidate, 1));
            }
            return 0;
        };
        let next = self.call_counts[position].1;
        self.call_counts[position].1 = next.saturating_add(1);
        next
    }
}

/// Returns whether the arguments are an empty object.
fn is_empty(arguments: &str) -> bool {
    Value::parse_str(arguments).is_ok_and(|object| object.fields().next().is_none())
}

impl Reader for ContentReader {
    fn read_frame(&mut self, frame: &Frame) -> Result<Event, EventError> {
        let event = match frame_data(frame, &mut self.received)? {
            FrameData::Nothing => Event::idle(),
            FrameData::Done => Event { is_done: true, ..Event::default() },
            FrameData::Object(root) => self.read_event(root),
        };
        self.received.note_event(&event, None);
        Ok(event)
    }

    fn received(&self) -> &Received {
        &self.received
    }

    fn fork(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}
