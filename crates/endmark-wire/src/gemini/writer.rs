//! The client's side of a streamed reply.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::candidate::{candidate, candidates, part_call, part_text, parts};
use super::error;
use super::held_parts::{HeldSignatures, remove_from};
use super::response::{
    arguments_object, call_part, finish_reason, remove_continuation_token, sign, signature_part,
};
use super::usage;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::reply::{Event, Piece, ToolCall};
use crate::sse::{Frame, data_frame};
use crate::writer::{
    ChoiceEnd, CutCall, HeldFrames, ReportedEnd, StreamEnd, StreamError, Writer, endmark_field,
};

/// Fields with the same value in every chunk of a stream.
const ENVELOPE_FIELDS: [&str; 3] = ["modelVersion", "responseId", "createTime"];

/// Maximum length of a repeated envelope field in bytes. The upstream controls these fields, and they are
/// kept for the whole stream.
const MAX_ENVELOPE_FIELD_BYTES: usize = 4096;

/// The only part of a chunk without content, as in the provider's own last chunk. Some clients read the first
/// part of every chunk.
const EMPTY_TEXT_PART: &str = "{\"text\":\"\"}";

/// Writes a streamed reply.
#[derive(Debug)]
pub(super) struct ContentWriter {
    /// The envelope's fields, each preceded by a comma.
    envelope: Option<String>,
    fallback_envelope: String,
    held: HeldFrames,
    /// The held calls, by candidate and call.
    held_calls: HashSet<(u32, u32)>,
    /// The candidates for which Endmark wrote content.
    written_choices: Vec<u32>,
    /// New content of held calls, by candidate and call. It will be written into the held chunks.
    call_updates: HashMap<(u32, u32), ToolCall>,
    /// Held thoughts and signatures that keep their position next to written texts.
    held_signatures: Vec<HeldSignatures>,
    /// Parts to write after the held calls of a candidate.
    trailing_parts: Vec<(u32, String)>,
    /// Held calls that remain cut, by candidate and call.
    cut_calls: HashSet<(u32, u32)>,
}

impl ContentWriter {
    pub(super) fn new(model: &str) -> Self {
        let fallback = format!(",\"modelVersion\":{}", quote(model));
        Self {
            envelope: None,
            fallback_envelope: fallback,
            held: HeldFrames::default(),
            held_calls: HashSet::new(),
            written_choices: Vec::new(),
            held_signatures: Vec::new(),
            call_updates: HashMap::new(),
            trailing_parts: Vec::new(),
            cut_calls: HashSet::new(),
        }
    }

    fn note(&mut self, frame: &Frame) {
        if self.envelope.is_some() {
            return;
        }
        let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
        let Some(root) = root.filter(|root| root.field("candidates").is_some()) else { return };
        let mut envelope = String::new();
        for name in ENVELOPE_FIELDS {
            if let Some(value) =
                root.field(name).filter(|value| value.raw().len() <= MAX_ENVELOPE_FIELD_BYTES)
            {
                envelope.extend([",", &quote(name), ":", value.raw()]);
            }
        }
        self.envelope = Some(envelope);
    }

    fn envelope(&self) -> &str {
        self.envelope.as_deref().unwrap_or(&self.fallback_envelope)
    }

    fn write_part(&mut self, choice: u32, part: &str) -> Vec<u8> {
        if !self.written_choices.contains(&choice) {
            self.written_choices.push(choice);
        }
        let json = format!(
            "{{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}},\"index\":{choice}}}]{}}}",
            self.envelope()
        );
        data_frame(json.as_bytes())
    }

    /// Returns the held thoughts and signatures of a candidate.
    fn held_signatures(&self, choice: u32) -> HeldSignatures {
        let roots = self.held.frames().filter_map(|frame| Value::parse_str(frame.data.as_deref()?).ok());
        HeldSignatures::collect(choice, roots.filter_map(|root| candidate(root, choice)))
    }

    /// Returns the held parts that were not reached, because the text became shorter than their positions.
    fn write_remaining_signatures(&mut self) -> Vec<u8> {
        let left = self
            .held_signatures
            .iter_mut()
            .map(|standing| (standing.choice, standing.take_remaining().collect()));
        let left: Vec<(u32, Vec<String>)> = left.collect();
        let parts =
            left.into_iter().flat_map(|(choice, parts)| parts.into_iter().map(move |part| (choice, part)));
        parts
            .collect::<Vec<_>>()
            .into_iter()
            .flat_map(|(choice, part)| self.write_part(choice, &part))
            .collect()
    }

    fn send_held(&mut self) -> Vec<u8> {
        self.held.take().into_iter().flat_map(|(frame, _)| frame.raw).collect()
    }

    /// Returns a chunk that ends a choice, if no such chunk was held.
    fn end_chunk(&self, end: &ChoiceEnd<'_>, closing: &StreamEnd<'_>) -> Vec<u8> {
        let Some(word) = end.end.map(finish_reason) else { return Vec::new() };
        let usage = closing.usage.as_ref().map(|usage| format!(",\"usageMetadata\":{}", usage::json(usage)));
        let json = format!(
            "{{\"candidates\":[{{\"content\":{{\"parts\":[{EMPTY_TEXT_PART}],\"role\":\"model\"}},\"finishReason\":{},\"index\":{}}}]{}{}{}}}",
            quote(word),
            end.choice,
            usage.unwrap_or_default(),
            self.envelope(),
            endmark_field(end.endmark)
        );
        data_frame(json.as_bytes())
    }

    /// Sends the held chunks that precede the end of the reply. Chunks that end a candidate stay held, and so
    /// do chunks without content next to them.
    fn send_chunks_before_end(&mut self, client: &mut Vec<u8>) {
        let held = self.held.take();
        let ends = |event: &Event| !event.finishes.is_empty() || event.error.is_some();
        let any_ended = held.iter().any(|(_, event)| ends(event));
        let (kept, waiting) =
            held.into_iter().partition(|(_, event)| ends(event) || (any_ended && event.pieces.is_empty()));
        self.held.put_back(kept);
        let waiting: Vec<(Frame, Event)> = waiting;
        self.held_calls = self.held.events().flat_map(event_calls).collect();
        client.extend(waiting.into_iter().flat_map(|(frame, _)| frame.raw));
    }

    /// Removes calls that remain cut from a held chunk.
    fn remove_cut_calls<'a>(&self, edits: &mut Edits<'a>, root: Value<'a>, event: &Event) {
        for (choice, candidate) in candidates(root) {
            let Some(array) = candidate.at("content.parts").and_then(|parts| parts.as_kind(Kind::Array))
            else {
                continue;
            };
            let calls = array.items().enumerate().filter(|(_, part)| part_call(*part).is_some());
            let mut left = array.items().count();
            for (number, (position, _)) in candidate_calls(event, choice).zip(calls) {
                if self.cut_calls.contains(&(choice, number)) {
                    edits.remove_item(array, position);
                    left -= 1;
                }
            }
            if left == 0 && !self.cut_calls.is_empty() {
                edits.push_item(array, EMPTY_TEXT_PART);
            }
        }
    }

    fn write_calls<'a>(&self, edits: &mut Edits<'a>, candidate: Value<'a>, choice: u32, event: &Event) {
        let held = parts(candidate).filter_map(|part| Some((part, part_call(part)?)));
        for (number, (part, call)) in candidate_calls(event, choice).zip(held) {
            let Some(known) = self.call_updates.get(&(choice, number)) else { continue };
            let own = call.field("args").map(Value::raw);
            if let Some(arguments) =
                arguments_object(&known.arguments).filter(|arguments| own != Some(arguments))
            {
                edits.set_field(call, "args", arguments);
                sign(edits, part, known.signature.as_deref());
            }
        }
    }

    /// Returns all held chunks except errors, with the new ends, and the candidates that ended in them.
    fn edit_held(&self, held: &[(Frame, Event)], closing: &StreamEnd<'_>) -> (Vec<u8>, Vec<u32>) {
        let mut bytes = Vec::new();
        let mut ended = Vec::new();
        for (position, (frame, event)) in
            held.iter().enumerate().filter(|(_, (_, event))| event.error.is_none())
        {
            ended.extend(event.finishes.iter().map(|finish| finish.choice));
            let later = held.get(position + 1..).unwrap_or_default();
            let more_follow =
                |choice| later.iter().any(|(_, event)| candidate_calls(event, choice).next().is_some());
            let trailing = self.trailing_parts.iter().filter(|(choice, _)| {
                candidate_calls(event, *choice).next().is_some() && !more_follow(*choice)
            });
            let behind: Vec<&(u32, String)> = trailing.collect();
            let edited = self.edit_chunk(frame, event, &behind, closing);
            bytes.extend(edited.unwrap_or_else(|| frame.raw.clone()));
        }
        (bytes, ended)
    }

    /// Returns a held chunk with the new ends, and with these parts after its own.
    fn edit_chunk(
        &self,
        frame: &Frame,
        event: &Event,
        trailing: &[&(u32, String)],
        closing: &StreamEnd<'_>,
    ) -> Option<Vec<u8>> {
        let root = Value::parse_str(frame.data.as_deref()?).ok()?;
        let mut edits = Edits::for_document(root);
        self.remove_cut_calls(&mut edits, root, event);
        for end in closing.choices {
            let Some(candidate) = candidate(root, end.choice) else { continue };
            if end.is_rewritten || self.written_choices.contains(&end.choice) {
                remove_text(&mut edits, candidate);
                if self.held_signatures.iter().any(|standing| standing.choice == end.choice) {
                    remove_from(&mut edits, candidate);
                }
            }
            self.write_calls(&mut edits, candidate, end.choice, event);
            let own = candidate.at("content.parts").and_then(|parts| parts.as_kind(Kind::Array));
            let behind = trailing.iter().filter(|(choice, _)| *choice == end.choice);
            for (own, (_, part)) in own.into_iter().cycle().zip(behind) {
                edits.push_item(own, part);
            }
            if self.written_choices.contains(&end.choice)
                || end.end.is_some_and(|end| end != ReportedEnd::Cut)
            {
                remove_continuation_token(&mut edits, candidate);
            }
            if let Some(end) = end.end
                && candidate.non_empty("finishReason").is_some()
            {
                edits.set_field(candidate, "finishReason", &quote(finish_reason(end)));
            }
            if let Some(endmark) = end.endmark
                && candidate.non_empty("finishReason").is_some()
            {
                edits.set_field(root, "endmark", endmark.get());
            }
        }
        if let Some(usage) = &closing.usage {
            usage::write(&mut edits, usage);
        }
        Some(frame.with_data(&edits.finish()))
    }
}

/// Returns the calls in this event, by candidate and number.
fn event_calls(event: &Event) -> impl Iterator<Item = (u32, u32)> {
    event.pieces.iter().filter_map(|delta| match delta.piece {
        Piece::ToolCall { index, .. } => Some((delta.choice, index)),
        Piece::Text(_) | Piece::Reasoning(_) | Piece::Refusal(_) => None,
    })
}

/// Returns the call numbers of a candidate in this event.
fn candidate_calls(event: &Event, choice: u32) -> impl Iterator<Item = u32> {
    let of_choice = event.pieces.iter().filter(move |delta| delta.choice == choice);
    of_choice.filter_map(|delta| match delta.piece {
        Piece::ToolCall { index, .. } => Some(index),
        Piece::Text(_) | Piece::Reasoning(_) | Piece::Refusal(_) => None,
    })
}

/// Removes text from a candidate that the client has already received in another form. Other fields of a part
/// stay, such as the signature of a thought.
fn remove_text<'a>(edits: &mut Edits<'a>, candidate: Value<'a>) {
    for part in parts(candidate) {
        if let Some(text) = part_text(part) {
            edits.set_text(text, "");
        }
    }
}

impl Writer for ContentWriter {
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>) {
        // If the end of one candidate is held back, other candidates still continue.
        if !event.is_idle {
            self.send_chunks_before_end(client);
        }
        self.note(frame);
        client.extend_from_slice(&frame.raw);
    }

    fn hold(&mut self, frame: Frame, event: &Event) {
        self.note(&frame);
        self.held_calls.extend(event_calls(event));
        self.held.push(frame, event);
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn release(&mut self) -> Vec<u8> {
        self.send_held()
    }

    fn write_text(&mut self, choice: u32, text: &str) -> Vec<u8> {
        let known = self.held_signatures.iter().position(|standing| standing.choice == choice);
        let mut standing = match known {
            Some(position) => self.held_signatures.swap_remove(position),
            None => self.held_signatures(choice),
        };
        let mut bytes = Vec::new();
        let mut rest = text;
        loop {
            let (before, part) = standing.next_piece(&mut rest);
            if !before.is_empty() {
                bytes.extend(self.write_part(choice, &format!("{{\"text\":{}}}", quote(before))));
            }
            let Some(part) = part else { break };
            bytes.extend(self.write_part(choice, &part));
        }
        self.held_signatures.push(standing);
        bytes
    }

    fn write_arguments(&mut self, _choice: u32, _call: &ToolCall, _arguments: &str) -> Option<Vec<u8>> {
        None
    }

    fn can_continue(&self, _choice: u32, _call: &ToolCall) -> bool {
        // Arguments arrive as one object.
        false
    }

    fn calls_arrive_complete(&self) -> bool {
        true
    }

    fn shows_cut_calls(&self) -> bool {
        // An object does not show that something is missing in it.
        false
    }

    /// A call that is not held is complete, because more of the reply followed it.
    fn note_cut_calls(&mut self, choice: u32, calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        let held = calls.iter().filter(|call| self.held_calls.contains(&(choice, **call)));
        let left_out: Vec<(u32, CutCall)> = held.map(|call| (*call, CutCall::Omitted)).collect();
        self.cut_calls.extend(left_out.iter().map(|(call, _)| (choice, *call)));
        left_out
    }

    fn write_tool_call(&mut self, choice: u32, call: &ToolCall) -> Vec<u8> {
        if self.held_calls.contains(&(choice, call.index)) {
            self.call_updates.insert((choice, call.index), call.clone());
            return Vec::new();
        }
        // This format cannot represent a call whose arguments are not an object. The end of the reply reports
        // the cut.
        let Some(part) = call_part(call) else { return Vec::new() };
        if self.held.events().any(|event| candidate_calls(event, choice).next().is_some()) {
            self.trailing_parts.push((choice, part));
            return Vec::new();
        }
        self.write_part(choice, &part)
    }

    fn write_signature(&mut self, choice: u32, signature: &str) -> Vec<u8> {
        self.write_part(choice, &signature_part(signature))
    }

    fn close(&mut self, closing: &StreamEnd<'_>) -> Vec<u8> {
        let held = self.held.take();
        if closing.choices.is_empty() {
            self.held.put_back(held);
            return self.send_held();
        }
        let mut bytes = self.write_remaining_signatures();
        let (edited, ended) = self.edit_held(&held, closing);
        bytes.extend(edited);
        for end in closing.choices.iter().filter(|end| !ended.contains(&end.choice)) {
            bytes.extend(self.end_chunk(end, closing));
        }
        bytes
    }

    fn write_error(&mut self, error: &StreamError<'_>) -> Vec<u8> {
        let own = self.held.upstream_error().cloned();
        let held = self.held.take();
        let closing = StreamEnd { choices: error.choices, ..StreamEnd::default() };
        let mut bytes = self.write_remaining_signatures();
        bytes.extend(self.edit_held(&held, &closing).0);
        let disclosed = own.as_ref().and_then(|frame| {
            let root = Value::parse_str(frame.data.as_deref()?).ok()?;
            let mut edits = Edits::for_document(root.as_kind(Kind::Object)?);
            if let Some(endmark) = error.endmark {
                edits.set_field(root, "endmark", endmark.get());
            }
            Some(frame.with_data(&edits.finish()))
        });
        bytes.extend(disclosed.unwrap_or_else(|| {
            let fields = error::field(error.status, error.kind, error.message);
            data_frame(format!("{{{fields}{}}}", error.endmark_field()).as_bytes())
        }));
        bytes
    }

    /// Returns an empty line, because Google's Python library would parse a comment as part of an event.
    fn keep_alive(&self) -> Vec<u8> {
        b"\r\n".to_vec()
    }
}
