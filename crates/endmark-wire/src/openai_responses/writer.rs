//! The client's side of a streamed response.

mod call;
mod client_item;
mod end;
mod held_call;
mod new_items;

use std::collections::{BTreeSet, HashMap, HashSet};

use super::error;
use super::item::{CallForm, ItemKind};
use super::response::{COMPLETED, INCOMPLETE, call_item, end_status, own_item_id, text_part};
use super::stream::ItemPlace;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::reply::{Event, Piece, StoredItem, ToolCall, append};
use crate::sse::{Frame, event_frame};
use crate::writer::{CutCall, HeldFrames, ReportedEnd, StreamEnd, StreamError, Writer};
use client_item::{ClientItem, ContinuedPart};

/// Writes a streamed response.
// Fields: they are the state of one pass over a stream, and most of them change with each event.
#[derive(Debug)]
pub(super) struct ResponseWriter {
    model: String,
    /// The number of bytes that may still be remembered of the data that the client received. `None` after
    /// the limit was exceeded.
    bytes_left: Option<usize>,
    held: HeldFrames,
    /// The response object with which the stream began.
    response: Option<String>,
    /// The items that the client has begun to receive, in order.
    items: Vec<ClientItem>,
    /// The index in `items` of the last item at each place, and of each call.
    position_by_place: HashMap<ItemPlace, usize>,
    item_by_call: HashMap<u32, usize>,
    /// The indices in `items` of the messages, except for complete ones at the end.
    messages: Vec<usize>,
    calls: u32,
    /// The data of the last event that the client received, if the server numbers its events.
    last_event: Option<String>,
    /// The number of the last event that Endmark wrote.
    last_number: Option<u64>,
    /// Whether the server sends no output index, as llama.cpp does. In that case only the id identifies an
    /// item.
    lacks_indices: bool,
    /// Whether anything was written that the upstream did not send.
    has_written: bool,
    /// The id of the response, for a response that Endmark begins.
    id: Option<String>,
    /// The calls that remain cut.
    cut_calls: BTreeSet<u32>,
    /// The items that are withheld from the client, because others replace them.
    omitted_items: HashSet<ItemPlace>,
    /// The number of leading items that cannot be completed any further.
    completed_count: usize,
}

impl ResponseWriter {
    pub(super) fn new(model: &str, keep_bytes: usize) -> Self {
        Self {
            model: model.to_owned(),
            bytes_left: Some(keep_bytes),
            held: HeldFrames::default(),
            response: None,
            items: Vec::new(),
            position_by_place: HashMap::new(),
            item_by_call: HashMap::new(),
            messages: Vec::new(),
            calls: 0,
            last_event: None,
            last_number: None,
            lacks_indices: false,
            has_written: false,
            id: None,
            cut_calls: BTreeSet::new(),
            omitted_items: HashSet::new(),
            completed_count: 0,
        }
    }

    /// Returns a copy of the text while the limit on remembered bytes allows it. After that nothing can be
    /// repeated, because one piece would be missing.
    fn remember(&mut self, text: &str) -> String {
        self.bytes_left = self.bytes_left.and_then(|room| room.checked_sub(text.len()));
        if self.bytes_left.is_none() {
            self.items = Vec::new();
            (self.position_by_place, self.item_by_call, self.messages) = Default::default();
            self.response = None;
            return String::new();
        }
        text.to_owned()
    }

    /// Updates the client's state for a frame that is sent to the client.
    fn note(&mut self, frame: &Frame, event: &Event) {
        let Some(data) = frame.data.as_deref().filter(|_| self.bytes_left.is_some()) else { return };
        if let Some(last) = &mut self.last_event {
            last.clear();
            last.push_str(data);
        }
        let is_delta = frame.event.as_deref().is_some_and(|name| name.rsplit('.').next() == Some("delta"));
        if is_delta {
            self.note_pieces(event);
            return;
        }
        let Ok(root) = Value::parse_str(data) else { return };
        if self.last_event.is_none() && root.field("sequence_number").is_some() {
            self.last_event = Some(data.to_owned());
        }
        let kind = root.non_empty_text("type").unwrap_or_default();
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = root.field("response").and_then(|own| own.as_kind(Kind::Object)) {
                    self.response = Some(self.remember(response.raw())).filter(|kept| !kept.is_empty());
                }
            }
            "response.output_item.added" => self.note_item(root),
            "response.content_part.added" => {
                let part = root.field("part").map(|part| self.remember(part.raw())).unwrap_or_default();
                if let Some(known) = self.known_item(&ItemPlace::read(root)) {
                    known.begin_part(root.field("content_index").and_then(Value::as_u64), part);
                }
            }
            "response.content_part.done" => {
                if let Some(known) = self.known_item(&ItemPlace::read(root)) {
                    known.is_part_complete = true;
                }
            }
            "response.output_item.done" => {
                let place = ItemPlace::read(root);
                if self.known_item(&place).is_none() {
                    self.note_item(root);
                }
                let item = root.field("item").map(|item| self.remember(item.raw())).unwrap_or_default();
                if let Some(known) = self.known_item(&place) {
                    known.completed_item = Some(item);
                }
            }
            _ => self.note_pieces(event),
        }
    }

    fn note_item(&mut self, root: Value<'_>) {
        let Some(item) = root.field("item") else { return };
        let raw = self.remember(item.raw());
        let kind = ItemKind::classify(item);
        let call = self.calls;
        self.calls = self.calls.saturating_add(u32::from(kind == ItemKind::Call));
        let index = root.field("output_index").and_then(Value::as_u64);
        self.lacks_indices |= index.is_none();
        let index = index.unwrap_or_else(|| self.next_index());
        let mut known = ClientItem::new(
            ItemPlace::read(root),
            index,
            item.non_empty_text("id").unwrap_or_default(),
            kind,
            raw,
        );
        known.call = call;
        known.form = CallForm::from_item(item);
        known.text = item
            .non_empty_text(known.form.field)
            .map(|arguments| self.remember(&arguments))
            .unwrap_or_default();
        self.add_client_item(known);
    }

    fn note_pieces(&mut self, event: &Event) {
        for delta in &event.pieces {
            let (target, text) = match &delta.piece {
                Piece::Text(text) => (ContinuedPart::Text, text),
                Piece::ToolCall { index, arguments, .. } => (ContinuedPart::Call(*index), arguments),
                Piece::Reasoning(_) | Piece::Refusal(_) => continue,
            };
            let kept = self.remember(text);
            if let Some(position) = self.find_open_item(target) {
                append(&mut self.items[position].text, &kept);
            }
        }
    }

    fn known_item(&mut self, place: &ItemPlace) -> Option<&mut ClientItem> {
        self.items.get_mut(*self.position_by_place.get(place)?)
    }

    fn next_index(&self) -> u64 {
        self.items.last().map_or(0, |known| known.index.saturating_add(1))
    }

    /// Returns an id for a new item. It is derived from the response's id, because later requests may refer
    /// to it.
    fn own_id(&self, prefix: &str) -> String {
        let sent_response = self
            .response
            .as_deref()
            .and_then(|response| Value::parse_str(response).ok()?.non_empty_text("id"));
        let response = sent_response.or_else(|| self.id.clone()).unwrap_or_default();
        own_item_id(prefix, &response, self.items.len())
    }

    /// Returns the `sequence_number` field, if the server numbers its events.
    fn sequence_field(&mut self) -> String {
        let before = self.last_number.or_else(|| {
            let last = Value::parse_str(self.last_event.as_deref()?).ok()?;
            last.field("sequence_number").and_then(Value::as_u64)
        });
        self.last_number = before.map(|before| before.saturating_add(1));
        self.last_number.map(|number| format!(",\"sequence_number\":{number}")).unwrap_or_default()
    }

    /// Returns the fields with an item's place, each followed by a comma.
    fn item_place_fields(&self, known: &ClientItem) -> String {
        if self.lacks_indices { String::new() } else { format!("\"output_index\":{},", known.index) }
    }

    /// Returns the fields with a part's place.
    fn part_place_fields(&self, known: &ClientItem) -> String {
        let id = quote(&known.id);
        if self.lacks_indices {
            return format!("\"item_id\":{id}");
        }
        let content = known.content_index.map(|index| format!(",\"content_index\":{index}"));
        format!("\"item_id\":{id},\"output_index\":{}{}", known.index, content.unwrap_or_default())
    }

    fn write_event(&mut self, name: &str, fields: &str) -> Vec<u8> {
        let numbered = self.sequence_field();
        event_frame(name, format!("{{\"type\":\"{name}\",{fields}{numbered}}}").as_bytes())
    }

    /// Returns a held frame with a number that follows the events that Endmark wrote.
    fn renumber(&mut self, frame: &Frame, edits: Edits<'_>, name: Option<&str>) -> Vec<u8> {
        let root = edits.original();
        let mut edits = edits;
        if root.field("sequence_number").is_some() && self.last_number.is_some() {
            self.sequence_field();
            if let Some(number) = self.last_number {
                edits.set_field(root, "sequence_number", &number.to_string());
            }
        }
        match name {
            Some(name) => event_frame(name, &edits.finish()),
            None => frame.with_data(&edits.finish()),
        }
    }

    /// Passes the held frames before the part that continues now. Frames of other parts that may still
    /// continue stay held.
    fn pass_other_parts(&mut self, target: Option<ContinuedPart>) -> Vec<u8> {
        let open = target
            .and_then(|target| self.find_open_item(target))
            .map(|position| self.items[position].place.clone());
        let mut bytes = Vec::new();
        let mut kept = Vec::new();
        for (frame, event) in self.held.take() {
            let ends = !event.finishes.is_empty() || event.is_done || event.error.is_some();
            let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
            let Some(root) = root.filter(|_| !ends) else {
                kept.push((frame, event));
                continue;
            };
            let place = ItemPlace::read(root);
            // Another call may continue next. It will be written from the position that the client has
            // reached.
            let waits = |known: &mut ClientItem| known.has_grown || known.kind == ItemKind::Call;
            if open.as_ref() == Some(&place) || self.known_item(&place).is_some_and(waits) {
                kept.push((frame, event));
            } else if self.known_item(&place).is_some() || place == ItemPlace::Unknown {
                bytes.extend(self.renumber(&frame, Edits::for_document(root), None));
                self.note(&frame, &event);
            } else if matches!(target, Some(ContinuedPart::Call(_))) {
                // The item comes after the call that continues.
                kept.push((frame, event));
            }
        }
        self.held.put_back(kept);
        bytes
    }

    /// Returns the status of an item, or `None` if the item keeps its own. `status` applies to the last item.
    fn item_status(&self, known: &ClientItem, status: Option<&'static str>) -> Option<&'static str> {
        let is_last = self.items.last().is_some_and(|last| last.place == known.place);
        match known.kind {
            ItemKind::Call if self.cut_calls.contains(&known.call) => Some(INCOMPLETE),
            ItemKind::Call if !self.cut_calls.is_empty() => Some(COMPLETED),
            _ if is_last => status,
            _ => None,
        }
    }

    /// Passes all held frames that do not end the response. An event that completes a continued item is
    /// changed, so that it contains the whole item. If `ends` is set, the last item gets `status`.
    fn pass_held(&mut self, status: &'static str, ends: bool) -> Vec<u8> {
        let held = self.held.take();
        let (bytes, kept) = self.pass_frames(held, status, ends);
        self.held.put_back(kept);
        bytes
    }

    /// Passes these frames, as [`pass_held`](Self::pass_held) does. Also returns the frames that end the
    /// response.
    fn pass_frames(
        &mut self,
        frames: Vec<(Frame, Event)>,
        status: &'static str,
        ends: bool,
    ) -> (Vec<u8>, Vec<(Frame, Event)>) {
        let mut bytes = Vec::new();
        let mut kept = Vec::new();
        for (frame, event) in frames {
            if !event.finishes.is_empty() || event.is_done || event.error.is_some() {
                kept.push((frame, event));
                continue;
            }
            let Some(root) = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok()) else {
                bytes.extend_from_slice(&frame.raw);
                continue;
            };
            let place = ItemPlace::read(root);
            if event.completes_part && self.is_cut_text(&place) {
                continue;
            }
            let known = self.position_by_place.get(&place).and_then(|position| self.items.get(*position));
            if known.is_some_and(|known| known.has_grown) && !event.completes_part && !event.pieces.is_empty()
            {
                // The whole content was already written.
                continue;
            }
            let mut edits = Edits::for_document(root);
            let own = known.and_then(|known| self.item_status(known, ends.then_some(status)));
            if let Some(known) = known.filter(|known| known.has_grown) {
                known.complete_event(&mut edits, root, own.unwrap_or(COMPLETED));
            } else if let Some(item) = root.field("item").filter(|item| item.field("status").is_some())
                && let Some(own) = own
            {
                edits.set_field(item, "status", &quote(own));
            }
            let edited = self.renumber(&frame, edits, None);
            let shown = Frame::read(edited.clone());
            self.note(&shown, &event);
            bytes.extend(edited);
        }
        (bytes, kept)
    }
}

impl Writer for ResponseWriter {
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>) {
        if !event.is_idle {
            if !self.held.is_empty() {
                client.extend(self.release());
            }
            self.note(frame, event);
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
        let can_be_completed = |known: &ClientItem| {
            known.completed_item.is_some() || matches!(known.kind, ItemKind::Message | ItemKind::Call)
        };
        let closes = self.held.events().any(|event| event.completes_part);
        self.bytes_left.is_some() && (closes || self.items.iter().all(can_be_completed))
    }

    fn release(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (frame, event) in self.held.take() {
            self.note(&frame, &event);
            bytes.extend_from_slice(&frame.raw);
        }
        bytes
    }

    fn write_text(&mut self, _choice: u32, text: &str) -> Vec<u8> {
        let mut bytes = self.pass_other_parts(Some(ContinuedPart::Text));
        let position = self
            .find_open_item(ContinuedPart::Text)
            .filter(|position| !self.items[*position].is_part_complete);
        let position = position.unwrap_or_else(|| {
            let id = self.own_id("msg");
            bytes.extend(self.begin_item(ItemKind::Message, &id, &new_items::bare_message(&id)));
            self.items.len() - 1
        });
        if self.items[position].content_index.is_none() {
            self.items[position].begin_part(Some(0), text_part(""));
            let at = self.part_place_fields(&self.items[position]);
            let fields = format!("{at},\"part\":{}", text_part(""));
            bytes.extend(self.write_event("response.content_part.added", &fields));
        }
        let fields = self.append_to_item(position, text);
        bytes.extend(self.write_event("response.output_text.delta", &format!("{fields},\"logprobs\":[]")));
        bytes
    }

    fn write_arguments(&mut self, _choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>> {
        let target = ContinuedPart::Call(call.index);
        let position = self.find_open_item(target)?;
        let mut bytes = self.pass_other_parts(Some(target));
        let fields = self.append_to_item(position, arguments);
        let name = self.delta_event_name(position);
        bytes.extend(self.write_event(&name, &fields));
        Some(bytes)
    }

    fn can_continue(&self, _choice: u32, call: &ToolCall) -> bool {
        self.find_open_item(ContinuedPart::Call(call.index)).is_some()
    }

    fn write_tool_call(&mut self, _choice: u32, call: &ToolCall) -> Vec<u8> {
        if let Some(bytes) = self.write_held_call(call) {
            return bytes;
        }
        // Complete everything before the call.
        self.drop_unknown_items();
        let mut bytes = self.pass_held("completed", true);
        bytes.extend(self.complete_all());
        let form = CallForm::from_free_text(call.free_text);
        let id = self.own_id(form.id_prefix);
        bytes.extend(self.begin_item(ItemKind::Call, &id, &call_item(&id, "in_progress", call, "")));
        let position = self.items.len() - 1;
        self.items[position].form = form;
        let fields = self.append_to_item(position, &call.arguments);
        let name = self.delta_event_name(position);
        bytes.extend(self.write_event(&name, &fields));
        bytes.extend(self.complete(position, self.call_status(call)));
        bytes
    }

    fn note_cut_calls(&mut self, _choice: u32, calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        self.cut_calls.extend(calls);
        Vec::new()
    }

    fn set_response_id(&mut self, id: &str) {
        self.id.get_or_insert_with(|| id.to_owned());
    }

    fn close(&mut self, closing: &StreamEnd<'_>) -> Vec<u8> {
        let end = closing.choices.first().and_then(|end| end.end);
        if !self.has_written && (closing.choices.is_empty() || self.bytes_left.is_none()) {
            return self.release();
        }
        if self.bytes_left.is_none() {
            let message = "the reply is too long to be ended as a whole: ask for less at a time";
            return self.write_error(&StreamError {
                message,
                kind: "endmark_reply_cut",
                status: 502,
                endmark: None,
                choices: &[],
            });
        }
        let status = end_status(end.unwrap_or(ReportedEnd::Turn));
        let mut bytes = self.pass_held(status, end.is_some());
        let (mut terminal, mut done) = (None, None);
        for (frame, event) in self.held.take() {
            if event.error.is_some() {
                continue;
            }
            if event.finishes.is_empty() {
                done = Some(frame);
            } else {
                terminal = Some(frame);
            }
        }
        for position in 0..self.items.len() {
            let own = self.item_status(&self.items[position], Some(status));
            bytes.extend(self.complete(position, own.unwrap_or(COMPLETED)));
        }
        let edited = terminal.and_then(|frame| self.edit_end(&frame, closing));
        bytes.extend(edited.unwrap_or_else(|| self.create_end(closing)));
        bytes.extend(done.map(|frame| frame.raw).unwrap_or_default());
        bytes
    }

    fn changed_items(&self) -> Vec<StoredItem> {
        let changed = self.items.iter().filter(|known| known.has_grown);
        changed.filter_map(|known| StoredItem::parse(known.completed_item.as_deref()?)).collect()
    }

    fn write_error(&mut self, error: &StreamError<'_>) -> Vec<u8> {
        let own = self.held.upstream_error().cloned();
        let mut bytes = Vec::new();
        for (frame, event) in self.held.take() {
            let ends = !event.finishes.is_empty() || event.is_done || event.error.is_some();
            let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
            let is_cut =
                event.completes_part && root.is_some_and(|root| self.is_cut_text(&ItemPlace::read(root)));
            if !self.has_written && !ends && !is_cut {
                self.note(&frame, &event);
                bytes.extend(frame.raw);
            }
        }
        let disclosed = own.as_ref().and_then(|frame| {
            let root = Value::parse_str(frame.data.as_deref()?).ok()?;
            let mut edits = Edits::for_document(root);
            if let Some(endmark) = error.endmark {
                edits.set_field(root.field("response").unwrap_or(root), "endmark", endmark.get());
            }
            Some(self.renumber(frame, edits, None))
        });
        bytes.extend(disclosed.unwrap_or_else(|| {
            let numbered = self.sequence_field();
            let rest = format!("{numbered}{}", error.endmark_field());
            event_frame("error", error::error_event_json(error.kind, error.message, &rest).as_bytes())
        }));
        bytes
    }
}
