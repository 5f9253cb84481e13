//! A request in any format: what the gateway has to know of it, and the bytes it goes on with.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use endmark_context::conversation::{Content, Role};
use endmark_text::Format;

use crate::ask::{Ask, Asked, Terms};
use crate::conversation::Slot;
use crate::edit::Edits;
use crate::error::{RequestError, ResponseError};
use crate::history::{calls, repaired, wants_arguments};
use crate::json::{Kind, Value, quoted};
use crate::response::Response;
use crate::stream::Reader;
use crate::wire_format::WireFormat;
use crate::writer::Writer;

/// What a request's address says of it, where the body does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// What stands before the model in the path, as `/v1beta/models/`.
    pub base: String,
    /// The model, where it stands in the path.
    pub model: Option<String>,
    /// Whether a stream is asked for, where the path says so.
    pub stream: Option<bool>,
}

/// What the gateway has to know of a request, whatever its format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the request")]
pub struct View {
    /// The model's name; empty where the request names none.
    pub model: String,
    /// Whether the answer is to be a stream.
    pub stream: bool,
    /// Whether the end of a stream tells the client its usage, since it asked for it or since it always does.
    pub include_usage: bool,
    /// The client's own limit of output tokens.
    pub limit: Option<u64>,
    /// Where that limit stands, as `max_tokens`.
    pub limit_field: Option<&'static str>,
    /// How many choices are asked for, 1 by default.
    pub choices: u32,
    /// Whether the request names stop sequences.
    pub has_stop: bool,
    /// Whether the request offers tools.
    pub has_tools: bool,
    /// The text of an unfinished last message of the assistant, which the reply goes on from; none if empty.
    pub prefill: Option<String>,
    /// The grammar that the text of the reply must have: a JSON mode or schema.
    pub demanded: Option<Format>,
    /// The JSON Schema of that text.
    pub text_schema: Option<String>,
    /// The conversation's name, where the request has one: its provider's own, or the session that the client says it is.
    pub conversation: Option<String>,
    /// The reply does not come as the answer to this request, or what it asks cannot be read: it can only pass, and is
    /// answered by the provider in its own words.
    pub only_passes: bool,
}

/// Fields by which a request asks its provider to shorten the conversation, or says that the provider keeps some of it,
/// each with the word by which it asks for nothing (Anthropic and OpenAI: context management; OpenAI: truncation, the
/// response or conversation before; Gemini: cached content).
const KEPT_BY_PROVIDER: [(&str, Option<&str>); 6] = [
    ("context_management", None),
    ("truncation", Some("disabled")),
    ("previous_response_id", None),
    ("conversation", None),
    ("cachedContent", None),
    ("cached_content", None),
];

/// A tool that a request offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The JSON Schema of its arguments, if it has one.
    pub schema: Option<String>,
}

/// A request as its client sent it, in any format (PC-9): a view, and the bytes themselves.
///
/// Only what is no JSON object is an error. A field of a wrong kind counts as not there, and goes upstream as it is,
/// where it is refused in the provider's own words; where what is missing is the conversation itself, the request
/// [only passes](View::only_passes).
///
/// What answers it is read by what it gives: its [`Request::response`], [`Request::stream`] and
/// [`Request::writer`], so that formats cannot be mixed.
///
/// ```
/// use endmark_wire::format::find;
/// use endmark_wire::request::Request;
/// let found = find("/v1/messages", None).unwrap();
/// let body = br#"{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"Hi"}]}"#;
/// let request = Request::parse(found.format, body, &found.address)?;
/// assert_eq!((request.view().model.as_str(), request.view().limit), ("m", Some(20)));
/// assert_eq!(request.body(), body);
/// # Ok::<(), endmark_wire::error::RequestError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Request {
    format: &'static dyn WireFormat,
    body: String,
    root: Range<usize>,
    address: Address,
    view: View,
    /// Where the conversation stands: to find it is to pass over the whole body.
    conversation: OnceLock<Option<Range<usize>>>,
}

impl Request {
    /// Reads a request that came to this address.
    pub fn parse(
        format: &'static dyn WireFormat,
        body: &[u8],
        address: &Address,
    ) -> Result<Self, RequestError> {
        let root = Value::parse(body).map_err(|error| RequestError {
            message: format!("the body is no JSON: {error}"),
            hint: "Send one JSON object, encoded as UTF-8.",
        })?;
        if root.kind() != Kind::Object {
            let message = "the body is no JSON object".to_owned();
            return Err(RequestError { message, hint: format.facts().hint });
        }
        let view = format.view(root, address);
        let (body, root) = (root.document().to_owned(), root.span());
        let conversation = OnceLock::new();
        Ok(Self { format, body, root, address: address.clone(), view, conversation })
    }

    /// Its format.
    pub fn format(&self) -> &'static dyn WireFormat {
        self.format
    }

    /// What it says.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What its address says.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The request as its client sent it, byte for byte.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// Whether results of tools may stand in it: a look at its bytes, which is never wrong where it says no.
    pub fn may_have_results(&self) -> bool {
        let has = |word: &&str| memchr::memmem::find(self.body(), word.as_bytes()).is_some();
        self.format.facts().words_of_results.iter().any(has)
    }

    /// Why its conversation is not to be changed by anybody else: it asks its provider to shorten it, or only goes on from
    /// what the provider keeps of it. None where all of it is in the request.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let of = |body: &str| Request::parse(found.format, body.as_bytes(), &found.address).unwrap();
    /// assert_eq!(of(r#"{"input":"Hi","previous_response_id":"r1"}"#).kept_by_provider(), Some("previous_response_id"));
    /// assert_eq!(of(r#"{"input":"Hi","truncation":"auto"}"#).kept_by_provider(), Some("truncation"));
    /// assert_eq!(of(r#"{"input":"Hi","truncation":"disabled"}"#).kept_by_provider(), None);
    /// ```
    pub fn kept_by_provider(&self) -> Option<&'static str> {
        let fields: Vec<_> = self.root().fields().collect();
        KEPT_BY_PROVIDER
            .into_iter()
            .find(|(name, unless)| {
                let given = fields.iter().rfind(|field| field.is(name)).map(|field| field.value);
                given.is_some_and(|value| {
                    !value.is_null() && !unless.is_some_and(|word| value.text().as_deref() == Some(word))
                })
            })
            .map(|(name, _)| name)
    }

    /// Whether a reply to it may have several tool calls, which is the default of every provider.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let request = |body: &str| Request::parse(found.format, body.as_bytes(), &found.address).unwrap();
    /// assert!(request(r#"{"input":"Hi"}"#).allows_parallel_calls());
    /// assert!(!request(r#"{"input":"Hi","parallel_tool_calls":false}"#).allows_parallel_calls());
    /// ```
    pub fn allows_parallel_calls(&self) -> bool {
        let says = |path: &str| self.root().at(path).and_then(Value::as_bool);
        says("parallel_tool_calls") != Some(false)
            && says("tool_choice.disable_parallel_tool_use") != Some(true)
    }

    /// How many replies of the model stand in its conversation. A reply is all that the model says and calls until
    /// somebody else speaks, in however many items that is written.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let body = br#"{"input":[{"role":"user","content":"Hi"},{"type":"reasoning","summary":[]},
    ///     {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
    ///     {"type":"function_call_output","call_id":"c","output":"1"}]}"#;
    /// assert_eq!(Request::parse(found.format, body, &found.address)?.replies(), 1);
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    pub fn replies(&self) -> u32 {
        let mut replies = 0_u32;
        let mut before = None;
        for item in self.items() {
            let role = self.format.role(item);
            let begins = role == Some(Role::Assistant) && before != role;
            replies = replies.saturating_add(u32::from(begins));
            before = role;
        }
        replies
    }

    /// The text of the first turn of the user's, by which a session can be recognised.
    pub fn first_user_text(&self) -> Option<String> {
        let is_of_user = |item: &Value<'_>| self.format.role(*item) == Some(Role::User);
        let first = self.items().find(is_of_user)?;
        let (_, parts) = self.format.turn(first).ok()?;
        let texts = parts.into_iter().filter_map(|part| match part.content {
            Content::Text(text) => Some(text),
            _ => None,
        });
        Some(texts.collect())
    }

    /// The tools it offers, in their order.
    pub fn tools(&self) -> Vec<Tool> {
        // Whoever looks for them has to walk over the whole conversation.
        if self.view.has_tools { self.format.tools(self.root()) } else { Vec::new() }
    }

    /// The JSON Schema of a tool's arguments; none for a tool the request does not name.
    pub fn tool_schema(&self, name: &str) -> Option<String> {
        self.tools().into_iter().rfind(|tool| tool.name == name)?.schema
    }

    /// The request with every call in its conversation in a form that servers can read, and how many had none; see
    /// [`repaired`]. None where all had.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let body = br#"{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a"}]}"#;
    /// let (repaired, calls) = Request::parse(found.format, body, &found.address)?.repaired().unwrap();
    /// assert_eq!(calls, 1);
    /// assert!(repaired.repaired().is_none());
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    pub fn repaired(&self) -> Option<(Self, usize)> {
        let mut edits = Edits::of(self.root());
        let mut count = 0;
        let tools = LazyCell::new(|| self.names_of_tools_with_arguments());
        for (call, slot) in calls(self.format, self.items()) {
            let Slot::Arguments { value, as_text } = slot else { continue };
            let wants = call.arguments.trim().is_empty() && tools.contains(call.name.as_ref());
            let Some(repaired) = repaired(&call.arguments, wants) else { continue };
            if as_text {
                edits.set_text(value, &repaired);
            } else {
                edits.replace(value, &repaired);
            }
            count += 1;
        }
        if count == 0 {
            return None;
        }
        let repaired = Self::parse(self.format, &edits.finish(), &self.address).ok()?;
        Some((repaired, count))
    }

    /// The request that asks for the rest of its reply, or for it anew; none where its format, or what it
    /// says, does not allow to ask so.
    pub fn asking(&self, ask: &Ask<'_>, terms: Terms) -> Option<Asked> {
        self.format.asking(self, ask, terms)
    }

    /// The body that also asks for the tokens of the stream; none where the request asks for them itself, or its format
    /// reports them anyway.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/chat/completions", None).unwrap();
    /// let asking = |body: &str| Request::parse(found.format, body.as_bytes(), &found.address).unwrap().asking_for_usage();
    /// let body = asking(r#"{"stream":true, "stream_options":{"x":1}, "messages":[]}"#).unwrap();
    /// assert_eq!(body, br#"{"stream":true, "stream_options":{"x":1,"include_usage":true}, "messages":[]}"#);
    /// assert_eq!(asking(r#"{"stream":true,"stream_options":{"include_usage":true},"messages":[]}"#), None);
    /// assert_eq!(asking(r#"{"messages":[]}"#), None);
    /// ```
    pub fn asking_for_usage(&self) -> Option<Vec<u8>> {
        self.format.asking_for_usage(self)
    }

    /// The path of a request for this model and a stream or none, with the query that it takes; none where the
    /// address says nothing of them, and the request's own path stays. Whatever else the client's query says
    /// belongs behind it.
    pub fn path_for(&self, model: &str, stream: bool) -> Option<String> {
        self.format.path_for(&self.address, model, stream)
    }

    /// The request as another upstream takes it, that may be another provider's: for a model that it has, where one is
    /// given, and at [`Request::path_elsewhere`], so that no project or deployment of the first is named there. None
    /// where no path can be made of the model's name.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/openai/deployments/mine/chat/completions", None).unwrap();
    /// let request = Request::parse(found.format, br#"{"messages":[]}"#, &found.address)?;
    /// let elsewhere = request.elsewhere(Some("larger")).unwrap();
    /// assert_eq!(elsewhere.body(), br#"{"messages":[],"model":"larger"}"#);
    /// assert_eq!(elsewhere.path_elsewhere(false), "/v1/chat/completions");
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    pub fn elsewhere(&self, model: Option<&str>) -> Option<Self> {
        let view = self.view();
        let path = self.format.path_elsewhere(&self.address, model.unwrap_or(&view.model), view.stream);
        let (path, query) = path.split_once('?').map_or((&*path, None), |(path, query)| (path, Some(query)));
        let address = self.format.address(path, query)?;
        // Where the path named the model, the body need not have.
        let is_named = || !self.format.view(self.root(), &address).model.is_empty();
        let named = match model {
            Some(model) => Some(model).filter(|model| *model != view.model || self.address != address),
            None => self.address.model.as_deref().filter(|_| !is_named()),
        };
        let body = named.map_or_else(|| self.body().to_vec(), |model| self.format.with_model(self, model));
        // What was a request stays one with another string in it.
        Self::parse(self.format, &body, &address).ok()
    }

    /// A request of our own at the same upstream: a user's turn alone, for this model, not streamed. None where no path can be
    /// made of the model's name.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/messages", None).unwrap();
    /// let request = Request::parse(found.format, br#"{"model":"large","max_tokens":9,"stream":true,"messages":[]}"#, &found.address)?;
    /// let own = request.question("small", "What happened?", 4096).unwrap();
    /// assert_eq!(own.body(), br#"{"model":"small","max_tokens":4096,"messages":[{"role":"user","content":"What happened?"}]}"#);
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    pub fn question(&self, model: &str, text: &str, limit_tokens: u64) -> Option<Self> {
        let address = match self.format.path_for(&self.address, model, false) {
            Some(path) => {
                let (path, query) =
                    path.split_once('?').map_or((&*path, None), |(path, query)| (path, Some(query)));
                self.format.address(path, query)?
            }
            None => self.address.clone(),
        };
        let body = self.format.question(model, text, limit_tokens);
        Self::parse(self.format, body.as_bytes(), &address).ok()
    }

    /// The path of the same request at another upstream, with the query that it takes: below `/v1`, which stands for the
    /// base URL there, wherever the request's own path names what its host alone has.
    pub fn path_elsewhere(&self, stream: bool) -> String {
        self.format.path_elsewhere(&self.address, &self.view.model, stream)
    }

    /// What a server that echoes puts before its continuation of this text; the likeliest first.
    pub fn echoes(&self, so_far: &str) -> Vec<String> {
        self.format.echoes(self, so_far)
    }

    /// Reads a response to it that is not streamed.
    pub fn response(&self, body: &[u8]) -> Result<Response, ResponseError> {
        Response::parse(self, body)
    }

    /// Reads a streamed answer to it, and keeps at most this many bytes of it.
    pub fn stream(&self, keep_bytes: usize) -> Box<dyn Reader> {
        self.format.reader(self, keep_bytes)
    }

    /// Writes the client's side of a stream; remembers at most this many bytes of what the client has, where
    /// the format says things twice.
    pub fn writer(&self, keep_bytes: usize) -> Box<dyn Writer> {
        self.format.writer(self, keep_bytes)
    }

    /// Whether the client asks the provider not to store the reply. No later request can refer to it then.
    pub fn declines_storage(&self) -> bool {
        self.root().field("store").and_then(Value::as_bool) == Some(false)
    }

    /// The ids of the stored items that its conversation refers to.
    pub fn references(&self) -> Vec<String> {
        let ids = self.items().filter_map(|item| self.format.reference(item)?.text());
        ids.map(Into::into).collect()
    }

    /// The request with whole items instead of references to them, by id, and how many were replaced.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let body = br#"{"input":[{"type":"item_reference","id":"fc_1"},{"id":"rs_1"}]}"#;
    /// let request = Request::parse(found.format, body, &found.address)?;
    /// assert_eq!(request.references(), ["fc_1", "rs_1"]);
    /// let items = [("fc_1".to_owned(), r#"{"id":"fc_1","type":"function_call"}"#.to_owned())].into();
    /// let (whole, replaced) = request.with_items(&items);
    /// assert_eq!(whole.body(), br#"{"input":[{"id":"fc_1","type":"function_call"},{"id":"rs_1"}]}"#);
    /// assert_eq!(replaced, 1);
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    #[must_use]
    pub fn with_items(&self, whole: &HashMap<String, String>) -> (Self, usize) {
        let mut edits = Edits::of(self.root());
        let mut replaced = 0;
        for item in self.items() {
            let id = self.format.reference(item).and_then(Value::text);
            if let Some(raw) = id.and_then(|id| whole.get(id.as_ref())) {
                edits.replace(item, raw);
                replaced += 1;
            }
        }
        let request = Self::parse(self.format, &edits.finish(), &self.address).ok();
        request.map_or_else(|| (self.clone(), 0), |request| (request, replaced))
    }

    /// The id of the response that the request goes on from, where its server is to remember that.
    pub fn goes_on_from(&self) -> Option<String> {
        self.format.goes_on_from(self.root()).and_then(Value::text).map(Into::into)
    }

    /// The request that goes on from another response; one that goes on from none stays as it is.
    #[must_use]
    pub fn going_on_from(&self, id: &str) -> Self {
        let Some(own) = self.format.goes_on_from(self.root()) else { return self.clone() };
        let mut edits = Edits::of(self.root());
        edits.replace(own, &quoted(id));
        // What was a request stays one with another string in it.
        Self::parse(self.format, &edits.finish(), &self.address).unwrap_or_else(|_| self.clone())
    }

    /// The items of its conversation, or the text that is its only one.
    fn items(&self) -> impl Iterator<Item = Value<'_>> {
        let find = || Some(self.root().field(self.format.facts().conversation_field)?.span());
        let span = self.conversation.get_or_init(find).clone();
        let list = span.map(|span| Value::checked_before(&self.body, span));
        let alone = list.filter(|list| self.format.is_turn_alone(*list));
        alone.into_iter().chain(list.into_iter().flat_map(Value::items))
    }

    fn names_of_tools_with_arguments(&self) -> HashSet<String> {
        let wanting = |tool: Tool| tool.schema.as_deref().is_some_and(wants_arguments).then_some(tool.name);
        self.tools().into_iter().filter_map(wanting).collect()
    }

    /// Returns the body as JSON, without parsing it again.
    pub fn root(&self) -> Value<'_> {
        Value::checked_before(&self.body, self.root.clone())
    }
}
