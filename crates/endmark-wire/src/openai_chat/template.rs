//! Builds chunks that continue a stream after the upstream's last chunk, and edits chunks in place.

use serde_json::value::RawValue;

use super::response::find_choice;
use super::tool_call::call_form;
use super::usage::{usage_json, write_usage};
use crate::edit::Edits;
use crate::json::{Fields, Kind, Value, quote};
use crate::reply::{EventError, ToolCall, Usage};

/// Fields with the same value in every chunk of a stream. Other fields belong to a single chunk.
const ENVELOPE_FIELDS: [&str; 7] =
    ["id", "object", "created", "model", "provider", "service_tier", "system_fingerprint"];

/// Maximum length of a repeated envelope field in bytes. The upstream controls these fields, and they are
/// kept for the whole stream.
const MAX_ENVELOPE_FIELD_BYTES: usize = 4096;

/// The common fields of a stream's chunks, as the server wrote them. Further chunks are built from them.
///
/// Each method returns the JSON of one chunk. [`sse::data_frame`](crate::sse::data_frame) turns it into a
/// frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The envelope's fields, each followed by a comma.
    envelope: String,
}

impl Template {
    /// Creates a template for a stream without a received chunk.
    pub fn new(model: &str) -> Self {
        Self::with_id("chatcmpl-endmark", model)
    }

    /// Creates a template for a stream with this id and without a received chunk.
    pub(super) fn with_id(id: &str, model: &str) -> Self {
        let (id, model) = (quote(id), quote(model));
        let envelope =
            format!("\"id\":{id},\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":{model},");
        Self { envelope }
    }

    /// Reads the template from a chunk of a stream.
    pub(super) fn read(chunk: Value<'_>) -> Self {
        let fields = Fields::new(chunk);
        let mut envelope = String::new();
        for name in ENVELOPE_FIELDS {
            if let Some(value) =
                fields.get(name).filter(|value| value.raw().len() <= MAX_ENVELOPE_FIELD_BYTES)
            {
                envelope.push_str(&quote(name));
                envelope.push(':');
                envelope.push_str(value.raw());
                envelope.push(',');
            }
        }
        Self { envelope }
    }

    /// Returns a chunk with the next characters of a choice's text.
    pub fn text_chunk(&self, choice: u32, text: &str) -> Vec<u8> {
        self.delta_chunk(choice, &format!("{{\"content\":{}}}", quote(text)))
    }

    /// Returns a chunk that begins a tool call: its id, its name and its arguments so far.
    pub fn tool_call_chunk(&self, choice: u32, call: &ToolCall) -> Vec<u8> {
        let (kind, field) = call_form(call);
        let function = format!("{{\"name\":{},\"{field}\":{}}}", quote(&call.name), quote(&call.arguments));
        if call.legacy {
            return self.delta_chunk(choice, &format!("{{\"function_call\":{function}}}"));
        }
        let id = call.id.as_ref().map(|id| format!("\"id\":{},", quote(id))).unwrap_or_default();
        let call = format!("{{\"index\":{},{id}\"type\":\"{kind}\",\"{kind}\":{function}}}", call.index);
        self.delta_chunk(choice, &format!("{{\"tool_calls\":[{call}]}}"))
    }

    /// Returns a chunk with the next characters of a call's arguments. It uses only the position and the form
    /// of `call`.
    pub fn tool_arguments_chunk(&self, choice: u32, call: &ToolCall, arguments: &str) -> Vec<u8> {
        let (kind, field) = call_form(call);
        let function = format!("{{\"{field}\":{}}}", quote(arguments));
        if call.legacy {
            return self.delta_chunk(choice, &format!("{{\"function_call\":{function}}}"));
        }
        let index = call.sent_index().map(|index| format!("\"index\":{index},")).unwrap_or_default();
        self.delta_chunk(choice, &format!("{{\"tool_calls\":[{{{index}\"{kind}\":{function}}}]}}"))
    }

    /// Returns a chunk that ends a choice, with Endmark's statement about the choice.
    pub fn finish_chunk(&self, choice: u32, reason: &str, endmark: Option<&RawValue>) -> Vec<u8> {
        let choice = format!("{{\"index\":{choice},\"delta\":{{}},\"finish_reason\":{}}}", quote(reason));
        let endmark = endmark.map(|endmark| format!(",\"endmark\":{}", endmark.get())).unwrap_or_default();
        self.chunk(&format!("\"choices\":[{choice}]{endmark}"))
    }

    /// Returns a chunk without choices that contains the token counts of the whole reply.
    pub fn usage_chunk(&self, usage: &Usage) -> Vec<u8> {
        self.chunk(&format!("\"choices\":[],\"usage\":{}", usage_json(usage)))
    }

    fn delta_chunk(&self, choice: u32, delta: &str) -> Vec<u8> {
        self.chunk(&format!("\"choices\":[{{\"index\":{choice},\"delta\":{delta},\"finish_reason\":null}}]"))
    }

    fn chunk(&self, rest: &str) -> Vec<u8> {
        format!("{{{}{rest}}}", self.envelope).into_bytes()
    }
}

/// Edits of one chunk of a stream. Everything else stays byte for byte. Edits of a choice that the chunk
/// lacks are ignored.
///
/// ```
/// use endmark_wire::openai_chat::ChunkEdit;
/// let mut edit = ChunkEdit::new(r#"{"choices": [{"index":0, "delta":{}, "finish_reason":"length"}]}"#)?;
/// edit.set_finish(0, Some("stop"));
/// assert_eq!(edit.finish(), br#"{"choices": [{"index":0, "delta":{}, "finish_reason":"stop"}]}"#);
/// # Ok::<(), endmark_wire::openai_chat::ChunkError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChunkEdit<'a> {
    edits: Edits<'a>,
}

impl<'a> ChunkEdit<'a> {
    /// Creates edits of the chunk in this data.
    pub fn new(data: &'a str) -> Result<Self, EventError> {
        let root = Value::parse_str(data).map_err(EventError::NotJson)?;
        if root.kind() == Kind::Object {
            Ok(Self { edits: Edits::for_document(root) })
        } else {
            Err(EventError::NotAnObject)
        }
    }

    /// Sets a choice's `finish_reason`; `None` leaves the choice open.
    pub fn set_finish(&mut self, choice: u32, reason: Option<&str>) {
        if let Some(choice) = find_choice(self.edits.original(), choice) {
            self.edits.set_field(choice, "finish_reason", &reason.map_or_else(|| "null".to_owned(), quote));
        }
    }

    /// Sets the text of a choice's delta.
    pub fn set_text(&mut self, choice: u32, text: &str) {
        let delta = find_choice(self.edits.original(), choice).and_then(|choice| choice.field("delta"));
        if let Some(delta) = delta.filter(|delta| delta.kind() == Kind::Object) {
            self.edits.set_field(delta, "content", &quote(text));
        }
    }

    /// Removes the end of a choice and, if the flags are set, its text or its calls.
    pub(super) fn remove_end(&mut self, choice: u32, text: bool, calls: bool) {
        let Some(choice) = find_choice(self.edits.original(), choice) else { return };
        self.edits.set_field(choice, "finish_reason", "null");
        let Some(delta) = choice.field("delta").filter(|delta| delta.kind() == Kind::Object) else { return };
        let gone = [("content", text), ("tool_calls", calls), ("function_call", calls)];
        for (name, _) in gone.iter().filter(|(_, goes)| *goes) {
            self.edits.remove_field(delta, name);
        }
    }

    /// Reduces a choice to its end, because separate chunks contain its text and calls. Removes the logprobs,
    /// too.
    pub(super) fn reduce_to_end(&mut self, choice: u32, word: &str) {
        self.remove_end(choice, true, true);
        self.set_finish(choice, Some(word));
        if let Some(choice) = find_choice(self.edits.original(), choice) {
            self.edits.remove_field(choice, "logprobs");
        }
    }

    /// Sets the counts of `usage`. Other details stay.
    pub fn set_usage(&mut self, usage: &Usage) {
        write_usage(usage, &mut self.edits);
    }

    /// Removes `usage`, for a client that did not ask for it.
    pub fn remove_usage(&mut self) {
        let root = self.edits.original();
        self.edits.remove_field(root, "usage");
        for choice in root.field("choices").into_iter().flat_map(Value::items) {
            self.edits.remove_field(choice, "usage");
        }
    }

    /// Sets the `endmark` object next to the provider's own fields.
    pub fn set_endmark(&mut self, endmark: &RawValue) {
        self.edits.set_field(self.edits.original(), "endmark", endmark.get());
    }

    /// Returns the chunk's JSON with its edits.
    pub fn finish(self) -> Vec<u8> {
        self.edits.finish()
    }
}
