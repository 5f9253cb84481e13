//! A streamed response, event by event.

use super::error;
use super::item::{CallForm, Item, is_web_search, part_refusal, texts};
use super::stop;
use super::usage;
use crate::json::{Fields, Value};
use crate::reply::{CallProgress, Delta, Event, EventError, Fidelity, Piece, Received};
use crate::sse::Frame;
use crate::stream::{Data, Reader, frame_data};

/// More items than this are never open at a time. Further ones are not tracked.
const MAX_OPEN_ITEMS: usize = 128;

/// Reads a streamed response.
#[derive(Debug, Clone)]
pub(super) struct ResponseReader {
    has_stop: bool,
    received: Received,
    open: Vec<OpenItem>,
    calls: u32,
}

/// An open item.
#[derive(Debug, Clone)]
struct OpenItem {
    place: ItemPlace,
    item: Item,
    /// Its number among the calls.
    call: u32,
    /// Whether any content of it arrived.
    has_content: bool,
}

/// The item that an event belongs to: its index in the output, or the item's id if a server sends no index. Ids alone
/// are not enough, because some servers change them from event to event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ItemPlace {
    Index(u64),
    Id(String),
    Unstated,
}

impl ItemPlace {
    /// Returns the place that an event states.
    pub(super) fn read(root: Value<'_>) -> Self {
        Self::from_fields(&Fields::new(root))
    }

    /// Returns the same for an event whose fields are already read.
    fn from_fields(fields: &Fields<'_>) -> Self {
        if let Some(index) = fields.get("output_index").and_then(Value::as_u64) {
            return Self::Index(index);
        }
        let own = || fields.non_empty("item_id").and_then(Value::text).map(Into::into);
        let id = own().or_else(|| fields.get("item").and_then(|item| item.word("id")));
        id.map_or(Self::Unstated, Self::Id)
    }
}

impl ResponseReader {
    pub(super) fn new(has_stop: bool, keep_bytes: usize) -> Self {
        Self { has_stop, received: Received::new(keep_bytes), open: Vec::new(), calls: 0 }
    }

    fn read_event(&mut self, root: Value<'_>) -> Event {
        // Most events are pieces and have none of the fields that could contain an error. One pass over the fields
        // shows this.
        let fields = Fields::new(root);
        let kind = fields.get("type").and_then(Value::text).unwrap_or_default().into_owned();
        let may_fail =
            kind == "error" || ["error", "object", "response"].iter().any(|name| fields.get(name).is_some());
        let error = may_fail.then(|| error::read(root)).flatten();
        let mut event = Event { error, ..Event::default() };
        let mut fidelity = Fidelity::Exact;
        match kind.as_str() {
            "response.created" | "response.queued" | "response.in_progress" => {
                event.opens =
                    fields.get("response").is_some_and(|response| response.non_empty("output").is_none());
            }
            "response.output_item.added" => fidelity = self.begin_item(root, &mut event),
            "response.content_part.added" => {
                event.opens = root.field("part").is_some_and(|part| {
                    part.has_text("type", "output_text") && part.non_empty("text").is_none()
                });
            }
            "response.output_item.done" => fidelity = self.end_item(root, &mut event),
            "response.output_text.delta" => fidelity = self.read_piece(&fields, &mut event, None),
            "response.refusal.delta" => {
                self.read_response_items(&fields, &mut event, Piece::Refusal);
            }
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                self.read_response_items(&fields, &mut event, Piece::Reasoning);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                match self.open_call(&fields) {
                    Some(index) => fidelity = self.read_piece(&fields, &mut event, Some(index)),
                    // The event's call is unknown.
                    None => fidelity = Fidelity::Partial,
                }
            }
            "response.output_text.done"
            | "response.content_part.done"
            | "response.refusal.done"
            | "response.function_call_arguments.done"
            | "response.custom_tool_call_input.done"
            | "response.reasoning_text.done"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_summary_part.done" => {
                event.closes = true;
                event.closed_call = self.open_call(&fields);
            }
            _ => {}
        }
        let response = fields.get("response").filter(|_| kind.starts_with("response."));
        if let Some(response) = response {
            event.finishes.extend(stop::read(response, self.has_stop));
            event.usage = usage::read(response);
            self.received.note_identity(response.word("model"), response.word("id"));
            self.received.note_tier(response.word("service_tier"));
        }
        event.opens &= event.error.is_none() && event.finishes.is_empty();
        let begins = response.is_some() || !event.pieces.is_empty();
        if begins {
            self.received.add_pieces(0, &event.pieces, false);
        }
        self.received.end(0, event.finishes.first().cloned(), fidelity);
        self.note_call(root, &kind, &event);
        if kind == "response.output_item.added"
            && self
                .open
                .last()
                .is_some_and(|open| open.item == Item::Message && open.place == ItemPlace::read(root))
        {
            let length = self.received.choice_at(0).map_or(0, |choice| choice.text.len());
            self.received.note_part_begin(0, length);
        }
        self.note_own_tool(root, &kind);
        if let Some(open) = self.open.last().filter(|open| open.item == Item::Reasoning)
            && kind == "response.output_item.added"
            && open.place == ItemPlace::read(root)
        {
            self.received.note_hidden_reasoning(0);
        }
        event.has_no_choices = event.pieces.is_empty() && event.finishes.is_empty() && !event.closes;
        event
    }

    /// Records whether a call's item is complete, and whether it is a call of a custom tool.
    fn note_call(&mut self, root: Value<'_>, kind: &str, event: &Event) {
        let Some(item) = root.field("item").filter(|_| kind.starts_with("response.output_item.")) else {
            return;
        };
        if Item::classify(item) != Item::Call {
            return;
        }
        let started_call = event.pieces.iter().find_map(|delta| match &delta.piece {
            Piece::ToolCall { index, .. } => Some(*index),
            _ => None,
        });
        let ends = kind == "response.output_item.done" && !item.has_text("status", "incomplete");
        let progress = if ends { CallProgress::Closed } else { CallProgress::Open };
        if let Some(call) = started_call.or(event.closed_call) {
            self.received.note_progress(0, call, progress);
            if CallForm::from_item(item).is_free_text() {
                self.received.note_free_text(0, call);
            }
        }
    }

    /// Records an item of one of the provider's own tools. Some servers send only its end.
    fn note_own_tool(&mut self, root: Value<'_>, kind: &str) {
        let item = root.field("item").filter(|_| kind.starts_with("response.output_item."));
        let Some(item) = item.filter(|item| matches!(Item::classify(*item), Item::OtherCall | Item::Other))
        else {
            return;
        };
        self.received.note_unrequestable(0);
        if kind == "response.output_item.done" && is_web_search(item) {
            self.received.update_searches(0, |known| known.saturating_add(1));
        }
    }

    /// Returns the call that an event belongs to, while its item is open.
    fn open_call(&self, fields: &Fields<'_>) -> Option<u32> {
        let place = ItemPlace::from_fields(fields);
        let call = self.open.iter().find(|open| open.place == place && open.item == Item::Call);
        call.map(|open| open.call)
    }

    /// Adds the event's delta as a piece of the text, or of the arguments of this call. Returns how completely the
    /// piece represents it.
    fn read_piece(&mut self, fields: &Fields<'_>, event: &mut Event, call: Option<u32>) -> Fidelity {
        let delta = fields.get("delta").and_then(|delta| self.received.decode(0, call, delta));
        let Some(delta) = delta else { return Fidelity::Exact };
        let text = delta.text.into_owned();
        self.add(
            fields,
            event,
            match call {
                Some(index) => Piece::ToolCall { index, id: None, name: None, arguments: text },
                None => Piece::Text(text),
            },
        );
        Fidelity::from_exactness(delta.exact)
    }

    /// Adds the event's delta as a piece that is not part of the reply itself.
    fn read_response_items(
        &mut self,
        fields: &Fields<'_>,
        event: &mut Event,
        piece: impl FnOnce(String) -> Piece,
    ) {
        if let Some(delta) = fields.get("delta").and_then(Value::text) {
            self.add(fields, event, piece(delta.into_owned()));
        }
    }

    /// Adds a piece, unless it is empty.
    fn add(&mut self, fields: &Fields<'_>, event: &mut Event, piece: Piece) {
        let (Piece::Text(text)
        | Piece::Reasoning(text)
        | Piece::Refusal(text)
        | Piece::ToolCall { arguments: text, .. }) = &piece;
        if text.is_empty() {
            return;
        }
        let place = ItemPlace::from_fields(fields);
        if let Some(open) = self.open.iter_mut().rfind(|open| open.place == place) {
            open.has_content = true;
        }
        event.pieces.push(Delta { choice: 0, piece });
    }

    fn begin_item(&mut self, root: Value<'_>, event: &mut Event) -> Fidelity {
        let Some(item) = root.field("item") else { return Fidelity::Exact };
        let kind = Item::classify(item);
        let mut open =
            OpenItem { place: ItemPlace::read(root), item: kind, call: self.calls, has_content: false };
        let mut fidelity = Fidelity::Exact;
        event.opens = match kind {
            Item::Message => item.non_empty("content").is_none(),
            Item::Reasoning => ["summary", "content", "encrypted_content"]
                .iter()
                .all(|field| item.non_empty(field).is_none()),
            Item::Call | Item::OtherCall | Item::Other => false,
        };
        if kind == Item::Call {
            let (begins, all) = begin_call(item, self.calls);
            open.has_content = matches!(&begins, Piece::ToolCall { arguments, .. } if !arguments.is_empty());
            self.calls = self.calls.saturating_add(1);
            event.pieces.push(Delta { choice: 0, piece: begins });
            fidelity = all;
        }
        if self.open.len() < MAX_OPEN_ITEMS {
            self.open.retain(|known| known.place != open.place);
            self.open.push(open);
        }
        fidelity
    }

    /// Reads an item's end. It repeats what arrived; if nothing arrived before, it is the whole item.
    fn end_item(&mut self, root: Value<'_>, event: &mut Event) -> Fidelity {
        let place = ItemPlace::read(root);
        let known = self.open.iter().position(|open| open.place == place);
        let known = known.map(|position| self.open.remove(position));
        event.closed_call = known.as_ref().filter(|open| open.item == Item::Call).map(|open| open.call);
        let Some(item) = root.field("item") else { return Fidelity::Exact };
        let mut fidelity = Fidelity::Exact;
        match (Item::classify(item), &known) {
            (_, Some(open)) if open.has_content => {}
            (Item::Message, _) => {
                for text in texts(item).filter_map(Value::decode).filter(|text| !text.text.is_empty()) {
                    fidelity = fidelity.max(Fidelity::from_exactness(text.exact));
                    let piece = Piece::Text(text.text.into_owned());
                    event.pieces.push(Delta { choice: 0, piece });
                }
                let parts = item.field("content").into_iter().flat_map(Value::items);
                let refusals = parts.filter_map(part_refusal).map(Piece::Refusal);
                event.pieces.extend(refusals.map(|piece| Delta { choice: 0, piece }));
            }
            (Item::Call, known) => {
                let index = known.as_ref().map_or(self.calls, |open| open.call);
                if known.is_none() {
                    self.calls = self.calls.saturating_add(1);
                }
                let (begins, all) = begin_call(item, index);
                fidelity = all;
                let is_news = known.is_none()
                    || matches!(&begins, Piece::ToolCall { arguments, .. } if !arguments.is_empty());
                if is_news {
                    event.pieces.push(Delta { choice: 0, piece: begins });
                }
            }
            (Item::OtherCall | Item::Other | Item::Reasoning, _) => {}
        }
        event.closes = event.pieces.is_empty();
        fidelity
    }
}

/// Returns a call from its item, and how completely its arguments represent what was sent.
fn begin_call(item: Value<'_>, index: u32) -> (Piece, Fidelity) {
    let arguments = item.field(CallForm::from_item(item).field).and_then(Value::decode);
    let fidelity = Fidelity::from_exactness(arguments.as_ref().is_none_or(|arguments| arguments.exact));
    let arguments = arguments.map(|arguments| arguments.text.into_owned()).unwrap_or_default();
    (Piece::ToolCall { index, id: item.word("call_id"), name: item.word("name"), arguments }, fidelity)
}

impl Reader for ResponseReader {
    fn read_frame(&mut self, frame: &Frame) -> Result<Event, EventError> {
        let event = match frame_data(frame, &mut self.received)? {
            Data::Nothing => Event::idle(),
            Data::Done => Event { is_done: true, ..Event::default() },
            Data::Object(root) => self.read_event(root),
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
