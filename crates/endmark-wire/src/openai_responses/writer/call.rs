//! Writes calls of functions and of custom tools.

use super::ResponseWriter;
use crate::openai_responses::item::ItemKind;
use crate::openai_responses::response::{COMPLETED, INCOMPLETE};
use crate::openai_responses::stream::ItemPlace;
use crate::reply::ToolCall;

impl ResponseWriter {
    /// Returns the name of the event that adds arguments to the call in this item.
    pub(super) fn delta_event_name(&self, position: usize) -> String {
        format!("{}.delta", self.items[position].form.event)
    }

    pub(super) fn call_status(&self, call: &ToolCall) -> &'static str {
        if call.can_be_whole() && !self.cut_calls.contains(&call.index) { COMPLETED } else { INCOMPLETE }
    }

    /// Returns whether the item at this place is a call with free text that remains cut. No event may report
    /// it as complete.
    pub(super) fn is_cut_text(&self, place: &ItemPlace) -> bool {
        let known = self.position_by_place.get(place).and_then(|position| self.items.get(*position));
        known.is_some_and(|known| {
            known.kind == ItemKind::Call && known.form.is_free_text() && self.cut_calls.contains(&known.call)
        })
    }
}
