//! The last event of a streamed response.

use super::ResponseWriter;
use super::client_item::set_item_text;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::openai_responses::item::ItemKind;
use crate::openai_responses::response::{COMPLETED, end_status, write_call_statuses, write_end};
use crate::openai_responses::usage;
use crate::sse::Frame;
use crate::writer::{ReportedEnd, StreamEnd};

impl ResponseWriter {
    /// Returns the held last event, with another end.
    pub(super) fn edit_end(&mut self, frame: &Frame, closing: &StreamEnd<'_>) -> Option<Vec<u8>> {
        let root = Value::parse_str(frame.data.as_deref()?).ok()?;
        let response = root.field("response")?.as_kind(Kind::Object)?;
        let mut edits = Edits::for_document(root);
        let end = closing.choices.first().and_then(|end| end.end);
        let output = response.field("output").and_then(|output| output.as_kind(Kind::Array));
        let mut new = Vec::new();
        for known in self.items.iter().filter(|known| known.has_grown) {
            let item = output.and_then(|output| known.find_among(output));
            match item {
                Some(item) => {
                    set_item_text(&mut edits, item, known);
                    // The upstream reported the call as incomplete, because it lacked the part that was
                    // added.
                    if known.kind == ItemKind::Call && item.field("status").is_some() {
                        edits.set_field(item, "status", &quote(COMPLETED));
                    }
                }
                None => new.extend(known.completed_item.clone()),
            }
        }
        // The last item has the status of the response. If Endmark added an item after it, it is complete.
        match end {
            Some(end) if new.is_empty() => write_end(&mut edits, response, end, &self.cut_calls),
            Some(end) => {
                for item in
                    output.into_iter().flat_map(Value::items).filter(|item| item.field("status").is_some())
                {
                    edits.set_field(item, "status", &quote(COMPLETED));
                }
                write_call_statuses(&mut edits, output.into_iter().flat_map(Value::items), &self.cut_calls);
                edits.set_field(response, "status", &quote(end_status(end)));
                if response.non_empty("incomplete_details").is_some() || end == ReportedEnd::Cut {
                    let why =
                        if end == ReportedEnd::Cut { "{\"reason\":\"max_output_tokens\"}" } else { "null" };
                    edits.set_field(response, "incomplete_details", why);
                }
            }
            None => {
                write_call_statuses(&mut edits, output.into_iter().flat_map(Value::items), &self.cut_calls);
            }
        }
        match output {
            Some(output) => {
                self.remove_omitted_items(&mut edits, output);
                for item in &new {
                    edits.push_item(output, item);
                }
            }
            None => edits.set_field(response, "output", &self.complete_items_json()),
        }
        if let Some(counts) = &closing.usage {
            usage::write(&mut edits, response, counts);
        }
        if let Some(endmark) = closing.choices.first().and_then(|end| end.endmark) {
            edits.set_field(response, "endmark", endmark.get());
        }
        let name = end.map(end_event_name);
        if let Some(name) = name {
            edits.set_field(root, "type", &quote(name));
        }
        let name = name.filter(|name| frame.event.as_deref() != Some(name));
        Some(self.renumber(frame, edits, name))
    }

    /// Returns a new last event if none arrived. Returns no bytes if the end of the response is unknown.
    pub(super) fn create_end(&mut self, closing: &StreamEnd<'_>) -> Vec<u8> {
        let Some(end) = closing.choices.first().and_then(|end| end.end) else { return Vec::new() };
        let raw = self.response.clone().unwrap_or_else(|| self.bare_response());
        let Ok(response) = Value::parse_str(&raw) else { return Vec::new() };
        let mut edits = Edits::for_document(response);
        edits.set_field(response, "output", &self.complete_items_json());
        write_end(&mut edits, response, end, &self.cut_calls);
        if let Some(counts) = &closing.usage {
            usage::write(&mut edits, response, counts);
        }
        if let Some(endmark) = closing.choices.first().and_then(|end| end.endmark) {
            edits.set_field(response, "endmark", endmark.get());
        }
        let response = String::from_utf8(edits.finish()).unwrap_or_default();
        self.write_event(end_event_name(end), &format!("\"response\":{response}"))
    }
}

/// Returns the name of the event that reports an end.
fn end_event_name(end: ReportedEnd) -> &'static str {
    match end {
        ReportedEnd::Turn | ReportedEnd::ToolCalls => "response.completed",
        ReportedEnd::Cut => "response.incomplete",
    }
}
