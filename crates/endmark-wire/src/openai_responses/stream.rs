//! A streamed response, event by event.

use super::error;
use super::item::{CallForm, ItemKind, is_web_search, part_refusal, texts};
use super::stop;
use super::usage;
use crate::json::{Fields, Value};
use crate::reply::{CallProgress, ChoicePiece, Event, EventError, Fidelity, Piece, Received};
use crate::sse::Frame;
use crate::stream::{FrameData, Reader, frame_data};

/// No response has more open items than this at a time. Further items are not tracked.
const MAX_OPEN_ITEMS: usize = 128;

/// Reads a streamed response.
#[derive(Debug, Clone)]
pub(super) struct ResponseReader {
    has_stop: bool,
    received: Received,
    open_items: Vec<OpenItem>,
    calls: u32,
}

/// An open item.
#[derive(Debug, Clone)]
struct OpenItem {
    place: ItemPlace,
    item: ItemKind,
    /// The number of the item among the calls.
    call: u32,
    /// Whether any content of it arrived.
    has_content: bool,
}

/// Identifies the item that an event belongs to: by its index in the output, or by its id if a server sends
/// no index. The index has priority, because some servers change the id from event to event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ItemPlace {
    Index(u64),
    Id(String),
    Unknown,
}

impl ItemPlace {
    /// Returns the item that an event refers to.
    pub(super) fn read(root: Value<'_>) -> Self {
        Self::from_fields(&Fields::new(root))
    }

    /// Returns the item that an event refers to, from its fields.
    fn from_fields(fields: &Fields<'_>) -> Self {
        if let Some(index) = fields.get("output_index").and_then(Value::as_u64) {
            return Self::Index(index);
        }
        let own = || fields.non_empty("item_id").and_then(Value::text).map(Into::into);
        let id = own().or_else(|| fields.get("item").and_then(|item| item.non_empty_text("id")));
        id.map_or(Self::Unknown, Self::Id)
    }
}

impl ResponseReader {
    pub(super) fn new(has_stop: bool, keep_bytes: usize) -> Self {
        Self { has_stop, received: Received::new(keep_bytes), open_items: Vec::new(), calls: 0 }
    }

    fn read_event(&mut self, root: Value<'_>) -> Event {
        // Most events are pieces and have none of the fields that could contain an error, and one pass over
        // the fields shows this.
        let fields = Fields::new(root);
        let kind = fields.get("type").and_then(Value::text).unwrap_or_default().into_owned();
        let may_fail =
            kind == "error" || ["error", "object", "response"].iter().any(|name| fields.get(name).is_some());
        let error = may_fail.then(|| error::read(root)).flatten();
        let mut event = Event { error, ..Event::default() };
        let mut fidelity = Fidelity::Exact;
        match kind.as_str() {
            "response.created" | "response.queued" | "response.in_progress" => {
                event.only_begins =
                    fields.get("response").is_some_and(|response| response.non_empty("output").is_none());
            }
            "response.output_item.added" => fidelity = self.begin_item(root, &mut event),
            "response.content_part.added" => {
                event.only_begins = root.field("part").is_some_and(|part| {
                    part.has_text("type", "output_text") && part.non_empty("text").is_none()
                });
            }
            "response.output_item.done" => fidelity = self.end_item(root, &mut event),
            "response.output_text.delta" => fidelity = self.read_piece(&fields, &mut event, None),
            "response.refusal.delta" => {
                self.read_other_piece(&fields, &mut event, Piece::Refusal);
            }
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                self.read_other_piece(&fields, &mut event, Piece::Reasoning);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                match self.open_call(&fields) {
                    Some(index) => fidelity = self.read_piece(&fields, &mut event, Some(index)),
                    // It is unknown which call the event belongs to.
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
                event.completes_part = true;
                event.completed_call = self.open_call(&fields);
            }
            _ => {}
        }
        let response = fields.get("response").filter(|_| kind.starts_with("response."));
        if let Some(response) = response {
            event.finishes.extend(stop::read(response, self.has_stop));
            event.usage = usage::read(response);
            self.received.note_identity(response.non_empty_text("model"), response.non_empty_text("id"));
            self.received.note_tier(response.non_empty_text("service_tier"));
        }
        event.only_begins &= event.error.is_none() && event.finishes.is_empty();
        let begins = response.is_some() || !event.pieces.is_empty();
        if begins {
            self.received.add_pieces(0, &event.pieces, false);
        }
        self.received.end(0, event.finishes.first().cloned(), fidelity);
        self.note_call(root, &kind, &event);
        if kind == "response.output_item.added"
            && self
                .open_items
                .last()
                .is_some_and(|open| open.item == ItemKind::Message && open.place == ItemPlace::read(root))
        {
            let length = self.received.choice_at(0).map_or(0, |choice| choice.text.len());
            self.received.note_part_begin(0, length);
        }
        self.note_own_tool(root, &kind);
        if let Some(open) = self.open_items.last().filter(|open| open.item == ItemKind::Reasoning)
            && kind == "response.output_item.added"
            && open.place == ItemPlace::read(root)
        {
            self.received.note_hidden_reasoning(0);
        }
        event.has_no_choices = event.pieces.is_empty() && event.finishes.is_empty() && !event.completes_part;
        event
    }

    /// Records whether a call's item is complete, and whether the call is for a custom tool.
    fn note_call(&mut self, root: Value<'_>, kind: &str, event: &Event) {
        let Some(item) = root.field("item").filter(|_| kind.starts_with("response.output_item.")) else {
            return;
        };
        if ItemKind::classify(item) != ItemKind::Call {
            return;
        }
        let started_call = event.pieces.iter().find_map(|delta| match &delta.piece {
            Piece::ToolCall { index, .. } => Some(*index),
            _ => None,
        });
        let ends = kind == "response.output_item.done" && !item.has_text("status", "incomplete");
        let progress = if ends { CallProgress::Closed } else { CallProgress::Open };
        if let Some(call) = started_call.or(event.completed_call) {
            self.received.note_progress(0, call, progress);
            if CallForm::from_item(item).is_free_text() {
                self.received.note_free_text(0, call);
            }
        }
    }

    /// Records an item of one of the provider's own tools. Some servers send only the event at its end.
    fn note_own_tool(&mut self, root: Value<'_>, kind: &str) {
        let item = root.field("item").filter(|_| kind.starts_with("response.output_item."));
        let Some(item) =
            item.filter(|item| matches!(ItemKind::classify(*item), ItemKind::OtherCall | ItemKind::Other))
        else {
            return;
        };
        self.received.note_unrequestable(0);
        if kind == "response.output_item.done" && is_web_search(item) {
            self.received.update_searches(0, |known| known.saturating_add(1));
        }
    }

    /// Returns the open call that an event belongs to.
    fn open_call(&self, fields: &Fields<'_>) -> Option<u32> {
        let place = ItemPlace::from_fields(fields);
        let call = self.open_items.iter().find(|open| open.place == place && open.item == ItemKind::Call);
        call.map(|open| open.call)
    }

    /// Adds the event's delta as a piece of the text or, if `call` is given, of the arguments of that call.
    /// Returns how completely the piece represents the delta.
    fn read_piece(&mut self, fields: &Fields<'_>, event: &mut Event, call: Option<u32>) -> Fidelity {
        let delta = fields.get("delta").and_then(|delta| self.received.decode(0, call, delta));
        let Some(delta) = delta else { return Fidelity::Exact };
        let text = delta.text.into_owned();
        self.add_piece(
            fields,
            event,
            match call {
                Some(index) => Piece::ToolCall { index, id: None, name: None, arguments: text },
                None => Piece::Text(text),
            },
        );
        Fidelity::from_exactness(delta.exact)
    }

    /// Adds the event's delta as a piece outside the text and the calls, such as reasoning.
    fn read_other_piece(
        &mut self,
        fields: &Fields<'_>,
        event: &mut Event,
        piece: impl FnOnce(String) -> Piece,
    ) {
        if let Some(delta) = fields.get("delta").and_then(Value::text) {
            self.add_piece(fields, event, piece(delta.into_owned()));
        }
    }

    /// Adds a piece, unless it is empty.
    fn add_piece(&mut self, fields: &Fields<'_>, event: &mut Event, piece: Piece) {
        let (Piece::Text(text)
        | Piece::Reasoning(text)
        | Piece::Refusal(text)
        | Piece::ToolCall { arguments: text, .. }) = &piece;
        if text.is_empty() {
            return;
        }
        let place = ItemPlace::from_fields(fields);
        if let Some(open) = self.open_items.iter_mut().rfind(|open| open.place == place) {
            open.has_content = true;
        }
        event.pieces.push(ChoicePiece { choice: 0, piece });
    }

    fn begin_item(&mut self, root: Value<'_>, event: &mut Event) -> Fidelity {
        let Some(item) = root.field("item") else { return Fidelity::Exact };
        let kind = ItemKind::classify(item);
        let mut open =
            OpenItem { place: ItemPlace::read(root), item: kind, call: self.calls, has_content: false };
        let mut fidelity = Fidelity::Exact;
        event.only_begins = match kind {
            ItemKind::Message => item.non_empty("content").is_none(),
            ItemKind::Reasoning => ["summary", "content", "encrypted_content"]
                .iter()
                .all(|field| item.non_empty(field).is_none()),
            ItemKind::Call | ItemKind::OtherCall | ItemKind::Other => false,
        };
        if kind == ItemKind::Call {
            let (begins, all) = first_call_piece(item, self.calls);
            open.has_content = matches!(&begins, Piece::ToolCall { arguments, .. } if !arguments.is_empty());
            self.calls = self.calls.saturating_add(1);
            event.pieces.push(ChoicePiece { choice: 0, piece: begins });
            fidelity = all;
        }
        if self.open_items.len() < MAX_OPEN_ITEMS {
            self.open_items.retain(|known| known.place != open.place);
            self.open_items.push(open);
        }
        fidelity
    }

    /// Reads the end of an item. It repeats the content that arrived before. If nothing arrived, it contains
    /// the whole item.
    fn end_item(&mut self, root: Value<'_>, event: &mut Event) -> Fidelity {
        let place = ItemPlace::read(root);
        let known = self.open_items.iter().position(|open| open.place == place);
        let known = known.map(|position| self.open_items.remove(position));
        event.completed_call =
            known.as_ref().filter(|open| open.item == ItemKind::Call).map(|open| open.call);
        let Some(item) = root.field("item") else { return Fidelity::Exact };
        let mut fidelity = Fidelity::Exact;
        match (ItemKind::classify(item), &known) {
            (_, Some(open)) if open.has_content => {}
            (ItemKind::Message, _) => {
                for text in texts(item).filter_map(Value::decode).filter(|text| !text.text.is_empty()) {
                    fidelity = fidelity.max(Fidelity::from_exactness(text.exact));
                    let piece = Piece::Text(text.text.into_owned());
                    event.pieces.push(ChoicePiece { choice: 0, piece });
                }
                let parts = item.field("content").into_iter().flat_map(Value::items);
                let refusals = parts.filter_map(part_refusal).map(Piece::Refusal);
                event.pieces.extend(refusals.map(|piece| ChoicePiece { choice: 0, piece }));
            }
            (ItemKind::Call, known) => {
                let index = known.as_ref().map_or(self.calls, |open| open.call);
                if known.is_none() {
                    self.calls = self.calls.saturating_add(1);
                }
                let (begins, all) = first_call_piece(item, index);
                fidelity = all;
                let is_news = known.is_none()
                    || matches!(&begins, Piece::ToolCall { arguments, .. } if !arguments.is_empty());
                if is_news {
                    event.pieces.push(ChoicePiece { choice: 0, piece: begins });
                }
            }
            (ItemKind::OtherCall | ItemKind::Other | ItemKind::Reasoning, _) => {}
        }
        event.completes_part = event.pieces.is_empty();
        fidelity
    }
}

/// Returns the first piece of a call, and how completely it represents the arguments that were sent.
fn first_call_piece(item: Value<'_>, index: u32) -> (Piece, Fidelity) {
    let arguments = item.field(CallForm::from_item(item).field).and_then(Value::decode);
    let fidelity = Fidelity::from_exactness(arguments.as_ref().is_none_or(|arguments| arguments.exact));
    let arguments = arguments.map(|arguments| arguments.text.into_owned()).unwrap_or_default();
    (
        Piece::ToolCall {
            index,
            id: item.non_empty_text("call_id"),
            name: item.non_empty_text("name"),
            arguments,
        },
        fidelity,
    )
}

impl Reader for ResponseReader {
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
