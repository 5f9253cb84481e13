//! OpenAI Responses, as OpenAI and the servers that follow it speak it (PC-8, PC-9).
//!
//! A reply is one choice, of output items. Its text is that of its messages; its tool calls are its
//! `function_call` and `custom_tool_call` items, counted from 0. Reasoning, tools that the server runs itself, and whatever else an
//! item may be, pass untouched. A call of another kind that the client has to answer, as that of a shell,
//! can only be passed on, and the reply with it.
//!
//! Every piece comes more than once: as it is made, when its part is complete, when its item is complete, and
//! in the response at the end. Whatever repeats a text that goes on has to be held back, and is changed to say
//! all of it. There is no end of a stream but its last event, which tells the status.

mod continuation;
mod conversation;
mod error;
mod item;
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
use crate::json::{Kind, Value, quoted};
use crate::openai_chat::{OPENAI, error_body};
use crate::own_tool::OwnTool;
use crate::provider::Provider;
use crate::reply::Choice;
use crate::request::{Address, Request, Tool, View};
use crate::response::{Reply, ReplyEdit};
use crate::sse::event_frame;
use crate::stream::Reader;
use crate::wire_format::WireFormat;
use crate::writer::Writer;

pub(crate) use usage::read as usage_of;

/// Where OpenAI has it, and where Azure does.
const PATHS: [&str; 3] = ["/v1/responses", "/openai/v1/responses", "/openai/responses"];

/// OpenAI Responses: `POST /v1/responses`, and where Azure has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Responses;

impl WireFormat for Responses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn title(&self) -> &'static str {
        "OpenAI Responses"
    }

    fn provider(&self) -> &'static Provider {
        &OPENAI
    }

    fn route(&self) -> &'static str {
        "/v1/responses"
    }

    fn owns(&self, path: &str) -> bool {
        path.strip_prefix("/v1/responses").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn address(&self, path: &str, _query: Option<&str>) -> Option<Address> {
        PATHS.contains(&path).then(Address::default)
    }

    fn limit_place(&self) -> LimitPlace {
        LimitPlace { within: &[], names: &["max_output_tokens"] }
    }

    fn deciding(&self) -> &'static [Deciding] {
        fields::RESPONSES
    }

    fn hint(&self) -> &'static str {
        "Send an object with `model` and `input`."
    }

    fn view(&self, root: Value<'_>, _address: &Address) -> View {
        request::view(root)
    }

    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        request::tools(root)
    }

    fn reference<'a>(&self, item: Value<'a>) -> Option<Value<'a>> {
        conversation::reference(item)
    }

    fn stored_items<'a>(&self, root: Value<'a>) -> Vec<Value<'a>> {
        root.field("output").into_iter().flat_map(Value::items).collect()
    }

    fn goes_on_from<'a>(&self, root: Value<'a>) -> Option<Value<'a>> {
        root.filled("previous_response_id").filter(|id| id.kind() == Kind::String)
    }

    fn goes_on_in(&self, path: &str) -> bool {
        let below = PATHS.into_iter().find_map(|of_replies| path.strip_prefix(of_replies));
        matches!(below, Some("/input_tokens" | "/compact"))
    }

    fn conversation_field(&self) -> &'static str {
        "input"
    }

    fn is_turn_alone(&self, conversation: Value<'_>) -> bool {
        conversation.kind() == Kind::String
    }

    fn order(&self) -> Order {
        conversation::ORDER
    }

    fn words_of_results(&self) -> &'static [&'static str] {
        &["_output\""]
    }

    fn words_of_calls(&self) -> &'static [&'static str] {
        &["\"function_call\""]
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

    fn said_in(&self, events: &[Value<'_>], _choice: &Choice) -> Vec<String> {
        conversation::said_in(events)
    }

    fn asking(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<Asked> {
        continuation::asking(request, ask, terms)
    }

    fn path_for(&self, _address: &Address, _model: &str, _stream: bool) -> Option<String> {
        None
    }

    fn question(&self, model: &str, text: &str, _limit_tokens: u64) -> String {
        format!(r#"{{"model":{},"input":{},"store":false}}"#, quoted(model), quoted(text))
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
        root.field("object").and_then(Value::text).is_some_and(|object| object == "response")
    }

    fn reply(&self, root: Value<'_>, request: &View) -> Result<Reply, ResponseError> {
        response::reply(root, request.has_stop)
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(response::Edit::new(root))
    }

    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        Box::new(stream::ResponseReader::new(request.view().has_stop, keep_bytes))
    }

    fn writer(&self, request: &Request, keep_bytes: usize) -> Box<dyn Writer> {
        Box::new(writer::ResponseWriter::new(&request.view().model, keep_bytes))
    }

    fn read_error(&self, root: Value<'_>) -> Option<ProviderError> {
        error::read(root)
    }

    fn error_body(&self, _status: u16, kind: &str, message: &str) -> Vec<u8> {
        error_body(message, kind, None, None)
    }

    fn error_event(&self, _status: u16, kind: &str, message: &str) -> Vec<u8> {
        event_frame("error", error::event(kind, message, "").as_bytes())
    }
}
