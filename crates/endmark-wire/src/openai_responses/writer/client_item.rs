//! The client's state of one item of a streamed response.

use super::ResponseWriter;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::openai_responses::item::{CallForm, ItemKind, texts};
use crate::openai_responses::response::text_part;
use crate::openai_responses::stream::ItemPlace;

/// The part that continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContinuedPart {
    Text,
    Call(u32),
}

/// An item that the client has begun to receive.
#[derive(Debug, Clone)]
pub(super) struct ClientItem {
    pub(super) place: ItemPlace,
    /// Index of the item in the output.
    pub(super) index: u64,
    pub(super) id: String,
    pub(super) kind: ItemKind,
    /// Index of this item among the tool calls.
    pub(super) call: u32,
    /// The form of the call. It has no meaning for other items.
    pub(super) form: CallForm,
    /// The item as the client first received it.
    item: String,
    /// The index of its last text part. `None` before its first part.
    pub(super) content_index: Option<u64>,
    /// That part as the client first received it.
    part: String,
    pub(super) is_part_complete: bool,
    /// The text of that part, or the arguments, as far as the client has received them.
    pub(super) text: String,
    /// The item as the event that completed it contained it. `None` while it is incomplete.
    pub(super) completed_item: Option<String>,
    /// Whether Endmark created the item.
    pub(super) is_own: bool,
    /// Whether Endmark added text to the item.
    pub(super) has_grown: bool,
}

impl ResponseWriter {
    /// Adds an item that the client has begun to receive.
    pub(super) fn add_client_item(&mut self, known: ClientItem) {
        let position = self.items.len();
        self.position_by_place.insert(known.place.clone(), position);
        match known.kind {
            ItemKind::Call => {
                self.item_by_call.insert(known.call, position);
            }
            ItemKind::Message => {
                let items = &self.items;
                while self
                    .messages
                    .pop_if(|last| items.get(*last).is_none_or(|last| last.completed_item.is_some()))
                    .is_some()
                {}
                self.messages.push(position);
            }
            ItemKind::OtherCall | ItemKind::Reasoning | ItemKind::Other => {}
        }
        self.items.push(known);
    }

    /// Returns the position of the open item that this target continues.
    pub(super) fn find_open_item(&self, target: ContinuedPart) -> Option<usize> {
        let is_open = |position: &&usize| {
            self.items.get(**position).is_some_and(|known| known.completed_item.is_none())
        };
        let found = match target {
            ContinuedPart::Text => self.messages.iter().rev().find(is_open),
            ContinuedPart::Call(call) => self.item_by_call.get(&call).filter(is_open),
        };
        found.copied()
    }
}

impl ClientItem {
    pub(super) fn new(place: ItemPlace, index: u64, id: String, kind: ItemKind, item: String) -> Self {
        Self {
            place,
            index,
            id,
            kind,
            call: 0,
            form: CallForm::from_free_text(false),
            item,
            content_index: None,
            part: String::new(),
            is_part_complete: false,
            text: String::new(),
            completed_item: None,
            is_own: false,
            has_grown: false,
        }
    }

    /// Records that a part begins. The following text belongs to it.
    pub(super) fn begin_part(&mut self, index: Option<u64>, part: String) {
        self.content_index = Some(index.unwrap_or(0));
        self.part = part;
        self.is_part_complete = false;
        self.text = String::new();
    }

    /// Returns the last part with all of its text.
    pub(super) fn whole_part(&self) -> String {
        let edited = Value::parse_str(&self.part).ok().and_then(|part| {
            let mut edits = Edits::for_document(part);
            edits.set_field(part.as_kind(Kind::Object)?, "text", &quote(&self.text));
            String::from_utf8(edits.finish()).ok()
        });
        edited.unwrap_or_else(|| text_part(&self.text))
    }

    /// Returns the item with all of its text and with this status.
    pub(super) fn whole_item(&self, status: &str) -> String {
        let Ok(item) = Value::parse_str(&self.item) else { return self.item.clone() };
        let mut edits = Edits::for_document(item);
        if item.field("status").is_some() {
            edits.set_field(item, "status", &quote(status));
        }
        match self.kind {
            ItemKind::Message => edits.set_field(item, "content", &format!("[{}]", self.whole_part())),
            ItemKind::Call => edits.set_field(item, self.form.field, &quote(&self.text)),
            ItemKind::OtherCall | ItemKind::Reasoning | ItemKind::Other => {}
        }
        String::from_utf8(edits.finish()).unwrap_or_default()
    }

    /// Changes an event that reports this item, or a part of it, as complete, so that it contains all of the
    /// text.
    pub(super) fn complete_event<'a>(&self, edits: &mut Edits<'a>, root: Value<'a>, status: &str) {
        for name in ["text", self.form.field] {
            if let Some(held) = root.field(name).filter(|held| held.kind() == Kind::String) {
                edits.set_text(held, &self.text);
            }
        }
        if let Some(held) = root.at("part.text").filter(|held| held.kind() == Kind::String) {
            edits.set_text(held, &self.text);
        }
        if let Some(item) = root.field("item") {
            set_item_text(edits, item, self);
            if item.field("status").is_some() {
                edits.set_field(item, "status", &quote(status));
            }
        }
    }

    /// Finds this item in the output of a response. Returns `None` if Endmark created the item.
    pub(super) fn find_among<'a>(&self, output: Value<'a>) -> Option<Value<'a>> {
        if self.is_own {
            return None;
        }
        let by_id = output.items().find(|item| !self.id.is_empty() && item.has_text("id", &self.id));
        let place = usize::try_from(self.index).ok();
        by_id.or_else(|| output.item(place?)).filter(|item| ItemKind::classify(*item) == self.kind)
    }
}

/// Replaces the item's last text part, or its arguments, with the full text.
pub(super) fn set_item_text<'a>(edits: &mut Edits<'a>, item: Value<'a>, known: &ClientItem) {
    match known.kind {
        ItemKind::Message => {
            if let Some(last) = texts(item).last() {
                edits.set_text(last, &known.text);
            }
        }
        ItemKind::Call => match item.field(known.form.field) {
            Some(held) => edits.set_text(held, &known.text),
            None => edits.set_field(item, known.form.field, &quote(&known.text)),
        },
        ItemKind::OtherCall | ItemKind::Reasoning | ItemKind::Other => {}
    }
}
