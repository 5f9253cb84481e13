//! What differs between formats.

use std::fmt;

use endmark_context::conversation::{Order, Role};

use crate::ask::{Ask, Asked, Terms};
use crate::closing::LimitPlace;
use crate::conversation::Placed;
use crate::deciding::Deciding;
use crate::edit::Edits;
use crate::error::{ProviderError, ResponseError};
use crate::json::{Kind, Value, quoted};
use crate::own_tool::OwnTool;
use crate::provider::Provider;
use crate::reply::Choice;
use crate::request::{Address, Request, Tool, View};
use crate::response::{Reply, ReplyEdit};
use crate::sse::data_frame;
use crate::stream::Reader;
use crate::writer::Writer;

/// What differs between formats. Its values have no state: that of a stream is in what they make.
///
/// This trait has what a format is and its addresses; its supertraits have the rest, each implemented in the file that does it.
pub trait WireFormat:
    WireRequest + WireConversation + WireAsk + WireReply + fmt::Debug + Send + Sync
{
    /// What is the same for every request.
    fn facts(&self) -> &'static Facts;

    /// Whether a path is one of the provider's alone, be it of replies or not.
    fn owns(&self, path: &str) -> bool;

    /// What this path says, if it is one of the format's.
    fn address(&self, path: &str, query: Option<&str>) -> Option<Address>;

    /// See [`Request::path_for`].
    fn path_for(&self, _address: &Address, _model: &str, _stream: bool) -> Option<String> {
        None
    }

    /// See [`Request::path_elsewhere`].
    fn path_elsewhere(&self, _address: &Address, _model: &str, _stream: bool) -> String {
        self.facts().route.to_owned()
    }

    /// Whether a request to this path, that is for no reply, may go on from a response.
    fn goes_on_in(&self, _path: &str) -> bool {
        false
    }

    /// The literal name, as `openai_chat`.
    fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Its name for people.
    fn title(&self) -> &'static str {
        self.facts().title
    }

    /// The provider that defines it.
    fn provider(&self) -> &'static Provider {
        self.facts().provider
    }
}

/// What is the same for every request in a format.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each states a fact by itself")]
pub struct Facts {
    /// See [`WireFormat::name`].
    pub name: &'static str,
    /// See [`WireFormat::title`].
    pub title: &'static str,
    /// See [`WireFormat::provider`].
    pub provider: &'static Provider,
    /// The path of its requests, with `{model}` where it names one.
    pub route: &'static str,
    /// What a call in it does, in the words of OpenTelemetry's conventions (`gen_ai.operation.name`).
    pub operation: &'static str,
    /// Whether every request has to name a limit, so that one says little of what its client wants.
    pub limit_is_required: bool,
    /// Where a request limits its reply.
    pub limit_place: LimitPlace,
    /// Whether a conversation in which tools were called has to offer tools.
    pub calls_need_tools: bool,
    /// Whether client libraries wait for a stream's last event, whatever came before it.
    pub wants_last_event: bool,
    /// Whether the streams of this format report their tokens, whatever the request says.
    pub reports_usage_unasked: bool,
    /// The header that a key of the provider's stands in, and what stands before it.
    pub credential: (&'static str, &'static str),
    /// The fields of a request that decide which model answers and how much it may produce.
    pub deciding: &'static [Deciding],
    /// What a body has to be, for a client that sent another: a sentence.
    pub hint: &'static str,
    /// The field in which a request has its conversation.
    pub conversation_field: &'static str,
    /// What is demanded of the order of turns.
    pub order: Order,
    /// What stands in a request that has results of tools: one of these, or there is none.
    pub words_of_results: &'static [&'static str],
    /// The same for calls of tools.
    pub words_of_calls: &'static [&'static str],
}

/// What a request says.
pub trait WireRequest {
    /// What a request says.
    fn view(&self, root: Value<'_>, address: &Address) -> View;

    /// The tools a request offers.
    fn tools(&self, root: Value<'_>) -> Vec<Tool>;

    /// The list in which a request has the functions that it offers.
    fn function_list<'a>(&self, root: Value<'a>) -> Option<Value<'a>> {
        root.field("tools").filter(|tools| tools.kind() == Kind::Array)
    }

    /// The id of the response that a request goes on from, where its server is to remember that.
    fn goes_on_from<'a>(&self, _root: Value<'a>) -> Option<Value<'a>> {
        None
    }
}

/// The conversation in a request, and what is added to it.
pub trait WireConversation {
    /// Who speaks in an item of a conversation: results of tools may stand in turns of the user's. None where that cannot be
    /// read.
    fn role(&self, item: Value<'_>) -> Option<Role>;

    /// Who speaks in an item of a conversation, and its parts; what is wrong with it, where it is none.
    fn turn<'a>(&self, item: Value<'a>) -> Result<(Role, Vec<Placed<'a>>), &'static str>;

    /// Whether a conversation that is no list is one turn.
    fn is_turn_alone(&self, _conversation: Value<'_>) -> bool {
        false
    }

    /// A turn of the user's that says this.
    fn user_turn(&self, text: &str) -> String;

    /// The turns that results of tools stand in, which are given as they are written.
    fn result_turns(&self, results: Vec<String>) -> Vec<String> {
        results
    }

    /// What stands in the place of the result of this call.
    fn absent_result(&self, call: Value<'_>, text: &str) -> String;

    /// The result of this call, or why there is none.
    fn result(&self, call: Value<'_>, text: &str, _is_error: bool) -> String {
        self.absent_result(call, text)
    }

    /// A function as it stands in the list of those that a request offers.
    fn written_tool(&self, tool: &OwnTool<'_>) -> String;

    /// What a response says, as the items by which it stands in the conversation that goes on from it.
    fn said(&self, root: Value<'_>) -> Vec<String>;

    /// The same of a stream: the data of its events, and the choice that was received in them.
    fn said_in(&self, events: &[Value<'_>], choice: &Choice) -> Vec<String>;

    /// The id of a stored item that this item of a conversation only refers to.
    fn reference<'a>(&self, _item: Value<'a>) -> Option<Value<'a>> {
        None
    }
}

/// Requests that Endmark makes of a client's request.
pub trait WireAsk {
    /// See [`Request::asking`].
    fn asking(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<Asked>;

    /// See [`Request::asking_for_usage`].
    fn asking_for_usage(&self, _request: &Request) -> Option<Vec<u8>> {
        None
    }

    /// The body of a request of our own: a user's turn alone, for this model, which in some formats the path names. Where the
    /// format demands a limit, it is this one.
    fn question(&self, model: &str, text: &str, limit_tokens: u64) -> String;

    /// The body of the request for another model.
    fn with_model(&self, request: &Request, model: &str) -> Vec<u8> {
        let mut edits = Edits::of(request.root());
        edits.set_field(request.root(), "model", &quoted(model));
        edits.finish()
    }

    /// See [`Request::echoes`].
    fn echoes(&self, request: &Request, so_far: &str) -> Vec<String> {
        vec![request.view().prefill.clone().unwrap_or_default() + so_far]
    }
}

/// What is answered: whole, as a stream, or as an error.
pub trait WireReply {
    /// Whether a document is a response of this format, as its own fields say.
    fn has_written(&self, root: Value<'_>) -> bool;

    /// What a response says.
    fn reply(&self, root: Value<'_>, request: &View) -> Result<Reply, ResponseError>;

    /// Begins to change a response.
    fn edit<'a>(&self, root: Value<'a>) -> Box<dyn ReplyEdit + 'a>;

    /// The items of a response, where its provider stores them and later requests may refer to them by id.
    fn stored_items<'a>(&self, _root: Value<'a>) -> Vec<Value<'a>> {
        Vec::new()
    }

    /// See [`Request::stream`].
    fn reader(&self, request: &Request, keep_bytes: usize) -> Box<dyn Reader>;

    /// See [`Request::writer`].
    fn writer(&self, request: &Request, keep_bytes: usize) -> Box<dyn Writer>;

    /// The error that a body holds, if it holds one.
    fn read_error(&self, root: Value<'_>) -> Option<ProviderError>;

    /// An error's body in the provider's shape, so that client libraries raise their own exceptions; `kind`
    /// begins with `endmark_`, and the message says what to do next.
    fn error_body(&self, status: u16, kind: &str, message: &str) -> Vec<u8>;

    /// The same as the last event of a stream.
    fn error_event(&self, status: u16, kind: &str, message: &str) -> Vec<u8> {
        data_frame(&self.error_body(status, kind, message))
    }
}
