//! Applies edits of a conversation to its bytes.

use std::collections::BTreeMap;

use endmark_context::conversation::{
    ConversationChanges, EditError, InsertedMessage, NewResult, PartPosition,
};

use super::{Dialogue, EditableText, RemovablePart};
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};

/// Returns the document with the changes.
pub(super) fn apply_changes(
    dialogue: &Dialogue<'_>,
    changes: &ConversationChanges,
) -> Result<Vec<u8>, EditError> {
    let mut edits = Edits::for_document(dialogue.root);
    let comes_or_goes =
        changes.dropped_turns().next().is_some() || changes.insertion_positions().next().is_some();
    if comes_or_goes && dialogue.list.kind() != Kind::Array {
        return Err(EditError::NotAList);
    }
    for turn in changes.dropped_turns() {
        edits.remove_item(dialogue.list, turn);
    }
    drop_parts(dialogue, changes, &mut edits);
    for (place, text) in changes.texts().filter(|(place, _)| !changes.drops_part(*place)) {
        set_text(dialogue, &mut edits, place, text)?;
    }
    for before in changes.insertion_positions() {
        for message in changes.inserted_messages(before) {
            for json in message_items(dialogue, changes, message)? {
                edits.insert_item(dialogue.list, before, &json);
            }
        }
    }
    Ok(edits.finish())
}

fn drop_parts<'a>(dialogue: &Dialogue<'a>, changes: &ConversationChanges, edits: &mut Edits<'a>) {
    let mut lists: BTreeMap<usize, (Value<'a>, &'static str, Value<'a>, Vec<usize>)> = BTreeMap::new();
    for place in changes.dropped_parts() {
        match dialogue.removable_part(place) {
            Some(RemovablePart::Field(object, field)) => edits.remove_field(object, field),
            Some(RemovablePart::Item { object, field, list, position }) => {
                let entry = lists.entry(list.span().start);
                entry.or_insert_with(|| (object, field, list, Vec::new())).3.push(position);
            }
            Some(RemovablePart::Turn) | None => {}
        }
    }
    for (object, field, list, gone) in lists.into_values() {
        // Servers refuse an empty list but accept a missing one.
        if gone.len() == list.items().count() {
            edits.remove_field(object, field);
        } else {
            for position in gone {
                edits.remove_item(list, position);
            }
        }
    }
}

fn set_text<'a>(
    dialogue: &Dialogue<'a>,
    edits: &mut Edits<'a>,
    place: PartPosition,
    text: &str,
) -> Result<(), EditError> {
    match dialogue.editable_text(place) {
        EditableText::Text(value) => edits.set_text(value, text),
        EditableText::Field(object, field) => edits.set_field(object, field, &quote(text)),
        EditableText::Output(object, field) => {
            edits.set_field(object, field, &output_json(object.field(field), text));
        }
        EditableText::Commands(object, field) => {
            edits.set_field(object, field, &command_output_json(object.field(field), text));
        }
        EditableText::Arguments { .. } | EditableText::None => return Err(EditError::WrongKind { place }),
    }
    Ok(())
}

/// Returns the object for a result's text. If the previous object had only a member `output`, `result` or
/// `error`, that member gets the text. Otherwise the result is the text itself if it is a JSON object, or an
/// object with a member `output`.
fn output_json(before: Option<Value<'_>>, text: &str) -> String {
    let new = Value::parse_str(text).ok().filter(|new| matches!(new.kind(), Kind::Object | Kind::Array));
    let mut members = before.into_iter().flat_map(Value::fields);
    match (members.next(), members.next(), new) {
        (Some(only), None, new)
            if only.has_name("output") || only.has_name("result") || only.has_name("error") =>
        {
            let structured = new.filter(|new| new.kind() == only.value.kind());
            let value = structured.map_or_else(|| quote(text), |new| new.raw().to_owned());
            format!("{{{}:{value}}}", only.key.raw())
        }
        (_, _, Some(new)) if new.kind() == Kind::Object => new.raw().to_owned(),
        _ => format!("{{\"output\":{}}}", quote(text)),
    }
}

/// Returns a single command output with this text, which replaces the outputs of several shell commands. It
/// has the outcome of the last command.
fn command_output_json(before: Option<Value<'_>>, text: &str) -> String {
    let last = before.into_iter().flat_map(Value::items).filter_map(|chunk| chunk.field("outcome")).last();
    let outcome = last.map_or(String::new(), |outcome| format!(",\"outcome\":{}", outcome.raw()));
    format!("[{{\"stdout\":{},\"stderr\":\"\"{outcome}}}]", quote(text))
}

/// Returns a message as conversation items of the format.
fn message_items(
    dialogue: &Dialogue<'_>,
    changes: &ConversationChanges,
    message: &InsertedMessage,
) -> Result<Vec<String>, EditError> {
    let results = match message {
        InsertedMessage::User(text) => return Ok(vec![dialogue.format.user_turn(text)]),
        InsertedMessage::Results(results) => results,
    };
    let parts = results.iter().map(|result| match result {
        NewResult::Moved(place) => updated_result(dialogue, changes, *place),
        NewResult::Absent { call, text } => {
            let value = dialogue.value(*call).ok_or(EditError::WrongKind { place: *call })?;
            Ok(dialogue.format.absent_result(value, text))
        }
    });
    Ok(dialogue.format.result_turns(parts.collect::<Result<_, _>>()?))
}

/// Returns a result as written, but with its new text if it has one.
fn updated_result(
    dialogue: &Dialogue<'_>,
    changes: &ConversationChanges,
    place: PartPosition,
) -> Result<String, EditError> {
    let wrong = EditError::WrongKind { place };
    let value = match dialogue.removable_part(place) {
        Some(RemovablePart::Turn) => dialogue.items.get(place.turn).copied(),
        _ => dialogue.value(place),
    };
    let value = value.ok_or(wrong.clone())?;
    let Some(text) = changes.text(place) else { return Ok(value.raw().to_owned()) };
    let mut edits = Edits::for_document(value);
    set_text(dialogue, &mut edits, place, text)?;
    let all = edits.finish();
    // The edit applies to the whole document, so the bytes before and after the value have the same length as
    // before.
    let bytes_after = value.document().len() - value.span().end;
    let inside = all.get(value.span().start..all.len().saturating_sub(bytes_after));
    inside.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()).ok_or(wrong)
}

impl<'a> Dialogue<'a> {
    fn removable_part(&self, place: PartPosition) -> Option<RemovablePart<'a>> {
        self.part_locations.get(place.turn)?.get(place.part).map(|(spot, _)| *spot)
    }

    fn editable_text(&self, place: PartPosition) -> EditableText<'a> {
        let slot = self.part_locations.get(place.turn).and_then(|parts| parts.get(place.part));
        slot.map_or(EditableText::None, |(_, slot)| *slot)
    }

    fn value(&self, place: PartPosition) -> Option<Value<'a>> {
        let span = self.conversation.turns.get(place.turn)?.parts.get(place.part)?.span.clone();
        Some(Value::from_checked(self.root.document(), span))
    }
}
