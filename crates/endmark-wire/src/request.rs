//! A request in any format: the facts that the gateway needs, and the bytes that it forwards.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use endmark_context::conversation::{Content, Role};
use endmark_text::Format;

use crate::ask::{Ask, ContinuationRequest, Terms};
use crate::conversation::EditableText;
use crate::edit::Edits;
use crate::error::{RequestError, ResponseError};
use crate::history::{calls, repair, wants_arguments};
use crate::json::{Kind, Value, quote};
use crate::response::Response;
use crate::stream::Reader;
use crate::wire_format::WireFormat;
use crate::writer::Writer;

/// The facts about a request that are in its path and query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// The part of the path before the model, such as `/v1beta/models/`.
    pub base: String,
    /// The model, if the path names it.
    pub model: Option<String>,
    /// Whether a stream is requested, if the path states it.
    pub stream: Option<bool>,
}

/// The facts about a request that the gateway needs, in any format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the request")]
pub struct RequestView {
    /// The model's name. Empty if the request names no model.
    pub model: String,
    /// Whether the response is to be a stream.
    pub stream: bool,
    /// Whether the end of the stream reports its usage to the client, because the request asks for it or the
    /// format always does.
    pub include_usage: bool,
    /// The client's own limit of output tokens.
    pub limit: Option<u64>,
    /// The field of that limit, such as `max_tokens`.
    pub limit_field: Option<&'static str>,
    /// The number of choices requested, 1 by default.
    pub choices: u32,
    /// Whether the request names stop sequences.
    pub has_stop: bool,
    /// Whether the request offers tools.
    pub has_tools: bool,
    /// The text of an unfinished last message of the assistant, which the reply continues. `None` if empty.
    pub prefill: Option<String>,
    /// The grammar that the text of the reply must match: a JSON mode or schema.
    pub required_format: Option<Format>,
    /// The JSON Schema of that text.
    pub text_schema: Option<String>,
    /// The conversation's name, if the request has one: an id of the provider, or the session that the client
    /// states.
    pub conversation: Option<String>,
    /// Whether the request can only be forwarded, because the response does not contain the reply, or because
    /// it cannot be parsed. The provider then answers or rejects it.
    pub is_pass_through: bool,
}

/// Fields that ask the provider to shorten the conversation, or that refer to a part of it that the provider
/// stores. Each has the value that requests nothing. Anthropic and OpenAI: context management. OpenAI:
/// truncation, and the previous response or conversation. Gemini: cached content.
const PROVIDER_STORAGE_FIELDS: [(&str, Option<&str>); 6] = [
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
/// Only a body that is not a JSON object is an error. A field of the wrong type is treated as absent and
/// forwarded unchanged, so that the provider rejects it itself. If the conversation is missing, the request
/// [is only forwarded](RequestView::is_pass_through).
///
/// Create the readers and writers of its reply with [`Request::response`], [`Request::stream`] and
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
    view: RequestView,
    /// The position of the conversation. It is cached, because finding it requires a scan of the whole body.
    conversation: OnceLock<Option<Range<usize>>>,
}

impl Request {
    /// Reads a request to this address.
    pub fn parse(
        format: &'static dyn WireFormat,
        body: &[u8],
        address: &Address,
    ) -> Result<Self, RequestError> {
        let root = Value::parse(body).map_err(|error| RequestError {
            message: format!("the body is not JSON: {error}"),
            hint: "Send one JSON object, encoded as UTF-8.",
        })?;
        if root.kind() != Kind::Object {
            let message = "the body is not a JSON object".to_owned();
            return Err(RequestError { message, hint: format.facts().body_hint });
        }
        let view = format.view(root, address);
        let (body, root) = (root.document().to_owned(), root.span());
        let conversation = OnceLock::new();
        Ok(Self { format, body, root, address: address.clone(), view, conversation })
    }

    /// Returns its format.
    pub fn format(&self) -> &'static dyn WireFormat {
        self.format
    }

    /// Returns the facts that were read from it.
    pub fn view(&self) -> &RequestView {
        &self.view
    }

    /// Returns its parsed address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the request as its client sent it, byte for byte.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// Returns whether the request may contain tool results. This is a byte search, so `true` can be wrong
    /// but `false` is certain.
    pub fn may_have_results(&self) -> bool {
        let has = |word: &&str| memchr::memmem::find(self.body(), word.as_bytes()).is_some();
        self.format.facts().result_keywords.iter().any(has)
    }

    /// Returns the field because of which only the provider may change the conversation.
    ///
    /// The field asks the provider to shorten the conversation, or continues one that the provider stores.
    /// Returns `None` if the request contains the whole conversation.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let of = |body: &str| Request::parse(found.format, body.as_bytes(), &found.address).unwrap();
    /// assert_eq!(of(r#"{"input":"Hi","previous_response_id":"r1"}"#).provider_storage_field(), Some("previous_response_id"));
    /// assert_eq!(of(r#"{"input":"Hi","truncation":"auto"}"#).provider_storage_field(), Some("truncation"));
    /// assert_eq!(of(r#"{"input":"Hi","truncation":"disabled"}"#).provider_storage_field(), None);
    /// ```
    pub fn provider_storage_field(&self) -> Option<&'static str> {
        let fields: Vec<_> = self.root().fields().collect();
        PROVIDER_STORAGE_FIELDS
            .into_iter()
            .find(|(name, unless)| {
                let given = fields.iter().rfind(|field| field.has_name(name)).map(|field| field.value);
                given.is_some_and(|value| {
                    !value.is_null() && !unless.is_some_and(|word| value.text().as_deref() == Some(word))
                })
            })
            .map(|(name, _)| name)
    }

    /// Returns whether a reply may have several tool calls, which is the default of every provider.
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
        let flag = |path: &str| self.root().at(path).and_then(Value::as_bool);
        flag("parallel_tool_calls") != Some(false)
            && flag("tool_choice.disable_parallel_tool_use") != Some(true)
    }

    /// Returns the number of model replies in the conversation. Consecutive items of the model count as one
    /// reply.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let body = br#"{"input":[{"role":"user","content":"Hi"},{"type":"reasoning","summary":[]},
    ///     {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
    ///     {"type":"function_call_output","call_id":"c","output":"1"}]}"#;
    /// assert_eq!(Request::parse(found.format, body, &found.address)?.reply_count(), 1);
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    pub fn reply_count(&self) -> u32 {
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

    /// Returns the text of the first user turn, which identifies a session.
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

    /// Returns the tools that it offers, in order.
    pub fn tools(&self) -> Vec<Tool> {
        // Finding the tools requires a scan of the whole body.
        if self.view.has_tools { self.format.tools(self.root()) } else { Vec::new() }
    }

    /// Returns the JSON Schema of a tool's arguments, or `None` if the request does not offer the tool.
    pub fn tool_schema(&self, name: &str) -> Option<String> {
        self.tools().into_iter().rfind(|tool| tool.name == name)?.schema
    }

    /// Returns the request with repaired tool calls in its conversation, so that servers can read them, and
    /// the number of repaired calls; see [`repair`]. Returns `None` if every call was readable.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/responses", None).unwrap();
    /// let body = br#"{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a"}]}"#;
    /// let (repaired, calls) = Request::parse(found.format, body, &found.address)?.with_repaired_calls().unwrap();
    /// assert_eq!(calls, 1);
    /// assert!(repaired.with_repaired_calls().is_none());
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    pub fn with_repaired_calls(&self) -> Option<(Self, usize)> {
        let mut edits = Edits::for_document(self.root());
        let mut count = 0;
        let tools = LazyCell::new(|| self.tool_names_with_arguments());
        for (call, slot) in calls(self.format, self.items()) {
            let EditableText::Arguments { value, as_text } = slot else { continue };
            let wants = call.arguments.trim().is_empty() && tools.contains(call.name.as_ref());
            let Some(repaired) = repair(&call.arguments, wants) else { continue };
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

    /// Returns the request for the rest of the reply, or for the complete reply again. Returns `None` if the
    /// format or the content of the reply does not allow this.
    pub fn continuation(&self, ask: &Ask<'_>, terms: Terms) -> Option<ContinuationRequest> {
        self.format.continuation(self, ask, terms)
    }

    /// Returns the body with a request for the token counts of the stream. Returns `None` if the request
    /// already asks for them, or if the format always reports them.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/v1/chat/completions", None).unwrap();
    /// let asking = |body: &str| Request::parse(found.format, body.as_bytes(), &found.address).unwrap().with_usage_request();
    /// let body = asking(r#"{"stream":true, "stream_options":{"x":1}, "messages":[]}"#).unwrap();
    /// assert_eq!(body, br#"{"stream":true, "stream_options":{"x":1,"include_usage":true}, "messages":[]}"#);
    /// assert_eq!(asking(r#"{"stream":true,"stream_options":{"include_usage":true},"messages":[]}"#), None);
    /// assert_eq!(asking(r#"{"messages":[]}"#), None);
    /// ```
    pub fn with_usage_request(&self) -> Option<Vec<u8>> {
        self.format.with_usage_request(self)
    }

    /// Returns the path of a request for this model, streamed or not, including the query that it needs.
    ///
    /// Returns `None` if the path of the format contains neither, so that the request keeps its own path. The
    /// caller appends the other parameters of the client's query.
    pub fn path_for(&self, model: &str, stream: bool) -> Option<String> {
        self.format.path_for(&self.address, model, stream)
    }

    /// Returns the request for another upstream, possibly of another provider.
    ///
    /// The result requests `model` if it is given. Its path is [`Request::path_at_other_upstream`], which
    /// contains no project or deployment of the first upstream. Returns `None` if the model's name does not
    /// fit into a path.
    ///
    /// ```
    /// use endmark_wire::format::find;
    /// use endmark_wire::request::Request;
    /// let found = find("/openai/deployments/mine/chat/completions", None).unwrap();
    /// let request = Request::parse(found.format, br#"{"messages":[]}"#, &found.address)?;
    /// let elsewhere = request.for_other_upstream(Some("larger")).unwrap();
    /// assert_eq!(elsewhere.body(), br#"{"messages":[],"model":"larger"}"#);
    /// assert_eq!(elsewhere.path_at_other_upstream(false), "/v1/chat/completions");
    /// # Ok::<(), endmark_wire::error::RequestError>(())
    /// ```
    pub fn for_other_upstream(&self, model: Option<&str>) -> Option<Self> {
        let view = self.view();
        let path =
            self.format.path_at_other_upstream(&self.address, model.unwrap_or(&view.model), view.stream);
        let (path, query) = path.split_once('?').map_or((&*path, None), |(path, query)| (path, Some(query)));
        let address = self.format.address(path, query)?;
        // If the path named the model, the body may not.
        let is_named = || !self.format.view(self.root(), &address).model.is_empty();
        let named = match model {
            Some(model) => Some(model).filter(|model| *model != view.model || self.address != address),
            None => self.address.model.as_deref().filter(|_| !is_named()),
        };
        let body = named.map_or_else(|| self.body().to_vec(), |model| self.format.with_model(self, model));
        // Changing one string cannot make the request invalid.
        Self::parse(self.format, &body, &address).ok()
    }

    /// Returns a request by Endmark itself to the same upstream: a single user turn for this model, without a stream.
    /// Returns `None` if the model's name does not fit into a path.
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

    /// Returns the path of the same request at another upstream, including the query that it needs. If the
    /// request's own path contains something specific to its host, the result is below `/v1`, which stands
    /// for the base URL of the other upstream.
    pub fn path_at_other_upstream(&self, stream: bool) -> String {
        self.format.path_at_other_upstream(&self.address, &self.view.model, stream)
    }

    /// Returns the texts that an echoing server may send before its continuation of `so_far`, the most likely
    /// first.
    pub fn echoes(&self, so_far: &str) -> Vec<String> {
        self.format.echoes(self, so_far)
    }

    /// Reads a non-streamed response to this request.
    pub fn response(&self, body: &[u8]) -> Result<Response, ResponseError> {
        Response::parse(self, body)
    }

    /// Returns a reader of a streamed response. It stores at most this many bytes of the response.
    pub fn stream(&self, keep_bytes: usize) -> Box<dyn Reader> {
        self.format.reader(self, keep_bytes)
    }

    /// Returns a writer of the client's side of a stream. If the format repeats content, the writer remembers
    /// at most this many bytes of what the client has received.
    pub fn writer(&self, keep_bytes: usize) -> Box<dyn Writer> {
        self.format.writer(self, keep_bytes)
    }

    /// Returns whether the client asks the provider not to store the reply. Later requests then cannot refer
    /// to it.
    pub fn declines_storage(&self) -> bool {
        self.root().field("store").and_then(Value::as_bool) == Some(false)
    }

    /// Returns the ids of the stored items that its conversation refers to.
    pub fn references(&self) -> Vec<String> {
        let ids = self.items().filter_map(|item| self.format.reference(item)?.text());
        ids.map(Into::into).collect()
    }

    /// Returns the request with references to stored items replaced by the complete items, and the number of
    /// replaced references.
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
    pub fn with_items(&self, complete_items: &HashMap<String, String>) -> (Self, usize) {
        let mut edits = Edits::for_document(self.root());
        let mut replaced = 0;
        for item in self.items() {
            let id = self.format.reference(item).and_then(Value::text);
            if let Some(raw) = id.and_then(|id| complete_items.get(id.as_ref())) {
                edits.replace(item, raw);
                replaced += 1;
            }
        }
        let request = Self::parse(self.format, &edits.finish(), &self.address).ok();
        request.map_or_else(|| (self.clone(), 0), |request| (request, replaced))
    }

    /// Returns the id of the stored response that this request continues.
    pub fn previous_response(&self) -> Option<String> {
        self.format.previous_response(self.root()).and_then(Value::text).map(Into::into)
    }

    /// Returns the request as a continuation of another response. A request that continues no response is
    /// unchanged.
    #[must_use]
    pub fn with_previous_response(&self, id: &str) -> Self {
        let Some(own) = self.format.previous_response(self.root()) else { return self.clone() };
        let mut edits = Edits::for_document(self.root());
        edits.replace(own, &quote(id));
        // Changing one string cannot make the request invalid.
        Self::parse(self.format, &edits.finish(), &self.address).unwrap_or_else(|_| self.clone())
    }

    /// Returns the items of the conversation, or its text if it is a single string.
    fn items(&self) -> impl Iterator<Item = Value<'_>> {
        let find = || Some(self.root().field(self.format.facts().conversation_field)?.span());
        let span = self.conversation.get_or_init(find).clone();
        let list = span.map(|span| Value::from_checked(&self.body, span));
        let alone = list.filter(|list| self.format.is_single_turn(*list));
        alone.into_iter().chain(list.into_iter().flat_map(Value::items))
    }

    fn tool_names_with_arguments(&self) -> HashSet<String> {
        let wanting = |tool: Tool| tool.schema.as_deref().is_some_and(wants_arguments).then_some(tool.name);
        self.tools().into_iter().filter_map(wanting).collect()
    }

    /// Returns the body as JSON, without parsing it again.
    pub fn root(&self) -> Value<'_> {
        Value::from_checked(&self.body, self.root.clone())
    }
}
