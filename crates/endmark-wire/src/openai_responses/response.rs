//! A response, whole or at the end of a stream: read, and edited in place.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::Responses;
use super::item::{CallForm, ItemKind, is_web_search, part_refusal, texts};
use super::stream::ResponseReader;
use super::writer::ResponseWriter;
use super::{error, stop, usage};
use crate::edit::Edits;
use crate::error::{ProviderError, ResponseError};
use crate::json::{Kind, Value, quote};
use crate::openai_chat::error_body;
use crate::reply::{CallProgress, Choice, ToolCall, Usage};
use crate::request::{Request, RequestView};
use crate::response::{Reply, ReplyEdit};
use crate::sse::event_frame;
use crate::stream::Reader;
use crate::wire_format::WireReply;
use crate::writer::{ReportedEnd, Writer};

impl WireReply for Responses {
    fn recognises(&self, root: Value<'_>) -> bool {
        root.has_text("object", "response")
    }

    fn reply(&self, root: Value<'_>, request: &RequestView) -> Result<Reply, ResponseError> {
        let has_stop = request.has_stop;
        let output = root.field("output").filter(|output| output.kind() == Kind::Array);
        let output = output.ok_or(ResponseError::MissingField("output"))?;
        Ok(Reply {
            id: root.non_empty_text("id"),
            model: root.non_empty_text("model").unwrap_or_default(),
            choices: vec![choice(root, output, has_stop)],
            usage: usage::read(root),
            tier: root.non_empty_text("service_tier"),
        })
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(ResponsesEdit::new(root))
    }

    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        Box::new(ResponseReader::new(request.view().has_stop, keep_bytes))
    }

    fn writer(&self, request: &Request, keep_bytes: usize) -> Box<dyn Writer> {
        Box::new(ResponseWriter::new(&request.view().model, keep_bytes))
    }

    fn read_error(&self, root: Value<'_>) -> Option<ProviderError> {
        error::read(root)
    }

    fn error_body(&self, _status: u16, kind: &str, message: &str) -> Vec<u8> {
        error_body(message, kind, None, None)
    }

    fn error_event(&self, _status: u16, kind: &str, message: &str) -> Vec<u8> {
        event_frame("error", error::error_event_json(kind, message, "").as_bytes())
    }

    fn stored_items<'a>(&self, root: Value<'a>) -> Vec<Value<'a>> {
        root.field("output").into_iter().flat_map(Value::items).collect()
    }
}

fn choice(root: Value<'_>, output: Value<'_>, has_stop: bool) -> Choice {
    let mut choice = Choice::new(0);
    for item in output.items() {
        match ItemKind::classify(item) {
            ItemKind::Message => {
                choice.last_part_start = choice.text.len();
                choice.ends_in_unshown_part = false;
                for text in texts(item).filter_map(Value::decode) {
                    choice.text.push_str(&text.text);
                    choice.exact &= text.exact;
                }
                let mut parts = item.field("content").into_iter().flat_map(Value::items);
                choice.is_refused |= parts.any(|part| part_refusal(part).is_some());
            }
            ItemKind::Call => {
                choice.ends_in_unshown_part = false;
                choice.last_call_at = choice.text.len();
                let form = CallForm::from_item(item);
                let arguments = item.field(form.field).and_then(Value::decode);
                let is_open = item.has_text("status", INCOMPLETE);
                let progress = if is_open { CallProgress::Open } else { CallProgress::Closed };
                choice.exact &= arguments.as_ref().is_none_or(|arguments| arguments.exact);
                choice.tool_calls.push(ToolCall {
                    index: u32::try_from(choice.tool_calls.len()).unwrap_or(u32::MAX),
                    id: item.non_empty_text("call_id"),
                    name: item.non_empty_text("name").unwrap_or_default(),
                    arguments: arguments.map(|arguments| arguments.text.into_owned()).unwrap_or_default(),
                    free_text: form.is_free_text(),
                    progress,
                    ..ToolCall::default()
                });
            }
            // No request can contain this content, so a continuation would not fit it.
            ItemKind::OtherCall | ItemKind::Other => {
                choice.web_searches += u64::from(is_web_search(item));
                choice.note_unshowable();
            }
            ItemKind::Reasoning => {
                let parts = ["summary", "content"].into_iter().filter_map(|list| item.field(list));
                let thoughts = parts.flat_map(Value::items).filter_map(|part| part.non_empty_text("text"));
                thoughts.for_each(|text| choice.written.add(&text));
                choice.note_thought();
            }
        }
    }
    choice.note_written();
    choice.is_unfinished = stop::is_in_progress(root);
    choice.end(stop::read(root, has_stop));
    choice
}

/// Sets how a response ended, and the status of its cut calls. If no call is cut, sets the status of its last
/// item.
pub(super) fn write_end<'a>(
    edits: &mut Edits<'a>,
    response: Value<'a>,
    end: ReportedEnd,
    cut: &BTreeSet<u32>,
) {
    let status = end_status(end);
    edits.set_field(response, "status", &quote(status));
    match end {
        ReportedEnd::Turn | ReportedEnd::ToolCalls if response.non_empty("incomplete_details").is_none() => {}
        ReportedEnd::Turn | ReportedEnd::ToolCalls => edits.set_field(response, "incomplete_details", "null"),
        ReportedEnd::Cut => {
            edits.set_field(response, "incomplete_details", "{\"reason\":\"max_output_tokens\"}");
        }
    }
    let items = || response.field("output").into_iter().flat_map(Value::items);
    if !cut.is_empty() {
        return write_call_statuses(edits, items(), cut);
    }
    let last = items().last();
    if let Some(last) = last.filter(|last| last.field("status").is_some()) {
        edits.set_field(last, "status", &quote(status));
    }
}

/// Marks the calls with these numbers as incomplete and all other calls as complete. Does nothing if no call
/// is cut.
pub(super) fn write_call_statuses<'a>(
    edits: &mut Edits<'a>,
    items: impl Iterator<Item = Value<'a>>,
    cut: &BTreeSet<u32>,
) {
    if cut.is_empty() {
        return;
    }
    for (call, item) in (0..).zip(items.filter(|item| ItemKind::classify(*item) == ItemKind::Call)) {
        // Free text itself does not show that it is cut, so it needs a status.
        let is_cut = cut.contains(&call);
        if item.field("status").is_some() || (is_cut && CallForm::from_item(item).is_free_text()) {
            let status = if is_cut { INCOMPLETE } else { COMPLETED };
            edits.set_field(item, "status", &quote(status));
        }
    }
}

pub(super) const COMPLETED: &str = "completed";
pub(super) const INCOMPLETE: &str = "incomplete";

/// Returns the status of a response with this end. Its last item has the same status.
pub(super) fn end_status(end: ReportedEnd) -> &'static str {
    match end {
        ReportedEnd::Turn | ReportedEnd::ToolCalls => COMPLETED,
        ReportedEnd::Cut => INCOMPLETE,
    }
}

/// Returns the id of an item that Endmark created at this position of a response. Providers' item ids have at
/// most 64 characters.
pub(super) fn own_item_id(prefix: &str, response: &str, position: usize) -> String {
    let usable = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let response: String = response.chars().filter(usable).collect();
    let last = response.len().saturating_sub(40);
    let response = response.get(last..).unwrap_or_default();
    let between = if response.is_empty() { "" } else { "_" };
    format!("{prefix}_endmark_{response}{between}{position}")
}

/// Returns a message item with this text.
pub(super) fn message_item(id: &str, status: &str, text: &str) -> String {
    format!(
        "{{\"id\":{},\"type\":\"message\",\"status\":\"{status}\",\"role\":\"assistant\",\"content\":[{}]}}",
        quote(id),
        text_part(text)
    )
}

/// Returns a part with this text.
pub(super) fn text_part(text: &str) -> String {
    format!("{{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":{}}}", quote(text))
}

/// Returns a call as an item.
pub(super) fn call_item(id: &str, status: &str, call: &ToolCall, arguments: &str) -> String {
    let CallForm { kind, field, .. } = CallForm::from_free_text(call.free_text);
    let call_id = call.id.clone().unwrap_or_else(|| format!("call_endmark_{}", call.index));
    format!(
        "{{\"id\":{},\"type\":\"{kind}\",\"status\":\"{status}\",\"call_id\":{},\"name\":{},\"{field}\":{}}}",
        quote(id),
        quote(&call_id),
        quote(&call.name),
        quote(arguments)
    )
}

/// Changes to a response.
#[derive(Debug)]
pub(super) struct ResponsesEdit<'a> {
    edits: Edits<'a>,
    /// The calls that remain cut.
    cut_calls: BTreeSet<u32>,
}

impl<'a> ResponsesEdit<'a> {
    pub(super) fn new(root: Value<'a>) -> Self {
        Self { edits: Edits::for_document(root), cut_calls: BTreeSet::new() }
    }

    fn own_id(&self, prefix: &str, position: usize) -> String {
        let response = self.edits.original().non_empty_text("id").unwrap_or_default();
        own_item_id(prefix, &response, position)
    }

    fn output(&self, choice: u32) -> Option<Value<'a>> {
        let output = self.edits.original().field("output").filter(|_| choice == 0)?;
        output.as_kind(Kind::Array)
    }
}

impl ReplyEdit for ResponsesEdit<'_> {
    fn set_text(&mut self, choice: u32, text: &str) {
        let Some(output) = self.output(choice) else { return };
        let messages = output.items().filter(|item| ItemKind::classify(*item) == ItemKind::Message);
        let texts: Vec<Value<'_>> = messages.flat_map(texts).collect();
        if texts.is_empty() {
            let id = self.own_id("msg", output.items().count());
            self.edits.push_item(output, &message_item(&id, "completed", text));
        }
        self.edits.set_texts(&texts, text);
        // The continuation has no logprobs. Those of the beginning would look like those of the whole text.
        let messages = output.items().filter(|item| ItemKind::classify(*item) == ItemKind::Message);
        let parts = messages.flat_map(|item| item.field("content").into_iter().flat_map(Value::items));
        for part in parts.filter(|part| part.non_empty("logprobs").is_some()) {
            self.edits.set_field(part, "logprobs", "[]");
        }
        // Some servers repeat the text in a field outside the items.
        if let Some(whole) = self.edits.original().field("output_text").filter(|whole| whole.text().is_some())
        {
            self.edits.set_text(whole, text);
        }
    }

    fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str) {
        let item = self.output(choice).and_then(|output| {
            let mut calls =
                (0..).zip(output.items().filter(|item| ItemKind::classify(*item) == ItemKind::Call));
            calls.find(|(index, _)| *index == call).map(|(_, item)| item)
        });
        if let Some(item) = item.filter(|item| item.field("status").is_some()) {
            self.edits.set_field(item, "status", &quote(COMPLETED));
        }
        let Some(item) = item else { return };
        let field = CallForm::from_item(item).field;
        match item.field(field) {
            Some(held) => self.edits.set_text(held, arguments),
            None => self.edits.set_field(item, field, &quote(arguments)),
        }
    }

    fn note_cut_calls(&mut self, choice: u32, calls: &BTreeSet<u32>) {
        let Some(output) = self.output(choice) else { return };
        self.cut_calls.extend(calls);
        write_call_statuses(&mut self.edits, output.items(), &self.cut_calls);
    }

    fn add_calls(&mut self, choice: u32, calls: &[ToolCall]) {
        let Some(output) = self.output(choice) else { return };
        for (call, position) in calls.iter().zip(output.items().count()..) {
            let id = self.own_id(CallForm::from_free_text(call.free_text).id_prefix, position);
            self.edits.push_item(output, &call_item(&id, "completed", call, &call.arguments));
        }
    }

    fn set_end(&mut self, choice: u32, end: ReportedEnd) {
        if choice == 0 {
            let root = self.edits.original();
            write_end(&mut self.edits, root, end, &self.cut_calls);
        }
    }

    fn set_id(&mut self, id: &str) {
        self.edits.set_field(self.edits.original(), "id", &quote(id));
    }

    fn set_usage(&mut self, counts: &Usage) {
        let root = self.edits.original();
        usage::write(&mut self.edits, root, counts);
    }

    fn set_endmark(&mut self, endmark: &RawValue) {
        self.edits.set_field(self.edits.original(), "endmark", endmark.get());
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        self.edits.finish()
    }
}
