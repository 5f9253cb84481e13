//! Calls that are held back until they are complete. Each is written at its own position, as its own item.

use super::ResponseWriter;
use crate::edit::Edits;
use crate::json::{Kind, Value};
use crate::openai_responses::item::{CallForm, Item};
use crate::openai_responses::response::COMPLETED;
use crate::openai_responses::stream::ItemPlace;
use crate::reply::{Event, Piece, ToolCall};
use crate::sse::Frame;

impl ResponseWriter {
    /// Returns a call whose item is held and of which the client has nothing, with these arguments. The held frames
    /// before it come first. Returns `None` if no item of it is held.
    pub(super) fn held_call(&mut self, call: &ToolCall) -> Option<Vec<u8>> {
        // Calls are numbered in order, and the client has the previous ones.
        let number = usize::try_from(call.index.checked_sub(self.calls)?).ok()?;
        self.held.gather(|frame, event| {
            Some(place_of(frame)).filter(|place| !ends(event) && *place != ItemPlace::Unsaid)
        });
        let found = self.held.frames().enumerate().filter(|(_, frame)| begins_call(frame)).nth(number);
        let found = found.map(|(position, frame)| (position, place_of(frame)));
        let (position, place) = found.filter(|(_, place)| *place != ItemPlace::Unsaid)?;
        let front = self.held.take_first(position);
        let own = self.held.take_while(|frame, event| !ends(event) && place_of(frame) == place);
        let (mut bytes, mut kept) = self.passed(front, COMPLETED, true);
        bytes.extend(self.complete_all());
        let came = own.iter().flat_map(|(_, event)| &event.pieces).filter_map(|delta| match &delta.piece {
            Piece::ToolCall { index, arguments, .. } if *index == call.index => Some(arguments.as_str()),
            _ => None,
        });
        if came.collect::<String>() == call.arguments {
            let (passed, ends) = self.passed(own, COMPLETED, false);
            bytes.extend(passed);
            kept.extend(ends);
        } else {
            for (frame, event) in own.into_iter().take(1) {
                bytes.extend(self.begin_held(&frame, &event));
            }
            let at = self.items.len().saturating_sub(1);
            let fields = self.grow(at, &call.arguments);
            let name = self.delta_of(at);
            bytes.extend(self.event(&name, &fields));
            bytes.extend(self.complete(at, self.status_of_call(call)));
        }
        self.held.put_first(kept);
        Some(bytes)
    }

    /// Returns the beginning of a held call, without the arguments that came.
    fn begin_held(&mut self, frame: &Frame, event: &Event) -> Vec<u8> {
        let Some(root) = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok()) else {
            return frame.raw.clone();
        };
        let mut edits = Edits::of(root);
        let item = root.field("item");
        if let Some(arguments) = item.and_then(|item| item.field(CallForm::of(item).field)) {
            edits.replace(arguments, "\"\"");
        }
        let bytes = self.renumbered(frame, edits, None);
        self.note(&Frame::read(bytes.clone()), event);
        bytes
    }

    /// Drops held items of which the client has nothing, since replacements for them are written.
    pub(super) fn leave_unknown_out(&mut self) {
        let mut held = self.held.take();
        held.retain(|(frame, event)| {
            let is_read = frame.data.as_deref().is_some_and(|data| Value::parse_str(data).is_ok());
            if ends(event) || !is_read {
                return true;
            }
            let place = place_of(frame);
            let is_known = place == ItemPlace::Unsaid || self.at.contains_key(&place);
            if !is_known {
                self.left_out.insert(place);
            }
            is_known
        });
        self.held.put_back(held);
    }

    /// Removes from a response the items of which the client was given nothing.
    pub(super) fn without_left_out<'a>(&self, edits: &mut Edits<'a>, output: Value<'a>) {
        for (position, item) in output.items().enumerate() {
            let is_left_out =
                |place: Option<ItemPlace>| place.is_some_and(|place| self.left_out.contains(&place));
            let index = u64::try_from(position).ok().map(ItemPlace::Index);
            if is_left_out(index) || is_left_out(item.word("id").map(ItemPlace::Id)) {
                edits.remove_item(output, position);
            }
        }
    }
}

/// Returns whether this event ends the response.
fn ends(event: &Event) -> bool {
    !event.finishes.is_empty() || event.done || event.error.is_some()
}

fn place_of(frame: &Frame) -> ItemPlace {
    let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
    root.map_or(ItemPlace::Unsaid, ItemPlace::of)
}

fn begins_call(frame: &Frame) -> bool {
    let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
    root.filter(|root| root.says("type", "response.output_item.added"))
        .and_then(|root| root.field("item")?.of_kind(Kind::Object))
        .is_some_and(|item| Item::of(item) == Item::Call)
}
