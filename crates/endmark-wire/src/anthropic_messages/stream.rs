//! A streamed message, event by event.

use super::content::TextParts;
use super::error;
use super::stop;
use super::usage::{self, UsageCounts};
use crate::json::{DecodedString, Fields, Kind, Value};
use crate::reply::{CallProgress, ChoicePiece, Event, EventError, Fidelity, Piece, Received};
use crate::sse::Frame;
use crate::stream::{FrameData, Reader, frame_data};

/// No message has more open blocks than this at a time. Further blocks are not tracked.
const MAX_OPEN_BLOCKS: usize = 64;

/// Reads a streamed message.
#[derive(Debug, Clone)]
pub(super) struct MessageReader {
    received: Received,
    /// The open blocks, by number.
    open_blocks: Vec<(u64, BlockKind)>,
    calls: u32,
    parts: TextParts,
    counts: UsageCounts,
    /// Whether the end of the message contained an output count. The count at its beginning is meaningless.
    counts_output: bool,
}

/// The kind of an open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// Text of the reply.
    Text,
    /// The call with this number.
    Call(u32),
    /// Anything else, such as thinking or a tool that the server runs itself.
    Other,
}

impl BlockKind {
    fn call(self) -> Option<u32> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }
}

impl MessageReader {
    pub(super) fn new(keep_bytes: usize) -> Self {
        Self {
            received: Received::new(keep_bytes),
            open_blocks: Vec::new(),
            calls: 0,
            parts: TextParts::default(),
            counts: UsageCounts::default(),
            counts_output: false,
        }
    }

    fn read_event(&mut self, root: Value<'_>) -> Event {
        // Most events are pieces, and only a few fields are read. One pass finds all of them.
        let fields = Fields::new(root);
        let error = fields.get("error").and_then(|_| error::read(root));
        let mut event = Event { error, ..Event::default() };
        match fields.get("type").and_then(Value::text).as_deref() {
            Some("message_start") => {
                // After this event a reply exists, even if it is empty.
                self.received.add_pieces(0, &[], false);
                if let Some(message) = root.field("message") {
                    event.only_begins = message.non_empty("content").is_none();
                    self.received
                        .note_identity(message.non_empty_text("model"), message.non_empty_text("id"));
                    self.read_usage(message.field("usage"));
                    // If the stream breaks off, these are the only counts.
                    event.usage = self.counts.usage();
                }
            }
            Some("content_block_start") => self.start_block(root, &mut event),
            Some("content_block_delta") => self.continue_block(&fields, &mut event),
            Some("content_block_stop") => {
                let number = root.field("index").and_then(Value::as_u64);
                let closed = self.open_blocks.iter().find(|(open, _)| Some(*open) == number);
                event.completed_call = closed.and_then(|(_, block)| block.call());
                if let Some(call) = event.completed_call {
                    self.received.note_progress(0, call, CallProgress::Closed);
                }
                self.open_blocks.retain(|(open, _)| Some(*open) != number);
                event.completes_part = true;
            }
            Some("message_delta") => {
                event.finishes.extend(root.field("delta").and_then(stop::read));
                let usage = root.field("usage");
                self.counts_output |= usage.is_some_and(|usage| UsageCounts::read(usage).has_output());
                self.read_usage(usage);
                event.usage = self.counts.usage().filter(|_| usage.is_some_and(|usage| !usage.is_null()));
                self.received.add_pieces(0, &[], false);
                self.received.end(0, event.finishes.first().cloned(), Fidelity::Exact);
            }
            Some("message_stop") => event.is_done = true,
            Some("ping") => event.is_idle = true,
            _ => {}
        }
        event.only_begins &= event.pieces.is_empty() && event.error.is_none();
        event.has_no_choices = event.pieces.is_empty() && event.finishes.is_empty() && !event.completes_part;
        event
    }

    fn read_usage(&mut self, usage: Option<Value<'_>>) {
        if let Some(counted) = usage {
            self.received.note_tier(usage::tier(counted));
            self.counts = std::mem::take(&mut self.counts).updated_by(&UsageCounts::read(counted));
        }
    }

    fn start_block(&mut self, root: Value<'_>, event: &mut Event) {
        let Some(block) = root.field("content_block") else { return };
        let mut fidelity = Fidelity::Exact;
        let kind = match block.non_empty_text("type").as_deref() {
            Some("text") => {
                let text = block.field("text").and_then(|text| self.received.decode(0, None, text));
                fidelity = push_text(event, text, Piece::Text);
                event.only_begins = block.non_empty("citations").is_none();
                BlockKind::Text
            }
            Some("tool_use") => {
                let index = self.calls;
                self.calls = self.calls.saturating_add(1);
                // Some servers send the complete input here. Others send an empty input and then its pieces.
                let input = block.field("input").and_then(|input| input.as_kind(Kind::Object));
                let arguments = input.filter(|input| input.fields().next().is_some()).map(Value::raw);
                event.pieces.push(ChoicePiece {
                    choice: 0,
                    piece: Piece::ToolCall {
                        index,
                        id: block.non_empty_text("id"),
                        name: block.non_empty_text("name"),
                        arguments: arguments.unwrap_or_default().to_owned(),
                    },
                });
                BlockKind::Call(index)
            }
            Some("thinking") => {
                push_text(event, block.field("thinking").and_then(Value::decode), Piece::Reasoning);
                event.only_begins = block.non_empty("signature").is_none();
                BlockKind::Other
            }
            Some("redacted_thinking") => BlockKind::Other,
            // No request can contain this content, such as the results of a server tool.
            _ => {
                self.received.note_unrequestable(0);
                BlockKind::Other
            }
        };
        if kind == BlockKind::Text {
            let length = self.received.choice_at(0).map_or(0, |choice| choice.text.len());
            let last = self.parts.note_text_block(length);
            self.received.note_part_begin(0, last);
        } else {
            self.parts.note_other_block();
        }
        self.note_text(event);
        self.received.add_pieces(0, &event.pieces, false);
        self.received.end(0, None, fidelity);
        if block.non_empty_text("type").is_some_and(|kind| kind.ends_with("thinking")) {
            self.received.note_hidden_reasoning(0);
        }
        if let Some(number) = root.field("index").and_then(Value::as_u64)
            && self.open_blocks.len() < MAX_OPEN_BLOCKS
        {
            self.open_blocks.retain(|(open, _)| *open != number);
            self.open_blocks.push((number, kind));
        }
    }

    fn continue_block(&mut self, fields: &Fields<'_>, event: &mut Event) {
        let number = fields.get("index").and_then(Value::as_u64);
        let block = self.open_blocks.iter().find(|(open, _)| Some(*open) == number).map(|(_, block)| *block);
        let Some(delta) = fields.get("delta").map(Fields::new) else { return };
        let fidelity = match (delta.get("type").and_then(Value::text).as_deref(), block) {
            (Some("text_delta"), Some(BlockKind::Text)) => {
                let text = delta.get("text").and_then(|text| self.received.decode(0, None, text));
                push_text(event, text, Piece::Text)
            }
            (Some("input_json_delta"), Some(BlockKind::Call(index))) => {
                let json = delta.get("partial_json");
                let json = json.and_then(|json| self.received.decode(0, Some(index), json));
                let call = |arguments| Piece::ToolCall { index, id: None, name: None, arguments };
                push_text(event, json, call)
            }
            (Some("thinking_delta"), _) => {
                push_text(event, delta.get("thinking").and_then(Value::decode), Piece::Reasoning);
                Fidelity::Exact
            }
            // The piece's block never began or is of another kind, so its place in the reply is unknown.
            (Some("text_delta"), _) | (Some("input_json_delta"), None | Some(BlockKind::Text)) => {
                Fidelity::Partial
            }
            _ => Fidelity::Exact,
        };
        self.note_text(event);
        self.received.add_pieces(0, &event.pieces, false);
        self.received.end(0, None, fidelity);
    }

    fn note_text(&mut self, event: &Event) {
        for delta in &event.pieces {
            if let Piece::Text(text) = &delta.piece {
                self.parts.note_text(text);
            }
        }
    }
}

/// Adds a piece with this text, unless it is empty. Returns how completely the piece represents the text.
fn push_text(
    event: &mut Event,
    text: Option<DecodedString<'_>>,
    piece: impl FnOnce(String) -> Piece,
) -> Fidelity {
    let Some(text) = text else { return Fidelity::Exact };
    if !text.text.is_empty() {
        event.pieces.push(ChoicePiece { choice: 0, piece: piece(text.text.into_owned()) });
    }
    Fidelity::from_exactness(text.exact)
}

impl Reader for MessageReader {
    fn read_frame(&mut self, frame: &Frame) -> Result<Event, EventError> {
        let event = match frame_data(frame, &mut self.received)? {
            FrameData::Nothing => Event::idle(),
            FrameData::Done => Event { is_done: true, ..Event::default() },
            FrameData::Object(root) => self.read_event(root),
        };
        self.received.note_event(&event, None);
        if !self.counts_output {
            self.received.note_uncounted();
        }
        Ok(event)
    }

    fn received(&self) -> &Received {
        &self.received
    }

    fn fork(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}
