//! The trait of a wire format: everything that differs between formats.

use std::fmt;

use endmark_context::conversation::{Role, TurnOrder};

use crate::ask::{Ask, ContinuationRequest, Terms};
use crate::closing::LimitLocation;
use crate::conversation::PlacedPart;
use crate::deciding::DecidingField;
use crate::edit::Edits;
use crate::error::{ProviderError, ResponseError};
use crate::json::{Kind, Value, quote};
use crate::own_tool::OwnTool;
use crate::provider::Provider;
use crate::reply::Choice;
use crate::request::{Address, Request, RequestView, Tool};
use crate::response::{Reply, ReplyEdit};
use crate::sse::data_frame;
use crate::stream::Reader;
use crate::writer::Writer;

/// A wire format. Implementations are stateless; the state of a stream is in the reader or writer that they
/// create.
///
/// This trait contains the identity and the addresses of a format. Each supertrait is implemented in the file
/// that does its work.
pub trait WireFormat:
    WireRequest + WireConversation + WireRequestBuilder + WireReply + fmt::Debug + Send + Sync
{
    /// Returns the facts that apply to every request in the format.
    fn facts(&self) -> &'static FormatFacts;

    /// Returns whether a path belongs to this provider only, whether or not it produces replies.
    fn owns_path(&self, path: &str) -> bool;

    /// Parses a path and query. Returns `None` if the path does not belong to this format.
    fn address(&self, path: &str, query: Option<&str>) -> Option<Address>;

    /// See [`Request::path_for`].
    fn path_for(&self, _address: &Address, _model: &str, _stream: bool) -> Option<String> {
        None
    }

    /// See [`Request::path_at_other_upstream`].
    fn path_at_other_upstream(&self, _address: &Address, _model: &str, _stream: bool) -> String {
        self.facts().route.to_owned()
    }

    /// Returns whether a request to this path may continue a stored response. The path itself does not
    /// produce a reply.
    fn may_continue_at(&self, _path: &str) -> bool {
        false
    }

    /// Returns the format's identifier, such as `openai_chat`.
    fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Returns the format's display name.
    fn title(&self) -> &'static str {
        self.facts().title
    }

    /// Returns the provider that defines the format.
    fn provider(&self) -> &'static Provider {
        self.facts().provider
    }
}

/// The facts that apply to every request in a format.
// Fields: one for each fact.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each states a fact by itself")]
pub struct FormatFacts {
    /// See [`WireFormat::name`].
    pub name: &'static str,
    /// See [`WireFormat::title`].
    pub title: &'static str,
    /// See [`WireFormat::provider`].
    pub provider: &'static Provider,
    /// The path of its requests. It contains `{model}` if the path names the model.
    pub route: &'static str,
    /// The operation of a call, as named by the OpenTelemetry conventions (`gen_ai.operation.name`).
    pub operation: &'static str,
    /// Whether every request must set a limit. Such a limit does not show that the client wanted a short
    /// reply.
    pub limit_is_required: bool,
    /// The location of the limit in a request.
    pub limit_location: LimitLocation,
    /// Whether a conversation with tool calls must also offer tools.
    pub calls_need_tools: bool,
    /// Whether client libraries wait for a stream's last event even after the reply has ended.
    pub needs_last_event: bool,
    /// Whether streams of this format report their tokens even if the request does not ask for them.
    pub always_reports_usage: bool,
    /// The header that contains the provider's key, and the prefix of its value.
    pub credential: (&'static str, &'static str),
    /// The fields of a request that decide which model answers and how much it may produce.
    pub deciding_fields: &'static [DecidingField],
    /// A sentence about the required body, for clients that sent something else.
    pub body_hint: &'static str,
    /// The request field that contains the conversation.
    pub conversation_field: &'static str,
    /// The rules for the order of turns.
    pub turn_order: TurnOrder,
    /// Words, at least one of which occurs in any request that contains tool results.
    pub result_keywords: &'static [&'static str],
    /// Words, at least one of which occurs in any request that contains tool calls.
    pub call_keywords: &'static [&'static str],
}

/// Reads requests of a format.
pub trait WireRequest {
    /// Reads the facts about a request that the gateway needs.
    fn view(&self, root: Value<'_>, address: &Address) -> RequestView;

    /// Returns the tools that a request offers.
    fn tools(&self, root: Value<'_>) -> Vec<Tool>;

    /// Returns the list in which a request offers its functions.
    fn function_list<'a>(&self, root: Value<'a>) -> Option<Value<'a>> {
        root.field("tools").filter(|tools| tools.kind() == Kind::Array)
    }

    /// Returns the id of the stored response that a request continues.
    fn previous_response<'a>(&self, _root: Value<'a>) -> Option<Value<'a>> {
        None
    }
}

/// Reads and writes the conversation in a request.
pub trait WireConversation {
    /// Returns the role of a conversation item, or `None` if it cannot be read. Items with the role of the
    /// user may contain tool results.
    fn role(&self, item: Value<'_>) -> Option<Role>;

    /// Returns the role and the parts of a conversation item, or the reason why the item is invalid.
    fn turn<'a>(&self, item: Value<'a>) -> Result<(Role, Vec<PlacedPart<'a>>), &'static str>;

    /// Returns whether a conversation that is not a list, such as a string, is a single turn.
    fn is_single_turn(&self, _conversation: Value<'_>) -> bool {
        false
    }

    /// Returns a user turn with this text.
    fn user_turn(&self, text: &str) -> String;

    /// Returns the turns that contain these tool results. Each result is already in this format.
    fn result_turns(&self, results: Vec<String>) -> Vec<String> {
        results
    }

    /// Returns a placeholder for the missing result of this call.
    fn absent_result(&self, call: Value<'_>, text: &str) -> String;

    /// Returns the result of this call, or the reason why there is no result.
    fn result(&self, call: Value<'_>, text: &str, _is_error: bool) -> String {
        self.absent_result(call, text)
    }

    /// Returns a function as an entry of the list that a request offers.
    fn tool_json(&self, tool: &OwnTool<'_>) -> String;

    /// Returns the content of a response as the conversation items that represent it in the next request.
    fn response_items(&self, root: Value<'_>) -> Vec<String>;

    /// Returns the conversation items that represent a streamed reply in the next request. `events` are the
    /// data of its events, and `choice` is the assembled choice.
    fn stream_items(&self, events: &[Value<'_>], choice: &Choice) -> Vec<String>;

    /// Returns the id of a stored item, if this conversation item is only a reference to one.
    fn reference<'a>(&self, _item: Value<'a>) -> Option<Value<'a>> {
        None
    }
}

/// Builds the requests that Endmark derives from a client's request.
pub trait WireRequestBuilder {
    /// See [`Request::continuation`].
    fn continuation(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<ContinuationRequest>;

    /// See [`Request::with_usage_request`].
    fn with_usage_request(&self, _request: &Request) -> Option<Vec<u8>> {
        None
    }

    /// Returns the body of a request by Endmark itself: a single user turn for this model. In formats whose
    /// path names the model, the body does not contain it. `limit_tokens` is the output limit if the format
    /// requires one.
    fn question(&self, model: &str, text: &str, limit_tokens: u64) -> String;

    /// Returns the body of the request with another model.
    fn with_model(&self, request: &Request, model: &str) -> Vec<u8> {
        let mut edits = Edits::for_document(request.root());
        edits.set_field(request.root(), "model", &quote(model));
        edits.finish()
    }

    /// See [`Request::echoes`].
    fn echoes(&self, request: &Request, so_far: &str) -> Vec<String> {
        vec![request.view().prefill.clone().unwrap_or_default() + so_far]
    }
}

/// Reads and writes responses: whole, streamed, or errors.
pub trait WireReply {
    /// Returns whether a document is a response of this format. A response has fields and values that no
    /// other document has.
    fn recognises(&self, root: Value<'_>) -> bool;

    /// Reads a response.
    fn reply(&self, root: Value<'_>, request: &RequestView) -> Result<Reply, ResponseError>;

    /// Returns an editor for a response.
    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a>;

    /// Returns the items of a response, if its provider stores them and later requests may refer to them by id.
    fn stored_items<'a>(&self, _root: Value<'a>) -> Vec<Value<'a>> {
        Vec::new()
    }

    /// See [`Request::stream`].
    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader>;

    /// See [`Request::writer`].
    fn writer(&self, request: &Request, keep_bytes: usize) -> Box<dyn Writer>;

    /// Returns the error in a body, if there is one.
    fn read_error(&self, root: Value<'_>) -> Option<ProviderError>;

    /// Returns an error body in the provider's shape, so that client libraries raise their own exceptions.
    /// `kind` begins with `endmark_`, and the message states how to resolve the error.
    fn error_body(&self, status: u16, kind: &str, message: &str) -> Vec<u8>;

    /// Returns the same error as the last event of a stream.
    fn error_event(&self, status: u16, kind: &str, message: &str) -> Vec<u8> {
        data_frame(&self.error_body(status, kind, message))
    }
}
