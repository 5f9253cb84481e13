//! A view of a Chat Completions request: the facts that the gateway needs, and the bytes that it forwards.

use std::ops::Range;

use endmark_text::Format;

use super::content::content_text;
use super::format::Chat;
use crate::edit::Edits;
use crate::error::RequestError;
use crate::json::{Fields, Kind, Value, quote};
use crate::request::{Address, RequestView, Tool};
use crate::wire_format::WireRequest;

impl WireRequest for Chat {
    fn view(&self, root: Value<'_>, address: &Address) -> RequestView {
        let mut view = view(root);
        if let Some(deployment) = &address.model {
            deployment.clone_into(&mut view.model);
        }
        view
    }

    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        let tools = functions(root).filter_map(|function| {
            let schema = function.field("parameters").and_then(|schema| schema.as_kind(Kind::Object));
            Some(Tool {
                name: function.non_empty_text("name")?,
                schema: schema.map(|schema| schema.raw().to_owned()),
            })
        });
        tools.collect()
    }
}

/// The fields that limit a reply's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitField {
    /// `max_completion_tokens`, which takes precedence if both are present.
    MaxCompletionTokens,
    /// `max_tokens`, the older name.
    MaxTokens,
}

impl LimitField {
    /// Returns the field's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxTokens => "max_tokens",
        }
    }
}

/// A request as its client sent it (PC-9): a view, and the bytes themselves.
///
/// Only a body that is not a JSON object is an error. A field of the wrong type is treated as absent and forwarded
/// unchanged, so that the provider rejects it itself.
///
/// ```
/// use endmark_wire::openai_chat::ChatRequest;
/// let body = br#"{"model":"m","max_tokens":20,"stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
/// let request = ChatRequest::parse(body)?;
/// assert_eq!((request.model.as_str(), request.stream, request.limit), ("m", true, Some(20)));
/// assert_eq!(request.body(), body);
/// # Ok::<(), endmark_wire::openai_chat::RequestError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to the request")]
pub struct ChatRequest {
    body: String,
    root: Range<usize>,
    /// The model's name. Empty if the request names no model.
    pub model: String,
    /// Whether the response is to be a stream.
    pub stream: bool,
    /// Whether the client asked for usage at the end of its stream.
    pub include_usage: bool,
    /// The client's own limit of output tokens.
    pub limit: Option<u64>,
    /// The field of that limit.
    pub limit_field: Option<LimitField>,
    /// The number of choices requested (`n`), 1 by default.
    pub choices: u32,
    /// Whether the request names stop sequences.
    pub has_stop: bool,
    /// Whether the request offers tools.
    pub has_tools: bool,
    /// The text of an unfinished last message of the assistant, which the reply continues. `None` if empty.
    pub prefill: Option<String>,
    /// The grammar that the text of the reply must match: a JSON mode or schema.
    pub required_format: Option<Format>,
    /// The JSON Schema of that text, as written.
    pub text_schema: Option<String>,
}

impl ChatRequest {
    /// Reads a request.
    pub fn parse(body: &[u8]) -> Result<Self, RequestError> {
        let root = Value::parse(body).map_err(|error| RequestError {
            message: format!("the body is not JSON: {error}"),
            hint: "Send one JSON object, encoded as UTF-8.",
        })?;
        if root.kind() != Kind::Object {
            let message = "the body is not a JSON object".to_owned();
            return Err(RequestError { message, hint: "Send an object with `model` and `messages`." });
        }
        Ok(Self::from_value(root))
    }

    /// Reads a request from this object.
    pub(super) fn from_value(root: Value<'_>) -> Self {
        let view = view(root);
        Self {
            body: root.document().to_owned(),
            root: root.span(),
            limit_field: read_limit(&Fields::new(root)).map(|(field, _)| field),
            model: view.model,
            stream: view.stream,
            include_usage: view.include_usage,
            limit: view.limit,
            choices: view.choices,
            has_stop: view.has_stop,
            has_tools: view.has_tools,
            prefill: view.prefill,
            required_format: view.required_format,
            text_schema: view.text_schema,
        }
    }

    /// Returns the request as its client sent it, byte for byte.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// Returns the JSON Schema of a tool's arguments, as written, or `None` if the request does not offer the
    /// tool.
    pub fn tool_schema(&self, name: &str) -> Option<String> {
        let parameters = self
            .functions()
            .filter(|function| text_or_empty(*function, "name") == name)
            .last()?
            .field("parameters")?;
        (parameters.kind() == Kind::Object).then(|| parameters.raw().to_owned())
    }

    /// Returns the names of the tools that the request offers, in order.
    pub fn tool_names(&self) -> Vec<String> {
        self.functions().map(|function| text_or_empty(function, "name")).collect()
    }

    /// Returns the request with another model, for an upstream that lacks the requested one.
    ///
    /// ```
    /// use endmark_wire::openai_chat::ChatRequest;
    /// let request = ChatRequest::parse(br#"{"model":"m", "messages":[]}"#)?;
    /// assert_eq!(request.for_model("larger").body(), br#"{"model":"larger", "messages":[]}"#);
    /// # Ok::<(), endmark_wire::openai_chat::RequestError>(())
    /// ```
    #[must_use]
    pub fn for_model(&self, model: &str) -> Self {
        let mut edits = self.edits();
        edits.set_field(self.root(), "model", &quote(model));
        // Changing one string cannot make the request invalid.
        Self::parse(&edits.finish()).unwrap_or_else(|_| self.clone())
    }

    pub(super) fn root(&self) -> Value<'_> {
        Value::from_checked(&self.body, self.root.clone())
    }

    pub(super) fn edits(&self) -> Edits<'_> {
        Edits::for_document(self.root())
    }

    /// Returns the last message, if the assistant wrote it and it is unfinished.
    pub(super) fn last_assistant(&self) -> Option<Value<'_>> {
        let last = self.root().field("messages")?.items().last()?;
        is_unfinished(&text_or_empty(last, "role"), last).then_some(last)
    }

    fn functions(&self) -> impl Iterator<Item = Value<'_>> {
        functions(self.root())
    }
}

/// Adds a request for the stream's usage. Other `stream_options` stay.
pub(crate) fn request_usage<'a>(root: Value<'a>, edits: &mut Edits<'a>) {
    match root.field("stream_options").filter(|options| options.kind() == Kind::Object) {
        Some(options) => edits.set_field(options, "include_usage", "true"),
        None => edits.set_field(root, "stream_options", "{\"include_usage\":true}"),
    }
}

/// Returns the functions that a request offers, in order.
pub(super) fn functions(root: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let tools = root.field("tools").into_iter().flat_map(Value::items);
    let legacy = root.field("functions").into_iter().flat_map(Value::items);
    tools.filter_map(|tool| tool.field("function")).chain(legacy)
}

/// Reads the facts about a request that the gateway needs.
pub(super) fn view(root: Value<'_>) -> RequestView {
    let fields = Fields::new(root);
    let messages = fields.get("messages").filter(|messages| messages.kind() == Kind::Array);
    let only_passes = messages.is_none();
    let message_text =
        |message: Value<'_>| content_text(message.field("content")?).map(|content| content.text);
    let last = messages.and_then(|messages| messages.items().last());
    let last = last.filter(|message| is_unfinished(&text_or_empty(*message, "role"), *message));

    let limit = read_limit(&fields);
    let non_empty = |name: &str| fields.get(name).is_some_and(|value| !is_empty(value));
    let stream = fields.get("stream").and_then(Value::as_bool).unwrap_or(false);
    let asks_for_usage =
        fields.get("stream_options").and_then(|options| options.field("include_usage")?.as_bool());
    let response_format = fields.get("response_format").map(Fields::new);
    let format = response_format.as_ref().and_then(|format| format.get("type")?.text());
    let schema = response_format.as_ref().and_then(|format| {
        format.get("json_schema").and_then(|named| named.field("schema")).or_else(|| format.get("schema"))
    });
    RequestView {
        model: fields.get("model").and_then(Value::text).unwrap_or_default().into_owned(),
        stream,
        include_usage: stream && asks_for_usage == Some(true),
        limit: limit.map(|(_, limit)| limit),
        limit_field: limit.map(|(field, _)| field.name()),
        choices: fields
            .get("n")
            .and_then(Value::as_u64)
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(1)
            .max(1),
        has_stop: non_empty("stop") || non_empty("stop_token_ids"),
        has_tools: non_empty("tools") || non_empty("functions"),
        prefill: last.and_then(message_text).filter(|text| !text.is_empty()),
        required_format: matches!(format.as_deref(), Some("json_object" | "json_schema"))
            .then_some(Format::Json),
        text_schema: schema
            .filter(|schema| schema.kind() == Kind::Object)
            .map(|schema| schema.raw().to_owned()),
        conversation: None,
        is_pass_through: only_passes,
    }
}

fn read_limit(fields: &Fields<'_>) -> Option<(LimitField, u64)> {
    let limit_in = |field: LimitField| Some((field, fields.get(field.name())?.as_u64()?));
    limit_in(LimitField::MaxCompletionTokens).or_else(|| limit_in(LimitField::MaxTokens))
}

/// Returns whether a reply continues this last message, because the assistant wrote it and it is not a tool
/// call.
fn is_unfinished(role: &str, message: Value<'_>) -> bool {
    let calls = || {
        ["tool_calls", "function_call"]
            .iter()
            .any(|name| message.field(name).is_some_and(|call| !is_empty(call)))
    };
    role == "assistant" && !calls()
}

fn text_or_empty(object: Value<'_>, name: &str) -> String {
    object.field(name).and_then(Value::text).map(std::borrow::Cow::into_owned).unwrap_or_default()
}

/// Returns whether a value is empty: null, an empty string, or an empty array.
fn is_empty(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => true,
        Kind::String => value.raw().len() == 2,
        Kind::Array => value.items().next().is_none(),
        Kind::Object | Kind::Number | Kind::Bool => false,
    }
}

#[cfg(test)]
mod tests;
