//! Chat Completions among the other formats.

use endmark_context::conversation::{Order, Role};
use serde_json::value::RawValue;

use super::conversation;
use super::error::read_error_field;
use super::request::{ask_for_usage, functions, view};
use super::response::{ResponseEdit, read_reply};
use super::writer::ChatWriter;
use super::{ChatRequest, ChatStream, error_body};
use crate::ask::{Ask, Asked, Terms};
use crate::closing::LimitPlace;
use crate::conversation::Placed;
use crate::deciding::{Deciding, fields};
use crate::edit::Edits;
use crate::error::{ProviderError, ResponseError};
use crate::json::{Kind, Value, quoted};
use crate::own_tool::OwnTool;
use crate::provider::Provider;
use crate::reply::{Choice, Event, EventError, Received, ToolCall, Usage};
use crate::request::{Address, Request, Tool, View};
use crate::response::{Reply, ReplyEdit};
use crate::sse::Frame;
use crate::stream::Reader;
use crate::wire_format::WireFormat;
use crate::writer::{End, Writer};

/// What Azure's paths begin with.
const AZURE: &str = "/openai/";

/// OpenAI.
pub const OPENAI: Provider = Provider {
    name: "openai",
    origin: "https://api.openai.com",
    base_path: "/v1",
    adds_version: false,
    base_url_variable: "OPENAI_BASE_URL",
    traced_as: "openai",
    headers: &["openai-organization"],
    keys_begin: &["sk-proj-", "sk-svcacct-", "sk-admin-"],
};

/// Chat Completions: `POST /v1/chat/completions`, and where Azure has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chat;

impl WireFormat for Chat {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn title(&self) -> &'static str {
        "OpenAI Chat Completions"
    }

    fn provider(&self) -> &'static Provider {
        &OPENAI
    }

    fn route(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn owns(&self, path: &str) -> bool {
        path.starts_with(AZURE)
            || path
                .strip_prefix("/v1/chat/completions")
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        let model = match path.strip_prefix(AZURE) {
            None if path == "/v1/chat/completions" => None,
            Some("v1/chat/completions") => None,
            // A deployment is a model under a name of one's own.
            Some(below) => {
                let named = below.strip_prefix("deployments/")?.strip_suffix("/chat/completions")?;
                if named.is_empty() || named.contains('/') {
                    return None;
                }
                Some(named.to_owned())
            }
            None => return None,
        };
        Some(Address { model, ..Address::default() })
    }

    fn limit_place(&self) -> LimitPlace {
        LimitPlace { within: &[], names: &["max_completion_tokens", "max_tokens"] }
    }

    fn deciding(&self) -> &'static [Deciding] {
        fields::CHAT
    }

    fn hint(&self) -> &'static str {
        "Send an object with `model` and `messages`."
    }

    fn view(&self, root: Value<'_>, address: &Address) -> View {
        let mut view = view(root);
        if let Some(deployment) = &address.model {
            deployment.clone_into(&mut view.model);
        }
        view
    }

    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        let tools = functions(root).filter_map(|function| {
            let schema = function.field("parameters").and_then(|schema| schema.of_kind(Kind::Object));
            Some(Tool { name: function.word("name")?, schema: schema.map(|schema| schema.raw().to_owned()) })
        });
        tools.collect()
    }

    fn conversation_field(&self) -> &'static str {
        "messages"
    }

    fn order(&self) -> Order {
        conversation::ORDER
    }

    fn words_of_results(&self) -> &'static [&'static str] {
        &["\"tool_call_id\""]
    }

    fn words_of_calls(&self) -> &'static [&'static str] {
        &["\"tool_calls\"", "\"function_call\""]
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
        results
    }

    fn absent_result(&self, call: Value<'_>, text: &str) -> String {
        conversation::absent_result(call, text)
    }

    fn written_tool(&self, tool: &OwnTool<'_>) -> String {
        conversation::written_tool(tool)
    }

    fn said(&self, root: Value<'_>) -> Vec<String> {
        conversation::said(root)
    }

    fn said_in(&self, events: &[Value<'_>], choice: &Choice) -> Vec<String> {
        conversation::said_in(events, choice)
    }

    fn asking(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<Asked> {
        let request = ChatRequest::of(request.root());
        let body = match ask {
            Ask::Prefill { so_far, variant, tool } => request.with_prefill(so_far, terms, *variant, *tool),
            Ask::Prompt { so_far, prompt } => request.with_prompt(so_far, prompt, terms),
            Ask::Again => request.with_limit(terms),
            Ask::Correction { wrong, prompt } => request.with_correction(wrong, prompt, terms),
            Ask::Native { .. } => return None,
        };
        Some(body.into())
    }

    fn reports_usage_unasked(&self) -> bool {
        false
    }

    fn asking_for_usage(&self, request: &Request) -> Option<Vec<u8>> {
        let view = request.view();
        if !view.stream || view.include_usage {
            return None;
        }
        let mut edits = Edits::of(request.root());
        ask_for_usage(request.root(), &mut edits);
        Some(edits.finish())
    }

    fn path_for(&self, _address: &Address, _model: &str, _stream: bool) -> Option<String> {
        None
    }

    fn question(&self, model: &str, text: &str, _limit_tokens: u64) -> String {
        format!(r#"{{"model":{},"messages":[{{"role":"user","content":{}}}]}}"#, quoted(model), quoted(text))
    }

    fn with_model(&self, request: &Request, model: &str) -> Vec<u8> {
        let mut edits = Edits::of(request.root());
        edits.set_field(request.root(), "model", &quoted(model));
        edits.finish()
    }

    fn echoes(&self, request: &Request, so_far: &str) -> Vec<String> {
        ChatRequest::of(request.root()).echoes(so_far)
    }

    fn has_written(&self, root: Value<'_>) -> bool {
        root.field("object").and_then(Value::text).is_some_and(|object| object == "chat.completion")
    }

    fn reply(&self, root: Value<'_>, request: &View) -> Result<Reply, ResponseError> {
        read_reply(root, request.has_stop)
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(ResponseEdit::of(root))
    }

    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        let view = request.view();
        Box::new(ChatStream::answering(&view.model, view.has_stop, keep_bytes))
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

impl Reader for ChatStream {
    fn frame(&mut self, frame: &Frame) -> Result<Event, EventError> {
        ChatStream::frame(self, frame)
    }

    fn received(&self) -> &Received {
        ChatStream::received(self)
    }

    fn fork(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}

impl ReplyEdit for ResponseEdit<'_> {
    fn set_text(&mut self, choice: u32, text: &str) {
        ResponseEdit::set_text(self, choice, text);
    }

    fn set_arguments(&mut self, choice: u32, call: u32, arguments: &str) {
        ResponseEdit::set_arguments(self, choice, call, arguments);
    }

    fn add_calls(&mut self, choice: u32, calls: &[ToolCall]) {
        self.add_tool_calls(choice, calls);
    }

    fn set_end(&mut self, choice: u32, end: End) {
        let word = if end == End::ToolCalls && self.has_legacy_call(choice) {
            "function_call"
        } else {
            word_of(end)
        };
        self.set_finish(choice, word);
        if end != End::Cut {
            self.remove_error(choice);
        }
    }

    fn set_usage(&mut self, usage: &Usage) {
        ResponseEdit::set_usage(self, usage);
    }

    fn set_endmark(&mut self, endmark: &RawValue) {
        ResponseEdit::set_endmark(self, endmark);
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        ResponseEdit::finish(*self)
    }
}

/// The word for an end.
pub(super) fn word_of(end: End) -> &'static str {
    match end {
        End::Turn => "stop",
        End::ToolCalls => "tool_calls",
        End::Cut => "length",
    }
}
