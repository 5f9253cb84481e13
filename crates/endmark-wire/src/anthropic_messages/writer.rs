//! The client's side of a streamed message.

mod held;

use std::collections::{BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::content::is_cited;
use super::error;
use super::response::call_fields;
use super::stop::stop_reason;
use super::usage;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::reply::{Event, ToolCall, Usage};
use crate::sse::{Frame, event_frame};
use crate::writer::{CutCall, HeldFrames, StreamEnd, StreamError, Writer, endmark_field};

/// Writes a streamed message.
#[derive(Debug)]
pub(super) struct MessageWriter {
    model: String,
    held: HeldFrames,
    /// Whether the client has received the beginning of the message.
    has_begun: bool,
    /// The blocks that are open for the client. Servers that make parallel calls may begin a block before another one
    /// ends.
    open_blocks: Vec<OpenBlock>,
    /// Whether the client's last block is a thought without its signature.
    ends_in_unsigned_thought: bool,
    /// The number of the next block.
    next_block: u64,
    /// The number of calls that the client has begun to receive.
    calls: u32,
    /// Whether anything was written that the upstream did not send.
    has_written: bool,
    /// Maps the numbers of held blocks to the client's numbers, once they may differ.
    client_numbers: Option<HashMap<u64, u64>>,
    /// The id of the response, for a message that Endmark begins.
    id: Option<String>,
    /// The client's stop sequence that ended the continuation.
    sequence: Option<String>,
}

/// A block that the client has begun to receive and that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenBlock {
    number: u64,
    kind: OpenBlockKind,
    /// Whether the provider cites sources for its text. The citations cover only that text.
    is_cited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlockKind {
    Text,
    Call(u32),
    Other,
}

impl MessageWriter {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            held: HeldFrames::default(),
            has_begun: false,
            open_blocks: Vec::new(),
            ends_in_unsigned_thought: false,
            next_block: 0,
            calls: 0,
            has_written: false,
            client_numbers: None,
            id: None,
            sequence: None,
        }
    }

    /// Updates the client's state for a frame that is sent to the client.
    fn note(&mut self, frame: &Frame) {
        // Most frames are deltas. Apart from signatures and citations they do not change the state.
        if frame.event.as_deref() == Some("content_block_delta") {
            // Quotation marks inside a text are escaped, so this substring can only be a type.
            let mentions = |kind: &str| frame.data.as_deref().is_some_and(|data| data.contains(kind));
            self.ends_in_unsigned_thought &= !mentions("\"signature_delta\"");
            if let Some(open) = self.open_blocks.last_mut().filter(|_| mentions("\"citations_delta\"")) {
                open.is_cited = true;
            }
            return;
        }
        let Some(root) = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok()) else { return };
        let number = root.field("index").and_then(Value::as_u64);
        match (root.non_empty_text("type").as_deref(), number) {
            (Some("message_start"), _) => self.has_begun = true,
            (Some("content_block_start"), Some(number)) => {
                let kind = match root
                    .field("content_block")
                    .and_then(|block| block.non_empty_text("type"))
                    .as_deref()
                {
                    Some("text") => OpenBlockKind::Text,
                    Some("tool_use") => {
                        self.calls = self.calls.saturating_add(1);
                        OpenBlockKind::Call(self.calls - 1)
                    }
                    _ => OpenBlockKind::Other,
                };
                let thought = root.field("content_block").filter(|block| block.has_text("type", "thinking"));
                self.ends_in_unsigned_thought =
                    thought.is_some_and(|block| block.non_empty("signature").is_none());
                let cited = root.field("content_block").is_some_and(is_cited);
                self.open_blocks.push(OpenBlock { number, kind, is_cited: cited });
                self.next_block = self.next_block.max(number.saturating_add(1));
            }
            (Some("content_block_stop"), Some(number)) => {
                self.open_blocks.retain(|open| open.number != number);
            }
            _ => {}
        }
    }

    fn send_held(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (frame, _) in self.held.take() {
            bytes.extend(self.pass_held(&frame));
        }
        bytes
    }

    /// Begins a block of this kind, unless the last open block has this kind and is not cited. Begins the
    /// message if the client has received nothing.
    fn begin_block(&mut self, kind: OpenBlockKind, block: &str) -> Vec<u8> {
        let mut bytes = self.begin_message();
        if self.open_blocks.last().is_some_and(|open| open.kind == kind && !open.is_cited) {
            return bytes;
        }
        bytes.extend(self.end_blocks());
        let number = self.next_block;
        self.next_block = self.next_block.saturating_add(1);
        self.client_numbers.get_or_insert_default();
        self.open_blocks.push(OpenBlock { number, kind, is_cited: false });
        let json =
            format!("{{\"type\":\"content_block_start\",\"index\":{number},\"content_block\":{block}}}");
        bytes.extend(event_frame("content_block_start", json.as_bytes()));
        bytes
    }

    fn begin_message(&mut self) -> Vec<u8> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Vec::new();
        }
        let json = format!(
            "{{\"type\":\"message_start\",\"message\":{{\"id\":{},\"type\":\"message\",\
             \"role\":\"assistant\",\"model\":{},\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\
             \"usage\":{{\"input_tokens\":0,\"output_tokens\":0}}}}}}",
            quote(self.id.as_deref().unwrap_or("msg_endmark")),
            quote(&self.model)
        );
        event_frame("message_start", json.as_bytes())
    }

    fn end_blocks(&mut self) -> Vec<u8> {
        let end = |open: OpenBlock| {
            let json = format!("{{\"type\":\"content_block_stop\",\"index\":{}}}", open.number);
            event_frame("content_block_stop", json.as_bytes())
        };
        std::mem::take(&mut self.open_blocks).into_iter().flat_map(end).collect()
    }

    /// Returns the number of a call's open block.
    fn open_block(&self, call: u32) -> Option<u64> {
        self.open_blocks.iter().find(|open| open.kind == OpenBlockKind::Call(call)).map(|open| open.number)
    }

    /// Returns the beginning of a call's block, with all of its arguments.
    fn begin_call(&mut self, call: &ToolCall) -> Vec<u8> {
        let block = format!("{{{},\"input\":{{}}}}", call_fields(call));
        let kind = OpenBlockKind::Call(self.calls);
        self.calls = self.calls.saturating_add(1);
        let mut bytes = self.begin_block(kind, &block);
        bytes.extend(self.write_input(self.last_open(), &call.arguments));
        bytes
    }

    fn last_open(&self) -> u64 {
        self.open_blocks.last().map_or(0, |open| open.number)
    }

    fn write_input(&mut self, number: u64, arguments: &str) -> Vec<u8> {
        let delta = format!("{{\"type\":\"input_json_delta\",\"partial_json\":{}}}", quote(arguments));
        self.write_delta(number, &delta)
    }

    fn write_delta(&mut self, number: u64, delta: &str) -> Vec<u8> {
        self.has_written = true;
        let json = format!("{{\"type\":\"content_block_delta\",\"index\":{number},\"delta\":{delta}}}");
        event_frame("content_block_delta", json.as_bytes())
    }

    /// Returns the held end event with another end, token counts and Endmark's statement. Creates the event
    /// if none is held.
    fn message_delta(own: Option<&Frame>, word: Option<StopFields<'_>>, closing: &StreamEnd<'_>) -> Vec<u8> {
        let endmark = closing.choices.first().and_then(|end| end.endmark);
        let edited = own.and_then(|frame| {
            let root = Value::parse_str(frame.data.as_deref()?).ok()?;
            Some(frame.with_data(&edit_event(root, word, closing.usage.as_ref(), endmark)))
        });
        edited.unwrap_or_else(|| {
            let or_null = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), quote);
            let (word, sequence) = (or_null(word.map(|(word, _)| word)), or_null(word.and_then(|(_, at)| at)));
            // The protocol requires an output count even if nothing was counted.
            let usage =
                closing.usage.as_ref().map_or_else(|| "{\"output_tokens\":0}".to_owned(), usage::json);
            let json = format!(
                "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":{word},\"stop_sequence\":{sequence}}},\
                 \"usage\":{}{}}}",
                usage,
                endmark_field(endmark)
            );
            event_frame("message_delta", json.as_bytes())
        })
    }
}

/// A stop reason, and the stop sequence that was reached.
type StopFields<'a> = (&'static str, Option<&'a str>);

fn edit_event(
    root: Value<'_>,
    word: Option<StopFields<'_>>,
    counts: Option<&Usage>,
    endmark: Option<&RawValue>,
) -> Vec<u8> {
    let mut edits = Edits::for_document(root);
    if let (Some((word, sequence)), Some(delta)) =
        (word, root.field("delta").and_then(|delta| delta.as_kind(Kind::Object)))
    {
        edits.set_field(delta, "stop_reason", &quote(word));
        if let Some(sequence) = sequence {
            edits.set_field(delta, "stop_sequence", &quote(sequence));
        }
    }
    if let Some(counts) = counts {
        usage::write(&mut edits, root, counts);
    }
    if let Some(endmark) = endmark {
        edits.set_field(root, "endmark", endmark.get());
    }
    edits.finish()
}

fn message_stop() -> Vec<u8> {
    event_frame("message_stop", b"{\"type\":\"message_stop\"}")
}

impl Writer for MessageWriter {
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>) {
        if !event.is_idle {
            if !self.held.is_empty() {
                client.extend(self.send_held());
            }
            self.note(frame);
        }
        client.extend_from_slice(&frame.raw);
    }

    fn hold(&mut self, frame: Frame, event: &Event) {
        self.held.push(frame, event);
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn can_write(&self) -> bool {
        let ends = |event: &Event| event.completes_part || !event.finishes.is_empty();
        // A cut thought has no signature, and nothing may follow it.
        !self.ends_in_unsigned_thought
            && (self.open_blocks.last().is_none_or(|open| open.kind != OpenBlockKind::Other)
                || self.held.events().any(ends))
    }

    fn release(&mut self) -> Vec<u8> {
        self.send_held()
    }

    fn write_text(&mut self, _choice: u32, text: &str) -> Vec<u8> {
        let mut bytes = self.begin_block(OpenBlockKind::Text, "{\"type\":\"text\",\"text\":\"\"}");
        let delta = format!("{{\"type\":\"text_delta\",\"text\":{}}}", quote(text));
        bytes.extend(self.write_delta(self.last_open(), &delta));
        bytes
    }

    fn write_arguments(&mut self, _choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>> {
        let number = self.open_block(call.index)?;
        Some(self.write_input(number, arguments))
    }

    fn can_continue(&self, _choice: u32, call: &ToolCall) -> bool {
        // A block cannot be reopened, so only a call whose block is open can continue.
        self.open_block(call.index).is_some()
    }

    fn write_tool_call(&mut self, _choice: u32, call: &ToolCall) -> Vec<u8> {
        if let Some(bytes) = self.write_held_call(call) {
            return bytes;
        }
        let held = self.held.take();
        let mut bytes = Vec::new();
        if held.iter().any(|(frame, _)| held::begins_block(frame)) {
            bytes.extend(self.end_blocks());
            bytes.extend(self.pass_blocks(&held));
        }
        self.held
            .put_back(held.into_iter().filter(|(frame, _)| held::block_number(frame).is_none()).collect());
        bytes.extend(self.write_call(call));
        bytes
    }

    fn shows_cut_calls(&self) -> bool {
        // Clients treat a missing input as an empty one.
        false
    }

    fn set_response_id(&mut self, id: &str) {
        self.id.get_or_insert_with(|| id.to_owned());
    }

    /// Libraries parse the received part of an input, whatever the stop reason is, and turn an empty input
    /// into `{}`. A call that is neither open nor held is complete, because other content followed it.
    fn note_cut_calls(&mut self, _choice: u32, calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        let open: HashMap<u32, u64> =
            calls.iter().filter_map(|call| Some((*call, self.open_block(*call)?))).collect();
        let left_out = self.remove_calls(calls, &open).into_iter().map(|call| (call, CutCall::Omitted));
        // Some clients run a call when its block is closed.
        open.into_keys().map(|call| (call, CutCall::Started)).chain(left_out).collect()
    }

    fn close(&mut self, closing: &StreamEnd<'_>) -> Vec<u8> {
        if closing.choices.is_empty() && !self.has_written {
            let has_last_event = self.held.events().any(|event| event.is_done);
            let mut bytes = self.send_held();
            if closing.is_end_lost && !has_last_event {
                bytes.extend(message_stop());
            }
            return bytes;
        }
        self.has_written |= closing.choices.iter().any(|end| end.is_rewritten);
        let held = self.held.take();
        let find = |is: fn(&Event) -> bool| held.iter().find(|(_, event)| is(event)).map(|(frame, _)| frame);
        let own = find(|event| !event.finishes.is_empty());
        let mut bytes = Vec::new();
        if self.has_written {
            bytes.extend(self.end_blocks());
            bytes.extend(self.pass_blocks(&held));
        } else {
            // Nothing was added, so everything before the end passes unchanged.
            for (frame, event) in &held {
                if event.finishes.is_empty() && !event.is_done && event.error.is_none() {
                    bytes.extend(self.pass_held(frame));
                }
            }
            bytes.extend(self.end_blocks());
        }
        let sequence = self.sequence.take();
        let end = closing.choices.first().and_then(|end| end.end);
        let word = end.map(|end| (stop_reason(end, sequence.as_deref()), sequence.as_deref()));
        bytes.extend(Self::message_delta(own, word, closing));
        match find(|event| event.is_done) {
            Some(done) => bytes.extend_from_slice(&done.raw),
            None => bytes.extend(message_stop()),
        }
        bytes
    }

    fn set_stop_sequence(&mut self, _choice: u32, sequence: &str) {
        self.sequence = Some(sequence.to_owned());
    }

    fn write_error(&mut self, error: &StreamError<'_>) -> Vec<u8> {
        let own = self.held.upstream_error().cloned();
        let mut bytes = Vec::new();
        for (frame, event) in self.held.take() {
            if !self.has_written && event.finishes.is_empty() && !event.is_done && event.error.is_none() {
                bytes.extend(self.pass_held(&frame));
            }
        }
        let upstream_error = own.as_ref().and_then(|frame| {
            let root = Value::parse_str(frame.data.as_deref()?).ok()?;
            Some(frame.with_data(&edit_event(root, None, None, error.endmark)))
        });
        bytes.extend(upstream_error.unwrap_or_else(|| {
            let json = format!("{{{}{}}}", error::fields(error.kind, error.message), error.endmark_field());
            event_frame("error", json.as_bytes())
        }));
        bytes
    }

    fn keep_alive(&self) -> Vec<u8> {
        event_frame("ping", b"{\"type\":\"ping\"}")
    }
}
