//! The state of one item of a streamed response at the client.

use super::ResponseWriter;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::openai_responses::item::{CallForm, Item, texts};
use crate::openai_responses::response::text_part;
use crate::openai_responses::stream::ItemPlace;

/// The part that continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Text,
    Call(u32),
}

/// An item of which the client has the beginning.
#[derive(Debug, Clone)]
pub(super) struct ClientItem {
    pub(super) place: ItemPlace,
    /// Index of the item in the output.
    pub(super) index: u64,
    pub(super) id: String,
    pub(super) kind: Item,
    /// Number of the item among the calls.
    pub(super) call: u32,
    /// The form of a call, if it is one.
    pub(super) form: CallForm,
    /// The item at its beginning.
    item: String,
    /// The index of its last text part. `None` while it has none.
    pub(super) content_index: Option<u64>,
    /// That part at its beginning.
    part: String,
    pub(super) part_done: bool,
    /// The text of that part, or the arguments, as the client has them.
    pub(super) text: String,
    /// The item in the event that reported it as complete.
    pub(super) done_part: Option<String>,
    /// Whether it was created here.
    pub(super) is_own: bool,
    /// Whether text was added to it here.
    pub(super) has_grown: bool,
}

impl ResponseWriter {
    /// Adds an item of which the client has the beginning.
    pub(super) fn add(&mut self, known: ClientItem) {
        let position = self.items.len();
        self.position_by_place.insert(known.place.clone(), position);
        match known.kind {
            Item::Call => {
                self.item_by_call.insert(known.call, position);
            }
            Item::Message => {
                let items = &self.items;
                while self
                    .messages
                    .pop_if(|last| items.get(*last).is_none_or(|last| last.done_part.is_some()))
                    .is_some()
                {}
                self.messages.push(position);
            }
            Item::OtherCall | Item::Reasoning | Item::Other => {}
        }
        self.items.push(known);
    }

    /// Returns the open item in which this target continues.
    pub(super) fn open(&self, target: Target) -> Option<usize> {
        let is_open =
            |position: &&usize| self.items.get(**position).is_some_and(|known| known.done_part.is_none());
        let found = match target {
            Target::Text => self.messages.iter().rev().find(is_open),
            Target::Call(call) => self.item_by_call.get(&call).filter(is_open),
        };
        found.copied()
    }
}

impl ClientItem {
    pub(super) fn new(place: ItemPlace, index: u64, id: String, kind: Item, item: String) -> Self {
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
            part_done: false,
            text: String::new(),
            done_part: None,
            is_own: false,
            has_grown: false,
        }
    }

    /// Records that a part begins: the text that follows belongs to it.
    pub(super) fn begin_part(&mut self, index: Option<u64>, part: String) {
        self.content_index = Some(index.unwrap_or(0));
        self.part = part;
        self.part_done = false;
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

    /// Returns the item with all of its text, and this status.
    pub(super) fn whole_item(&self, status: &str) -> String {
        let Ok(item) = Value::parse_str(&self.item) else { return self.item.clone() };
        let mut edits = Edits::for_document(item);
        if item.field("status").is_some() {
            edits.set_field(item, "status", &quote(status));
        }
        match self.kind {
            Item::Message => edits.set_field(item, "content", &format!("[{}]", self.whole_part())),
            Item::Call => edits.set_field(item, self.form.field, &quote(&self.text)),
            Item::OtherCall | Item::Reasoning | Item::Other => {}
        }
        String::from_utf8(edits.finish()).unwrap_or_default()
    }

    /// Changes an event that reports this item, or a part of it, as complete.
    pub(super) fn write_closing<'a>(&self, edits: &mut Edits<'a>, root: Value<'a>, status: &str) {
        for name in ["text", self.form.field] {
            if let Some(held) = root.field(name).filter(|held| held.kind() == Kind::String) {
                edits.set_text(held, &self.text);
            }
        }
        if let Some(held) = root.at("part.text").filter(|held| held.kind() == Kind::String) {
            edits.set_text(held, &self.text);
        }
        if let Some(item) = root.field("item") {
            write_known(edits, item, self);
            if item.field("status").is_some() {
                edits.set_field(item, "status", &quote(status));
            }
        }
    }

    /// Returns this item among those of a response.
    pub(super) fn find_among<'a>(&self, output: Value<'a>) -> Option<Value<'a>> {
        if self.is_own {
            return None;
        }
        let by_id = output.items().find(|item| !self.id.is_empty() && item.has_text("id", &self.id));
        let place = usize::try_from(self.index).ok();
        by_id.or_else(|| output.item(place?)).filter(|item| Item::classify(*item) == self.kind)
    }
}

/// Sets an item to all of its text: its last part gets the text, of which it has the beginning.
pub(super) fn write_known<'a>(edits: &mut Edits<'a>, item: Value<'a>, known: &ClientItem) {
    match known.kind {
        Item::Message => {
            if let Some(last) = texts(item).last() {
                edits.set_text(last, &known.text);
            }
        }
        Item::Call => match item.field(known.form.field) {
            Some(held) => edits.set_text(held, &known.text),
            None => edits.set_field(item, known.form.field, &quote(&known.text)),
        },
        Item::OtherCall | Item::Reasoning | Item::Other => {}
    }
}
