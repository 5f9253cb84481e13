//! The last event of a streamed response.

use super::ResponseWriter;
use super::client_item::write_known;
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::openai_responses::item::Item;
use crate::openai_responses::response::{COMPLETED, end_status, write_cut, write_end};
use crate::openai_responses::usage;
use crate::sse::Frame;
use crate::writer::{Closing, End};

impl ResponseWriter {
    /// Returns the held last event, with another end.
    pub(super) fn edit_end(&mut self, frame: &Frame, closing: &Closing<'_>) -> Option<Vec<u8>> {
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
                    write_known(&mut edits, item, known);
                    // It was reported as incomplete because of the missing part.
                    if known.kind == Item::Call && item.field("status").is_some() {
                        edits.set_field(item, "status", &quote(COMPLETED));
                    }
                }
                None => new.extend(known.done_part.clone()),
            }
        }
        // The last item has the status of the response. If another item follows it, it is complete.
        match end {
            Some(end) if new.is_empty() => write_end(&mut edits, response, end, &self.cut),
            Some(end) => {
                for item in
                    output.into_iter().flat_map(Value::items).filter(|item| item.field("status").is_some())
                {
                    edits.set_field(item, "status", &quote(COMPLETED));
                }
                write_cut(&mut edits, output.into_iter().flat_map(Value::items), &self.cut);
                edits.set_field(response, "status", &quote(end_status(end)));
                if response.non_empty("incomplete_details").is_some() || end == End::Cut {
                    let why = if end == End::Cut { "{\"reason\":\"max_output_tokens\"}" } else { "null" };
                    edits.set_field(response, "incomplete_details", why);
                }
            }
            None => write_cut(&mut edits, output.into_iter().flat_map(Value::items), &self.cut),
        }
        match output {
            Some(output) => {
                self.remove_omitted_items(&mut edits, output);
                for item in &new {
                    edits.push_item(output, item);
                }
            }
            None => edits.set_field(response, "output", &self.output()),
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

    /// Returns a new last event if none arrived, or nothing if the end of the response is unknown.
    pub(super) fn create_end(&mut self, closing: &Closing<'_>) -> Vec<u8> {
        let Some(end) = closing.choices.first().and_then(|end| end.end) else { return Vec::new() };
        let raw = self.response.clone().unwrap_or_else(|| self.bare_response());
        let Ok(response) = Value::parse_str(&raw) else { return Vec::new() };
        let mut edits = Edits::for_document(response);
        edits.set_field(response, "output", &self.output());
        write_end(&mut edits, response, end, &self.cut);
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

/// Returns the name of the event for an end.
fn end_event_name(end: End) -> &'static str {
    match end {
        End::Turn | End::ToolCalls => "response.completed",
        End::Cut => "response.incomplete",
    }
}
