//! Anthropic Messages, as Anthropic and the servers that follow it speak it (PC-8, PC-9).
//!
//! A reply is one choice, of content blocks. Its text is that of its text blocks; its tool calls are its
//! `tool_use` blocks, counted from 0 and not by the number of their block. Thinking, tools that the server
//! runs itself, and whatever else a block may be, pass untouched, signatures and all.
//!
//! A limit is in every request. A response that is not streamed has a tool call's input as an object: of a
//! call that was cut the server gives `{}`, or what it made of the rest. Nothing of such an input counts.

mod content;
mod continuation;
mod conversation;
mod error;
mod request;
mod response;
mod stop;
mod stream;
mod usage;
mod writer;

use endmark_context::conversation::{Order, Role};

use crate::ask::{Ask, Asked, Terms};
use crate::closing::LimitPlace;
use crate::conversation::Placed;
use crate::deciding::{Deciding, fields};
use crate::error::{ProviderError, ResponseError};
use crate::json::{Value, quoted};
use crate::own_tool::OwnTool;
use crate::provider::Provider;
use crate::reply::Choice;
use crate::request::{Address, Request, Tool, View};
use crate::response::{Reply, ReplyEdit};
use crate::sse::event_frame;
use crate::stream::Reader;
use crate::wire_format::WireFormat;
use crate::writer::Writer;

/// Anthropic.
pub const ANTHROPIC: Provider = Provider {
    name: "anthropic",
    origin: "https://api.anthropic.com",
    base_path: "/v1",
    adds_version: true,
    base_url_variable: "ANTHROPIC_BASE_URL",
    traced_as: "anthropic",
    headers: &["anthropic-version", "anthropic-beta"],
    keys_begin: &["sk-ant-"],
};

/// Anthropic Messages: `POST /v1/messages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages;

impl WireFormat for Messages {
    fn name(&self) -> &'static str {
        "anthropic_messages"
    }

    fn title(&self) -> &'static str {
        "Anthropic Messages"
    }

    fn provider(&self) -> &'static Provider {
        &ANTHROPIC
    }

    fn route(&self) -> &'static str {
        "/v1/messages"
    }

    fn owns(&self, path: &str) -> bool {
        path.strip_prefix("/v1/messages").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        (path == "/v1/messages").then(Address::default)
    }

    fn limit_is_required(&self) -> bool {
        true
    }

    fn limit_place(&self) -> LimitPlace {
        LimitPlace { within: &[], names: &["max_tokens"] }
    }

    fn calls_need_tools(&self) -> bool {
        true
    }

    fn wants_last_event(&self) -> bool {
        true
    }

    fn credential(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn deciding(&self) -> &'static [Deciding] {
        fields::MESSAGES
    }

    fn hint(&self) -> &'static str {
        "Send an object with `model`, `max_tokens` and `messages`."
    }

    fn view(&self, root: Value<'_>, _address: &Address) -> View {
        request::view(root)
    }

    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        request::tools(root)
    }

    fn conversation_field(&self) -> &'static str {
        "messages"
    }

    fn order(&self) -> Order {
        conversation::ORDER
    }

    fn words_of_results(&self) -> &'static [&'static str] {
        &["\"tool_result\""]
    }

    fn words_of_calls(&self) -> &'static [&'static str] {
        &["\"tool_use\""]
    }

    fn role(&self, item: Value<'_>) -> Option<Role> {
        conversation::role(item)
    }

    fn turn<'a>(&self, item: Value<'a>) -> Result<(Role, Vec<Placed<'a>>), &'static str> {
        conversation::turn(item)
    }

    fn user_turn(&self, text: &str) -> String {
        conversation::user_turn(text)
    }

    fn result_turns(&self, results: Vec<String>) -> Vec<String> {
        conversation::result_turns(&results)
    }

    fn absent_result(&self, call: Value<'_>, text: &str) -> String {
        conversation::absent_result(call, text)
    }

    fn result(&self, call: Value<'_>, text: &str, is_error: bool) -> String {
        conversation::result_of(call, text, is_error)
    }

    fn written_tool(&self, tool: &OwnTool<'_>) -> String {
        conversation::written_tool(tool)
    }

    fn said(&self, root: Value<'_>) -> Vec<String> {
        conversation::said(root)
    }

    fn said_in(&self, events: &[Value<'_>], _choice: &Choice) -> Vec<String> {
        conversation::said_in(events)
    }

    fn asking(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<Asked> {
        continuation::asking(request, ask, terms)
    }

    fn path_for(&self, _address: &Address, _model: &str, _stream: bool) -> Option<String> {
        None
    }

    fn question(&self, model: &str, text: &str, limit_tokens: u64) -> String {
        let (model, text) = (quoted(model), quoted(text));
        format!(
            r#"{{"model":{model},"max_tokens":{limit_tokens},"messages":[{{"role":"user","content":{text}}}]}}"#
        )
    }

    fn with_model(&self, request: &Request, model: &str) -> Vec<u8> {
        let mut edits = crate::edit::Edits::of(request.root());
        edits.set_field(request.root(), "model", &quoted(model));
        edits.finish()
    }

    fn echoes(&self, request: &Request, so_far: &str) -> Vec<String> {
        vec![request.view().prefill.clone().unwrap_or_default() + so_far]
    }

    fn has_written(&self, root: Value<'_>) -> bool {
        let says = |field: &str, word: &str| {
            root.field(field).and_then(Value::text).is_some_and(|text| text == word)
        };
        says("type", "message") && says("role", "assistant")
    }

    fn reply(&self, root: Value<'_>, _request: &View) -> Result<Reply, ResponseError> {
        response::reply(root)
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(response::Edit::new(root))
    }

    fn reader(&self, _request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        Box::new(stream::MessageReader::new(keep_bytes))
    }

    fn writer(&self, request: &Request, _keep_bytes: usize) -> Box<dyn Writer> {
        Box::new(writer::MessageWriter::new(&request.view().model))
    }

    fn read_error(&self, root: Value<'_>) -> Option<ProviderError> {
        error::read(root)
    }

    fn error_body(&self, _status: u16, kind: &str, message: &str) -> Vec<u8> {
        format!("{{{}}}", error::fields(kind, message)).into_bytes()
    }

    fn error_event(&self, status: u16, kind: &str, message: &str) -> Vec<u8> {
        event_frame("error", &self.error_body(status, kind, message))
    }
}
