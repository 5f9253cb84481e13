//! Calls that are held back until they are complete. Each is written at its original position as a separate
//! item.

use super::ResponseWriter;
use crate::edit::Edits;
use crate::json::{Kind, Value};
use crate::openai_responses::item::{CallForm, ItemKind};
use crate::openai_responses::response::COMPLETED;
use crate::openai_responses::stream::ItemPlace;
use crate::reply::{Event, Piece, ToolCall};
use crate::sse::Frame;

impl ResponseWriter {
    /// Returns a held call with these arguments, if the client has not begun to receive it. The held frames
    /// before it come first. Returns `None` if its item is not held.
    pub(super) fn write_held_call(&mut self, call: &ToolCall) -> Option<Vec<u8>> {
        // Calls are numbered in order, and the client has received the previous ones.
        let number = usize::try_from(call.index.checked_sub(self.calls)?).ok()?;
        self.held.group_frames(|frame, event| {
            Some(frame_place(frame)).filter(|place| !ends_response(event) && *place != ItemPlace::Unknown)
        });
        let found = self.held.frames().enumerate().filter(|(_, frame)| begins_call(frame)).nth(number);
        let found = found.map(|(position, frame)| (position, frame_place(frame)));
        let (position, place) = found.filter(|(_, place)| *place != ItemPlace::Unknown)?;
        let front = self.held.take_first(position);
        let own = self.held.take_while(|frame, event| !ends_response(event) && frame_place(frame) == place);
        let (mut bytes, mut kept) = self.pass_frames(front, COMPLETED, true);
        bytes.extend(self.complete_all());
        let came = own.iter().flat_map(|(_, event)| &event.pieces).filter_map(|delta| match &delta.piece {
            Piece::ToolCall { index, arguments, .. } if *index == call.index => Some(arguments.as_str()),
            _ => None,
        });
        if came.collect::<String>() == call.arguments {
            let (passed, ends) = self.pass_frames(own, COMPLETED, false);
            bytes.extend(passed);
            kept.extend(ends);
        } else {
            for (frame, event) in own.into_iter().take(1) {
                bytes.extend(self.begin_held(&frame, &event));
            }
            let at = self.items.len().saturating_sub(1);
            let fields = self.append_to_item(at, &call.arguments);
            let name = self.delta_event_name(at);
            bytes.extend(self.write_event(&name, &fields));
            bytes.extend(self.complete(at, self.call_status(call)));
        }
        self.held.put_first(kept);
        Some(bytes)
    }

    /// Returns the beginning of a held call, without the received arguments.
    fn begin_held(&mut self, frame: &Frame, event: &Event) -> Vec<u8> {
        let Some(root) = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok()) else {
            return frame.raw.clone();
        };
        let mut edits = Edits::for_document(root);
        let item = root.field("item");
        if let Some(arguments) = item.and_then(|item| item.field(CallForm::from_item(item).field)) {
            edits.replace(arguments, "\"\"");
        }
        let bytes = self.renumber(frame, edits, None);
        self.note(&Frame::read(bytes.clone()), event);
        bytes
    }

    /// Drops held items that the client has not begun to receive, because replacements are written.
    pub(super) fn drop_unknown_items(&mut self) {
        let mut held = self.held.take();
        held.retain(|(frame, event)| {
            let is_read = frame.data.as_deref().is_some_and(|data| Value::parse_str(data).is_ok());
            if ends_response(event) || !is_read {
                return true;
            }
            let place = frame_place(frame);
            let is_known = place == ItemPlace::Unknown || self.position_by_place.contains_key(&place);
            if !is_known {
                self.omitted_items.insert(place);
            }
            is_known
        });
        self.held.put_back(held);
    }

    /// Removes the items that were withheld from the client from the output of a response.
    pub(super) fn remove_omitted_items<'a>(&self, edits: &mut Edits<'a>, output: Value<'a>) {
        for (position, item) in output.items().enumerate() {
            let is_left_out =
                |place: Option<ItemPlace>| place.is_some_and(|place| self.omitted_items.contains(&place));
            let index = u64::try_from(position).ok().map(ItemPlace::Index);
            if is_left_out(index) || is_left_out(item.non_empty_text("id").map(ItemPlace::Id)) {
                edits.remove_item(output, position);
            }
        }
    }
}

/// Returns whether this event ends the response.
fn ends_response(event: &Event) -> bool {
    !event.finishes.is_empty() || event.is_done || event.error.is_some()
}

fn frame_place(frame: &Frame) -> ItemPlace {
    let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
    root.map_or(ItemPlace::Unknown, ItemPlace::read)
}

fn begins_call(frame: &Frame) -> bool {
    let root = frame.data.as_deref().and_then(|data| Value::parse_str(data).ok());
    root.filter(|root| root.has_text("type", "response.output_item.added"))
        .and_then(|root| root.field("item")?.as_kind(Kind::Object))
        .is_some_and(|item| ItemKind::classify(item) == ItemKind::Call)
}
