//! The client's side of a streamed response.

mod call;
mod client_item;
mod end;
mod held_call;

use std::collections::{BTreeSet, HashMap, HashSet};

use super::error;
use super::item::{CallForm, Item};
use super::response::{COMPLETED, INCOMPLETE, call_item, end_status, own_item_id, text_part};
use super::stream::ItemPlace;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::reply::{Event, Piece, StoredItem, ToolCall, append};
use crate::sse::{Frame, event_frame};
use crate::writer::{Closing, CutCall, End, HeldFrames, StreamError, Writer};
use client_item::{ClientItem, Target};

/// Writes a streamed response.
// Fields: the state of one pass over a stream, most of which changes with each event.
#[derive(Debug)]
pub(super) struct ResponseWriter {
    model: String,
    /// Number of bytes of the client's data that may still be remembered. `None` after the limit was reached.
    room: Option<usize>,
    held: HeldFrames,
    /// The response object with which the stream began.
    response: Option<String>,
    /// The items that the client has, in order.
    items: Vec<ClientItem>,
    /// The index of the last item at each place, and of each call.
    position_by_place: HashMap<ItemPlace, usize>,
    item_by_call: HashMap<u32, usize>,
    /// The indices of the messages among them, except for complete ones at the end.
    messages: Vec<usize>,
    calls: u32,
    /// The data of the last event that the client has, if the server numbers its events.
    last: Option<String>,
    /// The number of the last event that was written here.
    number: Option<u64>,
    /// Whether the server sends no output index, as llama.cpp: only the id identifies an item.
    unindexed: bool,
    /// Whether anything was written that the upstream did not send.
    has_written: bool,
    /// The id of the response, for a response that begins here.
    id: Option<String>,
    /// The calls that stay cut.
    cut: BTreeSet<u32>,
    /// The items that are withheld from the client, because others replace them.
    omitted_items: HashSet<ItemPlace>,
    /// Number of leading items that are as complete as possible.
    completed: usize,
}

impl ResponseWriter {
    pub(super) fn new(model: &str, keep_bytes: usize) -> Self {
        Self {
            model: model.to_owned(),
            room: Some(keep_bytes),
            held: HeldFrames::default(),
            response: None,
            items: Vec::new(),
            position_by_place: HashMap::new(),
            item_by_call: HashMap::new(),
            messages: Vec::new(),
            calls: 0,
            last: None,
            number: None,
            unindexed: false,
            has_written: false,
            id: None,
            cut: BTreeSet::new(),
            omitted_items: HashSet::new(),
            completed: 0,
        }
    }

    /// Remembers bytes while there is room for them. If one piece is missing, nothing can be repeated.
    fn keep(&mut self, text: &str) -> String {
        self.room = self.room.and_then(|room| room.checked_sub(text.len()));
        if self.room.is_none() {
            self.items = Vec::new();
            (self.position_by_place, self.item_by_call, self.messages) = Default::default();
            self.response = None;
            return String::new();
        }
        text.to_owned()
    }

    /// Updates the state of the client for a frame that it gets.
    fn note(&mut self, frame: &Frame, event: &Event) {
        let Some(data) = frame.data.as_deref().filter(|_| self.room.is_some()) else { return };
        if let Some(last) = &mut self.last {
            last.clear();
            last.push_str(data);
        }
        let is_delta = frame.event.as_deref().is_some_and(|name| name.rsplit('.').next() == Some("delta"));
        if is_delta {
            self.note_pieces(event);
            return;
        }
        let Ok(root) = Value::parse_str(data) else { return };
        if self.last.is_none() && root.field("sequence_number").is_some() {
            self.last = Some(data.to_owned());
        }
        let kind = root.word("type").unwrap_or_default();
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = root.field("response").and_then(|own| own.as_kind(Kind::Object)) {
                    self.response = Some(self.keep(response.raw())).filter(|kept| !kept.is_empty());
                }
            }
            "response.output_item.added" => self.note_item(root),
            "response.content_part.added" => {
                let part = root.field("part").map(|part| self.keep(part.raw())).unwrap_or_default();
                if let Some(known) = self.known_item(&ItemPlace::read(root)) {
                    known.begin_part(root.field("content_index").and_then(Value::as_u64), part);
                }
            }
            "response.content_part.done" => {
                if let Some(known) = self.known_item(&ItemPlace::read(root)) {
                    known.part_done = true;
                }
            }
            "response.output_item.done" => {
                let place = ItemPlace::read(root);
                if self.known_item(&place).is_none() {
                    self.note_item(root);
                }
                let item = root.field("item").map(|item| self.keep(item.raw())).unwrap_or_default();
                if let Some(known) = self.known_item(&place) {
                    known.done_part = Some(item);
                }
            }
            _ => self.note_pieces(event),
        }
    }

    fn note_item(&mut self, root: Value<'_>) {
        let Some(item) = root.field("item") else { return };
        let raw = self.keep(item.raw());
        let kind = Item::classify(item);
        let call = self.calls;
        self.calls = self.calls.saturating_add(u32::from(kind == Item::Call));
        let index = root.field("output_index").and_then(Value::as_u64);
        self.unindexed |= index.is_none();
        let index = index.unwrap_or_else(|| self.next_index());
        let mut known =
            ClientItem::new(ItemPlace::read(root), index, item.word("id").unwrap_or_default(), kind, raw);
        known.call = call;
        known.form = CallForm::from_item(item);
        known.text = item.word(known.form.field).map(|arguments| self.keep(&arguments)).unwrap_or_default();
        self.add(known);
    }

    fn note_pieces(&mut self, event: &Event) {
        for delta in &event.pieces {
            let (target, text) = match &delta.piece {
                Piece::Text(text) => (Target::Text, text),
                Piece::ToolCall { index, arguments, .. } => (Target::Call(*index), arguments),
                Piece::Reasoning(_) | Piece::Refusal(_) => continue,
            };
            let kept = self.keep(text);
            if let Some(position) = self.open(target) {
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

    /// Returns an id for a new item, derived from the response's id, because later requests may refer to it.
    fn own_id(&self, prefix: &str) -> String {
        let sent_response =
            self.response.as_deref().and_then(|response| Value::parse_str(response).ok()?.word("id"));
        let response = sent_response.or_else(|| self.id.clone()).unwrap_or_default();
        own_item_id(prefix, &response, self.items.len())
    }

    /// Returns the `sequence_number` field, if the server numbers its events.
    fn sequence_field(&mut self) -> String {
        let before = self.number.or_else(|| {
            let last = Value::parse_str(self.last.as_deref()?).ok()?;
            last.field("sequence_number").and_then(Value::as_u64)
        });
        self.number = before.map(|before| before.saturating_add(1));
        self.number.map(|number| format!(",\"sequence_number\":{number}")).unwrap_or_default()
    }

    /// Returns the fields that state an item's place, each followed by a comma.
    fn item_place_fields(&self, known: &ClientItem) -> String {
        if self.unindexed { String::new() } else { format!("\"output_index\":{},", known.index) }
    }

    /// Returns the fields that state a part's place.
    fn part_place_fields(&self, known: &ClientItem) -> String {
        let id = quote(&known.id);
        if self.unindexed {
            return format!("\"item_id\":{id}");
        }
        let content = known.content_index.map(|index| format!(",\"content_index\":{index}"));
        format!("\"item_id\":{id},\"output_index\":{}{}", known.index, content.unwrap_or_default())
    }

    fn write_event(&mut self, name: &str, fields: &str) -> Vec<u8> {
        let numbered = self.sequence_field();
        event_frame(name, format!("{{\"type\":\"{name}\",{fields}{numbered}}}").as_bytes())
    }

    /// Returns a held frame with a number that follows the events written here.
    fn renumber(&mut self, frame: &Frame, edits: Edits<'_>, name: Option<&str>) -> Vec<u8> {
        let root = edits.original();
        let mut edits = edits;
        if root.field("sequence_number").is_some() && self.number.is_some() {
            self.sequence_field();
            if let Some(number) = self.number {
                edits.set_field(root, "sequence_number", &number.to_string());
            }
        }
        match name {
            Some(name) => event_frame(name, &edits.finish()),
            None => frame.with_data(&edits.finish()),
        }
    }

    /// Passes held frames that do not concern the part that continues now.
    fn make_way(&mut self, target: Option<Target>) -> Vec<u8> {
        let open =
            target.and_then(|target| self.open(target)).map(|position| self.items[position].place.clone());
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
            // Another call may continue next. It is then written from the position that the client has.
            let waits = |known: &mut ClientItem| known.has_grown || known.kind == Item::Call;
            if open.as_ref() == Some(&place) || self.known_item(&place).is_some_and(waits) {
                kept.push((frame, event));
            } else if self.known_item(&place).is_some() || place == ItemPlace::Unstated {
                bytes.extend(self.renumber(&frame, Edits::for_document(root), None));
                self.note(&frame, &event);
            } else if matches!(target, Some(Target::Call(_))) {
                // It follows the call that continues.
                kept.push((frame, event));
            }
        }
        self.held.put_back(kept);
        bytes
    }

    /// Returns the status of an item if the last one ends with `status`, or `None` if the item keeps its own.
    fn item_status(&self, known: &ClientItem, status: Option<&'static str>) -> Option<&'static str> {
        let is_last = self.items.last().is_some_and(|last| last.place == known.place);
        match known.kind {
            Item::Call if self.cut.contains(&known.call) => Some(INCOMPLETE),
            Item::Call if !self.cut.is_empty() => Some(COMPLETED),
            _ if is_last => status,
            _ => None,
        }
    }

    /// Passes all held frames that are not an end of the response. Events that complete an item continued here repeat
    /// all of it. If `ends` is set, the last item gets `status`.
    fn pass_held(&mut self, status: &'static str, ends: bool) -> Vec<u8> {
        let held = self.held.take();
        let (bytes, kept) = self.pass_frames(held, status, ends);
        self.held.put_back(kept);
        bytes
    }

    /// Does the same for these frames. Also returns those that are an end of the response.
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
            if event.closes && self.is_cut_text(&place) {
                continue;
            }
            let known = self.position_by_place.get(&place).and_then(|position| self.items.get(*position));
            if known.is_some_and(|known| known.has_grown) && !event.closes && !event.pieces.is_empty() {
                // All of it was already written.
                continue;
            }
            let mut edits = Edits::for_document(root);
            let own = known.and_then(|known| self.item_status(known, ends.then_some(status)));
            if let Some(known) = known.filter(|known| known.has_grown) {
                known.write_closing(&mut edits, root, own.unwrap_or(COMPLETED));
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

    /// Completes every incomplete item, as far as possible.
    fn complete_all(&mut self) -> Vec<u8> {
        let open = self.completed..self.items.len();
        self.completed = open.end;
        open.flat_map(|position| self.complete(position, COMPLETED)).collect()
    }

    fn begin(&mut self, kind: Item, id: &str, item: &str) -> Vec<u8> {
        let mut bytes = self.begin_response();
        let index = self.next_index();
        let place = if self.unindexed { ItemPlace::Id(id.to_owned()) } else { ItemPlace::Index(index) };
        let mut known = ClientItem::new(place, index, id.to_owned(), kind, item.to_owned());
        known.is_own = true;
        known.call = self.calls;
        self.calls = self.calls.saturating_add(u32::from(kind == Item::Call));
        let fields = format!("{}\"item\":{item}", self.item_place_fields(&known));
        bytes.extend(self.write_event("response.output_item.added", &fields));
        self.add(known);
        bytes
    }

    /// Returns the beginning of a response, for a client that has nothing of it.
    fn begin_response(&mut self) -> Vec<u8> {
        if self.response.is_some() || !self.items.is_empty() {
            return Vec::new();
        }
        let response = self.bare_response();
        let event = self.write_event("response.created", &format!("\"response\":{response}"));
        self.response = Some(response);
        event
    }

    fn bare_response(&self) -> String {
        let (model, id) = (quote(&self.model), quote(self.id.as_deref().unwrap_or("resp_endmark")));
        format!(
            "{{\"id\":{id},\"object\":\"response\",\"created_at\":0,\"status\":\"in_progress\",\"model\":{model},\"output\":[]}}"
        )
    }

    /// Appends to an item. Returns the fields of the event that reports this.
    fn grow(&mut self, position: usize, text: &str) -> String {
        self.has_written = true;
        let at = self.part_place_fields(&self.items[position]);
        let known = &mut self.items[position];
        append(&mut known.text, text);
        known.has_grown = true;
        format!("{at},\"delta\":{}", quote(text))
    }

    /// Returns all events that complete an item and were not sent yet. Items of other kinds, such as a call of a tool
    /// that is not a function, cannot be completed, because their final form is unknown.
    fn complete(&mut self, position: usize, status: &str) -> Vec<u8> {
        let can_be = |known: &&ClientItem| {
            known.done_part.is_none() && !matches!(known.kind, Item::OtherCall | Item::Other)
        };
        let Some(known) = self.items.get(position).filter(can_be).cloned() else {
            return Vec::new();
        };
        let at = self.part_place_fields(&known);
        let text = quote(&known.text);
        let mut bytes = Vec::new();
        match known.kind {
            Item::Message if !known.part_done && known.content_index.is_some() => {
                let name = "response.output_text.done";
                bytes.extend(self.write_event(name, &format!("{at},\"text\":{text},\"logprobs\":[]")));
                let part = known.whole_part();
                bytes
                    .extend(self.write_event("response.content_part.done", &format!("{at},\"part\":{part}")));
            }
            // Clients run a call with free text when its completing event arrives, whatever its status is.
            Item::Call if known.form.is_free_text() && status == INCOMPLETE => {
                self.items[position].done_part = Some(known.whole_item(status));
                return bytes;
            }
            Item::Call => {
                let CallForm { event, field, .. } = known.form;
                bytes.extend(self.write_event(&format!("{event}.done"), &format!("{at},\"{field}\":{text}")));
            }
            _ => {}
        }
        let item = known.whole_item(status);
        let fields = format!("{}\"item\":{item}", self.item_place_fields(&known));
        bytes.extend(self.write_event("response.output_item.done", &fields));
        self.items[position].done_part = Some(item);
        bytes
    }

    /// Returns all complete items.
    fn output(&self) -> String {
        let items: Vec<&str> = self.items.iter().filter_map(|known| known.done_part.as_deref()).collect();
        let items: Vec<&str> = items.into_iter().filter(|item| !item.is_empty()).collect();
        format!("[{}]", items.join(","))
    }
}

/// Returns a message that begins.
fn bare_message(id: &str) -> String {
    let id = quote(id);
    format!(
        "{{\"id\":{id},\"type\":\"message\",\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}}"
    )
}

impl Writer for ResponseWriter {
    fn pass(&mut self, frame: &Frame, event: &Event, client: &mut Vec<u8>) {
        if !event.idle {
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

    fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    fn can_write(&self) -> bool {
        let can_be_completed = |known: &ClientItem| {
            known.done_part.is_some() || matches!(known.kind, Item::Message | Item::Call)
        };
        let closes = self.held.events().any(|event| event.closes);
        self.room.is_some() && (closes || self.items.iter().all(can_be_completed))
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
        let mut bytes = self.make_way(Some(Target::Text));
        let position = self.open(Target::Text).filter(|position| !self.items[*position].part_done);
        let position = position.unwrap_or_else(|| {
            let id = self.own_id("msg");
            bytes.extend(self.begin(Item::Message, &id, &bare_message(&id)));
            self.items.len() - 1
        });
        if self.items[position].content_index.is_none() {
            self.items[position].begin_part(Some(0), text_part(""));
            let at = self.part_place_fields(&self.items[position]);
            let fields = format!("{at},\"part\":{}", text_part(""));
            bytes.extend(self.write_event("response.content_part.added", &fields));
        }
        let fields = self.grow(position, text);
        bytes.extend(self.write_event("response.output_text.delta", &format!("{fields},\"logprobs\":[]")));
        bytes
    }

    fn write_arguments(&mut self, _choice: u32, call: &ToolCall, arguments: &str) -> Option<Vec<u8>> {
        let target = Target::Call(call.index);
        let position = self.open(target)?;
        let mut bytes = self.make_way(Some(target));
        let fields = self.grow(position, arguments);
        let name = self.delta_event_name(position);
        bytes.extend(self.write_event(&name, &fields));
        Some(bytes)
    }

    fn can_continue(&self, _choice: u32, call: &ToolCall) -> bool {
        self.open(Target::Call(call.index)).is_some()
    }

    fn write_tool_call(&mut self, _choice: u32, call: &ToolCall) -> Vec<u8> {
        if let Some(bytes) = self.write_held_call(call) {
            return bytes;
        }
        // Everything before a call is complete.
        self.drop_unknown_items();
        let mut bytes = self.pass_held("completed", true);
        bytes.extend(self.complete_all());
        let form = CallForm::from_free_text(call.free_text);
        let id = self.own_id(form.id_prefix);
        bytes.extend(self.begin(Item::Call, &id, &call_item(&id, "in_progress", call, "")));
        let position = self.items.len() - 1;
        self.items[position].form = form;
        let fields = self.grow(position, &call.arguments);
        let name = self.delta_event_name(position);
        bytes.extend(self.write_event(&name, &fields));
        bytes.extend(self.complete(position, self.call_status(call)));
        bytes
    }

    fn leave_cut(&mut self, _choice: u32, calls: &BTreeSet<u32>) -> Vec<(u32, CutCall)> {
        self.cut.extend(calls);
        Vec::new()
    }

    fn set_answer_id(&mut self, id: &str) {
        self.id.get_or_insert_with(|| id.to_owned());
    }

    fn close(&mut self, closing: &Closing<'_>) -> Vec<u8> {
        let end = closing.choices.first().and_then(|end| end.end);
        if !self.has_written && (closing.choices.is_empty() || self.room.is_none()) {
            return self.release();
        }
        if self.room.is_none() {
            let message = "the reply is too long to be ended as a whole: ask for less at a time";
            return self.write_error(&StreamError {
                message,
                kind: "endmark_reply_cut",
                status: 502,
                endmark: None,
                choices: &[],
            });
        }
        let status = end_status(end.unwrap_or(End::Turn));
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
        changed.filter_map(|known| StoredItem::parse(known.done_part.as_deref()?)).collect()
    }

    fn write_error(&mut self, error: &StreamError<'_>) -> Vec<u8> {
        let own = self.held.write_error().cloned();
        let mut bytes = Vec::new();
        for (frame, event) in self.held.take() {
            let ends = !event.finishes.is_empty() || event.is_done || event.error.is_some();
            let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
            let is_cut = event.closes && root.is_some_and(|root| self.is_cut_text(&ItemPlace::read(root)));
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
            event_frame("error", error::event(error.kind, error.message, &rest).as_bytes())
        }));
        bytes
    }
}
