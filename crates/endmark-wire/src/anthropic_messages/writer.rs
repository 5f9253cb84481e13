//! The client's side of a streamed message.

mod held;

use std::collections::{BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::content::is_cited;
use super::error;
use super::response::call_fields;
use super::stop::finish_word;
use super::usage;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::reply::{Event, ToolCall, Usage};
use crate::sse::{Frame, event_frame};
use crate::writer::{Closing, CutCall, HeldFrames, StreamError, Writer, endmark_field};

/// Writes a streamed message.
#[derive(Debug)]
pub(super) struct MessageWriter {
    model: String,
    held: HeldFrames,
    /// Whether the client has the beginning of the message.
    begun: bool,
    /// The blocks that are open for the client. Servers that make parallel calls may begin a block before another one
    /// ends.
    open: Vec<OpenBlock>,
    /// Whether the client's last block is a thought without its signature.
    unsigned: bool,
    /// The number of the next block.
    next: u64,
    /// The number of calls of which the client has the beginning.
    calls: u32,
    /// Whether anything was written that the upstream did not send.
    has_written: bool,
    /// Maps the numbers of held blocks to the client's numbers, once they may differ.
    numbers: Option<HashMap<u64, u64>>,
    /// The id of the response, for a message that begins here.
    id: Option<String>,
    /// The client's stop sequence that ended the rest.
    sequence: Option<String>,
}

/// A block of which the client has the beginning but not the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenBlock {
    number: u64,
    kind: Kinds,
    /// Whether its text is cited. The provider's citations cover that text and no other.
    is_cited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Text,
    Call(u32),
    Other,
}

impl MessageWriter {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            held: HeldFrames::default(),
            begun: false,
            open: Vec::new(),
            unsigned: false,
            next: 0,
            calls: 0,
            has_written: false,
            numbers: None,
            id: None,
            sequence: None,
        }
    }

    /// Updates the state of the client for a frame that it gets.
    fn note(&mut self, frame: &Frame) {
        // Most frames are deltas. Apart from signatures and citations they do not change the state.
        if frame.event.as_deref() == Some("content_block_delta") {
            // A quote inside a text is escaped, so this substring is a type.
            let mentions = |kind: &str| frame.data.as_deref().is_some_and(|data| data.contains(kind));
            self.unsigned &= !mentions("\"signature_delta\"");
            if let Some(open) = self.open.last_mut().filter(|_| mentions("\"citations_delta\"")) {
                open.is_cited = true;
            }
            return;
        }
        let Some(root) = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok()) else { return };
        let number = root.field("index").and_then(Value::as_u64);
        match (root.word("type").as_deref(), number) {
            (Some("message_start"), _) => self.begun = true,
            (Some("content_block_start"), Some(number)) => {
                let kind = match root.field("content_block").and_then(|block| block.word("type")).as_deref() {
                    Some("text") => Kinds::Text,
                    Some("tool_use") => {
                        self.calls = self.calls.saturating_add(1);
                        Kinds::Call(self.calls - 1)
                    }
                    _ => Kinds::Other,
                };
                let thought = root.field("content_block").filter(|block| block.has_text("type", "thinking"));
                self.unsigned = thought.is_some_and(|block| block.non_empty("signature").is_none());
                let cited = root.field("content_block").is_some_and(is_cited);
                self.open.push(OpenBlock { number, kind, is_cited: cited });
                self.next = self.next.max(number.saturating_add(1));
            }
            (Some("content_block_stop"), Some(number)) => {
                self.open.retain(|open| open.number != number);
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

    /// Opens a block of this kind, unless the last open block is of this kind and not cited. Begins the message if the
    /// client has nothing yet.
    fn begin(&mut self, kind: Kinds, block: &str) -> Vec<u8> {
        let mut bytes = self.begin_message();
        if self.open.last().is_some_and(|open| open.kind == kind && !open.is_cited) {
            return bytes;
        }
        bytes.extend(self.end_blocks());
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.numbers.get_or_insert_default();
        self.open.push(OpenBlock { number, kind, is_cited: false });
        let json =
            format!("{{\"type\":\"content_block_start\",\"index\":{number},\"content_block\":{block}}}");
        bytes.extend(event_frame("content_block_start", json.as_bytes()));
        bytes
    }

    fn begin_message(&mut self) -> Vec<u8> {
        if std::mem::replace(&mut self.begun, true) {
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
        std::mem::take(&mut self.open).into_iter().flat_map(end).collect()
    }

    /// Returns the number of a call's open block.
    fn open_block(&self, call: u32) -> Option<u64> {
        self.open.iter().find(|open| open.kind == Kinds::Call(call)).map(|open| open.number)
    }

    /// Returns the beginning of a call's block, with all of its arguments.
    fn begin_call(&mut self, call: &ToolCall) -> Vec<u8> {
        let block = format!("{{{},\"input\":{{}}}}", call_fields(call));
        let kind = Kinds::Call(self.calls);
        self.calls = self.calls.saturating_add(1);
        let mut bytes = self.begin(kind, &block);
        bytes.extend(self.write_input(self.last_open(), &call.arguments));
        bytes
    }

    fn last_open(&self) -> u64 {
        self.open.last().map_or(0, |open| open.number)
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

    /// Returns the held end event with another end, token counts and Endmark's statement. Creates the event if none
    /// is held.
    fn message_delta(own: Option<&Frame>, word: Option<Word<'_>>, closing: &Closing<'_>) -> Vec<u8> {
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
type Word<'a> = (&'static str, Option<&'a str>);

fn edit_event(
    root: Value<'_>,
    word: Option<Word<'_>>,
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
        if !event.idle {
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

    fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    fn can_write(&self) -> bool {
        let ends = |event: &Event| event.closes || !event.finishes.is_empty();
        // A cut thought has no signature, and nothing may follow it.
        !self.unsigned
            && (self.open.last().is_none_or(|open| open.kind != Kinds::Other) || self.held.events().any(ends))
    }

    fn release(&mut self) -> Vec<u8> {
        self.send_held()
    }

    fn write_text(&mut self, _choice: u32, text: &str) -> Vec<u8> {
        let mut bytes = self.begin(Kinds::Text, "{\"type\":\"text\",\"text\":\"\"}");
        let delta = format!("{{\"type\":\"text_delta\",\"text\":{}}}", quote(text));
        bytes.extend(self.write_delta(self.last_open(), &delta));
        bytes
    }

    fn write_arguments(&mut self, _choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>> {
        let number = self.open_block(call.index)?;
        Some(self.write_input(number, arguments))
    }

    fn can_continue(&self, _choice: u32, call: &ToolCall) -> bool {
        // A block cannot be reopened: only a call whose block is open can continue.
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
        // Clients read an input that has not begun as an empty one.
        false
    }

    fn set_answer_id(&mut self, id: &str) {
        self.id.get_or_insert_with(|| id.to_owned());
    }

    /// Libraries parse the part of an input that arrived, whatever the stop reason is, and turn an empty input into
    /// `{}`. A call that is neither open nor held was followed by other content, so it is as the model wrote it.
    fn leave_cut(&mut self, _choice: u32, calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        let open: HashMap<u32, u64> =
            calls.iter().filter_map(|call| Some((*call, self.open_block(*call)?))).collect();
        let left_out = self.remove_calls(calls, &open).into_iter().map(|call| (call, CutCall::LeftOut));
        // Some clients run a call when its block is closed.
        open.into_keys().map(|call| (call, CutCall::Begun)).chain(left_out).collect()
    }

    fn close(&mut self, closing: &Closing<'_>) -> Vec<u8> {
        if closing.choices.is_empty() && !self.has_written {
            let was_said = self.held.events().any(|event| event.is_done);
            let mut bytes = self.send_held();
            if closing.is_end_lost && !was_said {
                bytes.extend(message_stop());
            }
            return bytes;
        }
        self.has_written |= closing.choices.iter().any(|end| end.rewritten);
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
        let word = end.map(|end| (finish_word(end, sequence.as_deref()), sequence.as_deref()));
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
        let own = self.held.write_error().cloned();
        let mut bytes = Vec::new();
        for (frame, event) in self.held.take() {
            if !self.has_written && event.finishes.is_empty() && !event.is_done && event.error.is_none() {
                bytes.extend(self.pass_held(&frame));
            }
        }
        let disclosed = own.as_ref().and_then(|frame| {
            let root = Value::parse_str(frame.data.as_deref()?).ok()?;
            Some(frame.with_data(&edit_event(root, None, None, error.endmark)))
        });
        bytes.extend(disclosed.unwrap_or_else(|| {
            let json = format!("{{{}{}}}", error::fields(error.kind, error.message), error.endmark_field());
            event_frame("error", json.as_bytes())
        }));
        bytes
    }

    fn keep_alive(&self) -> Vec<u8> {
        event_frame("ping", b"{\"type\":\"ping\"}")
    }
}
