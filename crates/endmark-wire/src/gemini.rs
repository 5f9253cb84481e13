//! Gemini's `generateContent` and `streamGenerateContent` (PC-8, PC-9).
//!
//! The model, and whether a stream is asked for, stand in the path: `/v1` and `/v1beta`, the colon also as
//! `%3A`. A stream is read where it is asked for as server-sent events (`alt=sse`), as every client library
//! does; the other form, one JSON array in pieces, passes untouched.
//!
//! A reply is candidates of parts. Texts that are no thoughts are its text, and `functionCall`s its tool calls:
//! their arguments come as an object and all at once, so that a call is whole or not there. Everything else in
//! a part, signatures of thoughts above all, passes untouched. There is no end of a stream but its last chunk's
//! `finishReason`.
//!
//! Where a reply ends in `CONTINUATION`, or at its limit with a `continuationToken`, the provider itself can go
//! on: the same request with that token (its limit then counts all calls together).

mod address;
mod candidate;
mod continuation;
mod conversation;
mod error;
mod request;
mod response;
mod schema;
mod standing;
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
use crate::own_tool::OwnTool;
use crate::provider::Provider;
use crate::reply::Choice;
use crate::request::{Address, Request, Tool, View};
use crate::response::{Reply, ReplyEdit};
use crate::stream::Reader;
use crate::wire_format::WireFormat;
use crate::writer::Writer;

pub(crate) use usage::read as usage_of;

/// Google, as its Gemini API.
pub const GEMINI: Provider = Provider {
    name: "gemini",
    origin: "https://generativelanguage.googleapis.com",
    base_path: "/v1beta",
    adds_version: true,
    base_url_variable: "GOOGLE_GEMINI_BASE_URL",
    traced_as: "gcp.gemini",
    headers: &["x-goog-api-key", "x-goog-api-client"],
    keys_begin: &["AIza"],
};

/// Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, and the same two at Vertex AI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemini;

impl WireFormat for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn title(&self) -> &'static str {
        "Gemini"
    }

    fn provider(&self) -> &'static Provider {
        &GEMINI
    }

    fn route(&self) -> &'static str {
        "/v1beta/models/{model}:generateContent"
    }

    fn operation(&self) -> &'static str {
        "generate_content"
    }

    fn owns(&self, path: &str) -> bool {
        address::is_gemini(path)
    }

    fn address(&self, path: &str, query: Option<&str>) -> Option<Address> {
        address::read(path, query)
    }

    fn credential(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn limit_place(&self) -> LimitPlace {
        LimitPlace { within: &request::CONFIG, names: &request::MAX_OUTPUT }
    }

    fn deciding(&self) -> &'static [Deciding] {
        fields::GEMINI
    }

    fn hint(&self) -> &'static str {
        "Send an object with `contents`."
    }

    fn view(&self, root: Value<'_>, address: &Address) -> View {
        request::view(root, address)
    }

    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        request::tools(root)
    }

    fn conversation_field(&self) -> &'static str {
        "contents"
    }

    fn order(&self) -> Order {
        conversation::ORDER
    }

    fn words_of_results(&self) -> &'static [&'static str] {
        &["\"functionResponse\"", "\"function_response\""]
    }

    fn words_of_calls(&self) -> &'static [&'static str] {
        &["\"functionCall\"", "\"function_call\""]
    }

    fn role(&self, item: Value<'_>) -> Option<Role> {
        (item.kind() == Kind::Object).then(|| conversation::role_of(item))
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

    fn function_list<'a>(&self, root: Value<'a>) -> Option<Value<'a>> {
        request::function_list(root)
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

    fn path_for(&self, address: &Address, model: &str, stream: bool) -> Option<String> {
        Some(address::write(address, model, stream))
    }

    fn path_elsewhere(&self, address: &Address, model: &str, stream: bool) -> String {
        address::write(&address::elsewhere(address), model, stream)
    }

    fn question(&self, _model: &str, text: &str, _limit_tokens: u64) -> String {
        format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":{}}}]}}]}}"#, quoted(text))
    }

    fn with_model(&self, request: &Request, _model: &str) -> Vec<u8> {
        request.body().to_vec()
    }

    fn echoes(&self, request: &Request, so_far: &str) -> Vec<String> {
        vec![request.view().prefill.clone().unwrap_or_default() + so_far]
    }

    fn has_written(&self, root: Value<'_>) -> bool {
        match root.field("candidates") {
            Some(candidates) => candidates.items().all(|item| item.kind() == Kind::Object),
            // The prompt was refused.
            None => stop::blocked(root).is_some(),
        }
    }

    fn reply(&self, root: Value<'_>, request: &View) -> Result<Reply, ResponseError> {
        response::reply(root, request.has_stop)
    }

    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a> {
        Box::new(response::Edit::new(root))
    }

    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader> {
        Box::new(stream::ContentReader::new(request.view().has_stop, keep_bytes))
    }

    fn writer(&self, request: &Request, _keep_bytes: usize) -> Box<dyn Writer> {
        Box::new(writer::ContentWriter::new(&request.view().model))
    }

    fn read_error(&self, root: Value<'_>) -> Option<ProviderError> {
        error::read(root)
    }

    fn error_body(&self, status: u16, kind: &str, message: &str) -> Vec<u8> {
        format!("{{{}}}", error::field(status, kind, message)).into_bytes()
    }
}
