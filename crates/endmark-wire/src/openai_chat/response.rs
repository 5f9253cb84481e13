//! A non-streamed response: read, and edited in place.

use std::ops::Range;

use serde_json::value::RawValue;

use super::choice::{choice_index, read_choice};
use super::content::{content_text, text_parts};
use super::error::{error_body, read_error_field};
use super::format::Chat;
use super::tool_call::{CallView, call_json};
use super::usage::{sum_choices, usage_among, usage_by_choice, write_usage};
use super::writer::ChatWriter;
use super::{ChatRequest, ChatStream};
use crate::edit::Edits;
use crate::error::{ProviderError, ResponseError};
use crate::json::{Fields, Kind, Value, quote};
use crate::reply::{Choice, ToolCall, Usage};
use crate::request::{Request, RequestView};
use crate::response::{Reply, ReplyEdit};
use crate::stream::Reader;
use crate::wire_format::WireReply;
use crate::writer::Writer;

impl WireReply for Chat {
    fn recognises(&self, root: Value<'_>) -> bool {
        root.has_text("object", "chat.completion")
    }

    fn reply(&self, root: Value<'_>, request: &RequestView) -> Result<Reply, ResponseError> {
        read_reply(root, request.has_stop)
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(ResponseEdit::new(root))
    }

    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        let view = request.view();
        Box::new(ChatStream::for_model(&view.model, view.has_stop, keep_bytes))
    }

    fn writer(&self, request: &Request, _keep_bytes: usize) -> Box<dyn Writer> {
        Box::new(ChatWriter::new(&request.view().model, request.view().include_usage))
    }

    fn read_error(&self, root: Value<'_>) -> Option<ProviderError> {
        read_error_field(root)
    }

    fn error_body(&self, _status: u16, kind: &str, message: &str) -> Vec<u8> {
        error_body(message, kind, None, None)
    }
}

/// A response as its server sent it (PC-9): a view, and the bytes themselves.
///
/// ```
/// use endmark_recovery::Stop;
/// use endmark_wire::openai_chat::{ChatRequest, ChatResponse, Usage};
/// let request = ChatRequest::parse(br#"{"model":"m","messages":[]}"#)?;
/// let body = br#"{"choices":[{"index":0,"message":{"content":"Hello, "},"finish_reason":"length"}], "x": 1.0}"#;
/// let response = ChatResponse::parse(body, &request)?;
/// assert_eq!(response.choices[0].text, "Hello, ");
/// assert_eq!(response.choices[0].finish.as_ref().and_then(|finish| finish.stop), Some(Stop::Limit));
///
/// let mut edit = response.edit();
/// edit.set_text(0, "Hello, world");
/// edit.set_finish(0, "stop");
/// let mended = r#"{"choices":[{"index":0,"message":{"content":"Hello, world"},"finish_reason":"stop"}], "x": 1.0}"#;
/// assert_eq!(edit.finish(), mended.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatResponse {
    body: String,
    root: Range<usize>,
    /// The response's id.
    pub id: Option<String>,
    /// The model's name. Empty if the response names no model.
    pub model: String,
    /// The choices, in the order of the response.
    pub choices: Vec<Choice>,
    /// Token counts by the server. With several choices, some servers count only one of them.
    pub usage: Option<Usage>,
}

impl ChatResponse {
    /// Reads the response to this request, which determines the meaning of `stop`.
    pub fn parse(body: &[u8], request: &ChatRequest) -> Result<Self, ResponseError> {
        let root = Value::parse(body).map_err(ResponseError::NotJson)?;
        let Reply { id, model, choices, usage, .. } = read_reply(root, request.has_stop)?;
        Ok(Self { body: root.document().to_owned(), root: root.span(), id, model, choices, usage })
    }

    /// Returns the response as its server sent it, byte for byte.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// Returns an editor that changes the response in place.
    pub fn edit(&self) -> ResponseEdit<'_> {
        ResponseEdit { edits: Edits::for_document(Value::from_checked(&self.body, self.root.clone())) }
    }
}

/// Reads a response. With several choices, some servers count the tokens of only one.
fn read_reply(root: Value<'_>, has_stop: bool) -> Result<Reply, ResponseError> {
    let fields = Fields::new(root);
    let choices = fields.get("choices").filter(|choices| choices.kind() == Kind::Array);
    let choices = choices.ok_or(ResponseError::MissingField("choices"))?;
    let choices = (0..).zip(choices.items());
    Ok(Reply {
        id: fields.get("id").and_then(Value::text).map(std::borrow::Cow::into_owned),
        model: fields.get("model").and_then(Value::text).unwrap_or_default().into_owned(),
        tier: root.non_empty_text("service_tier"),
        choices: choices.map(|(position, choice)| read_choice(choice, position, has_stop)).collect(),
        usage: usage_among(&fields).or_else(|| {
            let usages: Vec<_> = fields.get("choices").into_iter().flat_map(usage_by_choice).collect();
            sum_choices(usages.iter().map(|(_, usage)| usage))
        }),
    })
}

/// Edits of a response. Everything else stays byte for byte. Edits of a choice or call that the response
/// lacks are ignored.
#[derive(Debug, Clone)]
pub struct ResponseEdit<'a> {
    edits: Edits<'a>,
}

impl<'a> ResponseEdit<'a> {
    pub(super) fn new(root: Value<'a>) -> Self {
        Self { edits: Edits::for_document(root) }
    }

    /// Sets a choice's text.
    pub fn set_text(&mut self, choice: u32, text: &str) {
        let Some(message) = self.message(choice) else { return };
        self.drop_logprobs(choice);
        match message.field("content") {
            Some(content) if content.kind() == Kind::Array => self.set_parts(content, text),
            Some(content) => self.edits.set_text(content, text),
            None => self.edits.set_field(message, "content", &quote(text)),
        }
    }

    /// Sets the arguments of one of a choice's calls, by its [`ToolCall::index`].
    pub fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str) {
        let call = self.message(choice).and_then(|message| {
            (0..).zip(CallView::message_calls(&Fields::new(message))).find(|(index, _)| *index == call)
        });
        if let Some(value) = call.and_then(|(_, call)| call.arguments) {
            self.drop_logprobs(choice);
            self.edits.set_text(value, arguments);
        }
    }

    /// Sets all calls of a choice, for servers that treated the beginning of a call as text. An empty list
    /// changes nothing, because servers refuse one if a client sends the message back.
    pub fn set_tool_calls(&mut self, choice: u32, calls: &[ToolCall]) {
        let Some(message) = self.message(choice).filter(|_| !calls.is_empty()) else { return };
        let calls: Vec<String> = calls.iter().map(call_json).collect();
        self.edits.set_field(message, "tool_calls", &format!("[{}]", calls.join(",")));
    }

    /// Adds calls after the existing calls of a choice.
    pub(super) fn add_tool_calls(&mut self, choice: u32, calls: &[ToolCall]) {
        let Some(message) = self.message(choice) else { return };
        match message.field("tool_calls").and_then(|own| own.as_kind(Kind::Array)) {
            Some(own) => calls.iter().for_each(|call| self.edits.push_item(own, &call_json(call))),
            None => self.set_tool_calls(choice, calls),
        }
    }

    /// Returns whether a choice has a call in the legacy form.
    pub(super) fn has_legacy_call(&self, choice: u32) -> bool {
        self.message(choice)
            .is_some_and(|message| CallView::message_calls(&Fields::new(message)).any(|call| call.legacy))
    }

    /// Sets a choice's `finish_reason`.
    pub fn set_finish(&mut self, choice: u32, reason: &str) {
        if let Some(choice) = find_choice(self.edits.original(), choice) {
            self.edits.set_field(choice, "finish_reason", &quote(reason));
        }
    }

    /// Removes the error of a choice, which `OpenRouter` sends. A completed choice has no error.
    pub(super) fn remove_error(&mut self, choice: u32) {
        if let Some(choice) = find_choice(self.edits.original(), choice) {
            self.edits.remove_field(choice, "error");
        }
    }

    /// Sets the counts of `usage`. Other details stay.
    pub fn set_usage(&mut self, usage: &Usage) {
        write_usage(usage, &mut self.edits);
    }

    /// Sets the `endmark` object next to the provider's own fields.
    pub fn set_endmark(&mut self, endmark: &RawValue) {
        self.edits.set_field(self.edits.original(), "endmark", endmark.get());
    }

    /// Returns the response with its edits.
    pub fn finish(self) -> Vec<u8> {
        self.edits.finish()
    }

    /// Drops logprobs. The continuation has none, and those of the beginning would look like those of the
    /// whole text.
    fn drop_logprobs(&mut self, choice: u32) {
        let choice = find_choice(self.edits.original(), choice);
        if let Some(choice) = choice.filter(|choice| choice.field("logprobs").is_some()) {
            self.edits.set_field(choice, "logprobs", "null");
        }
    }

    fn message(&self, choice: u32) -> Option<Value<'a>> {
        find_choice(self.edits.original(), choice)?
            .field("message")
            .filter(|message| message.kind() == Kind::Object)
    }

    /// Appends to the last text part if the new text extends the current one. Otherwise one string replaces
    /// all parts.
    fn set_parts(&mut self, content: Value<'a>, text: &str) {
        let held = content_text(content).filter(|held| held.is_exact);
        let rest = held.as_ref().and_then(|held| text.strip_prefix(held.text.as_str()));
        match (rest, text_parts(content).last()) {
            (Some(rest), Some(part)) => self.edits.append_text(part, rest),
            _ => self.edits.replace(content, &quote(text)),
        }
    }
}

/// Returns the choice with this number, if it is an object. The number of a choice without one is its
/// position.
pub(super) fn find_choice(root: Value<'_>, index: u32) -> Option<Value<'_>> {
    let choices = (0..).zip(root.field("choices")?.items());
    choices
        .map(|(position, choice)| (choice_index(&Fields::new(choice), position), choice))
        .find(|(own, _)| *own == index)
        .map(|(_, choice)| choice)
        .filter(|choice| choice.kind() == Kind::Object)
}
