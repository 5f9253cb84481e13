//! Writes items that the server did not write itself, and completes those that it left unfinished.

use super::super::item::{CallForm, ItemKind};
use super::super::response::{COMPLETED, INCOMPLETE};
use super::super::stream::ItemPlace;
use super::ResponseWriter;
use super::client_item::ClientItem;
use crate::json::quote;
use crate::reply::append;

impl ResponseWriter {
    /// Completes all incomplete items that can be completed.
    pub(super) fn complete_all(&mut self) -> Vec<u8> {
        let open = self.completed_count..self.items.len();
        self.completed_count = open.end;
        open.flat_map(|position| self.complete(position, COMPLETED)).collect()
    }

    pub(super) fn begin_item(&mut self, kind: ItemKind, id: &str, item: &str) -> Vec<u8> {
        let mut bytes = self.begin_response();
        let index = self.next_index();
        let place = if self.lacks_indices { ItemPlace::Id(id.to_owned()) } else { ItemPlace::Index(index) };
        let mut known = ClientItem::new(place, index, id.to_owned(), kind, item.to_owned());
        known.is_own = true;
        known.call = self.calls;
        self.calls = self.calls.saturating_add(u32::from(kind == ItemKind::Call));
        let fields = format!("{}\"item\":{item}", self.item_place_fields(&known));
        bytes.extend(self.write_event("response.output_item.added", &fields));
        self.add_client_item(known);
        bytes
    }

    /// Returns the beginning of a response, for a client that has received nothing.
    pub(super) fn begin_response(&mut self) -> Vec<u8> {
        if self.response.is_some() || !self.items.is_empty() {
            return Vec::new();
        }
        let response = self.bare_response();
        let event = self.write_event("response.created", &format!("\"response\":{response}"));
        self.response = Some(response);
        event
    }

    pub(super) fn bare_response(&self) -> String {
        let (model, id) = (quote(&self.model), quote(self.id.as_deref().unwrap_or("resp_endmark")));
        format!(
            "{{\"id\":{id},\"object\":\"response\",\"created_at\":0,\"status\":\"in_progress\",\"model\":{model},\"output\":[]}}"
        )
    }

    /// Appends to an item. Returns the fields of the event that reports this.
    pub(super) fn append_to_item(&mut self, position: usize, text: &str) -> String {
        self.has_written = true;
        let at = self.part_place_fields(&self.items[position]);
        let known = &mut self.items[position];
        append(&mut known.text, text);
        known.has_grown = true;
        format!("{at},\"delta\":{}", quote(text))
    }

    /// Returns the events that complete an item, except for those that were already sent. Items of other
    /// kinds, such as a call of a tool that is not a function, cannot be completed, because their final form
    /// is unknown.
    pub(super) fn complete(&mut self, position: usize, status: &str) -> Vec<u8> {
        let can_be = |known: &&ClientItem| {
            known.completed_item.is_none() && !matches!(known.kind, ItemKind::OtherCall | ItemKind::Other)
        };
        let Some(known) = self.items.get(position).filter(can_be).cloned() else {
            return Vec::new();
        };
        let at = self.part_place_fields(&known);
        let text = quote(&known.text);
        let mut bytes = Vec::new();
        match known.kind {
            ItemKind::Message if !known.is_part_complete && known.content_index.is_some() => {
                let name = "response.output_text.done";
                bytes.extend(self.write_event(name, &format!("{at},\"text\":{text},\"logprobs\":[]")));
                let part = known.whole_part();
                bytes
                    .extend(self.write_event("response.content_part.done", &format!("{at},\"part\":{part}")));
            }
            // Clients run a call with free text when its completing event arrives, whatever its status. So do
            // not send that event.
            ItemKind::Call if known.form.is_free_text() && status == INCOMPLETE => {
                self.items[position].completed_item = Some(known.whole_item(status));
                return bytes;
            }
            ItemKind::Call => {
                let CallForm { event, field, .. } = known.form;
                bytes.extend(self.write_event(&format!("{event}.done"), &format!("{at},\"{field}\":{text}")));
            }
            _ => {}
        }
        let item = known.whole_item(status);
        let fields = format!("{}\"item\":{item}", self.item_place_fields(&known));
        bytes.extend(self.write_event("response.output_item.done", &fields));
        self.items[position].completed_item = Some(item);
        bytes
    }

    /// Returns all complete items as a JSON array.
    pub(super) fn complete_items_json(&self) -> String {
        let items: Vec<&str> =
            self.items.iter().filter_map(|known| known.completed_item.as_deref()).collect();
        let items: Vec<&str> = items.into_iter().filter(|item| !item.is_empty()).collect();
        format!("[{}]", items.join(","))
    }
}

/// Returns a new message without content.
pub(super) fn bare_message(id: &str) -> String {
    let id = quote(id);
    format!(
        "{{\"id\":{id},\"type\":\"message\",\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}}"
    )
}
