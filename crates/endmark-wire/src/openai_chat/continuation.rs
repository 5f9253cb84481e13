//! Requests for the rest of a cut reply (PC-3, PC-9): the client's own request, edited in place.
//!
//! Everything that a continuation need not change stays byte for byte, including everything before the cut
//! reply, so that the server's prompt cache still matches. All of these requests change the limit, `stream`
//! and `stream_options`. They remove `n` and `logprobs`, because one choice is continued and only its text is
//! joined.

use super::content::text_parts;
use super::format::Chat;
use super::request::{ChatRequest, LimitField, request_usage};
use super::tool_call::call_json;
use crate::ask::{
    Ask, ContinuationRequest, Partial, PrefillVariant, Terms, ToolPrefill, hermes_prefill, quoted_text,
};
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::request::Request;
use crate::wire_format::WireRequestBuilder;

impl WireRequestBuilder for Chat {
    fn continuation(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<ContinuationRequest> {
        let request = ChatRequest::from_value(request.root());
        let body = match ask {
            Ask::Prefill { so_far, variant, tool } => request.with_prefill(so_far, terms, *variant, *tool),
            Ask::Prompt { so_far, prompt } => request.with_prompt(so_far, prompt, terms),
            Ask::Again => request.with_limit(terms),
            Ask::Correction { wrong, prompt } => request.with_correction(wrong, prompt, terms),
            Ask::Native { .. } => return None,
        };
        Some(body.into())
    }

    fn with_usage_request(&self, request: &Request) -> Option<Vec<u8>> {
        let view = request.view();
        if !view.stream || view.include_usage {
            return None;
        }
        let mut edits = Edits::for_document(request.root());
        request_usage(request.root(), &mut edits);
        Some(edits.finish())
    }

    fn question(&self, model: &str, text: &str, _limit_tokens: u64) -> String {
        format!(r#"{{"model":{},"messages":[{{"role":"user","content":{}}}]}}"#, quote(model), quote(text))
    }

    fn echoes(&self, request: &Request, so_far: &str) -> Vec<String> {
        ChatRequest::from_value(request.root()).echoes(so_far)
    }
}

/// Fields that offer tools or choose among them. Servers reject some of them without the others.
const TOOL_FIELDS: [&str; 5] = ["tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"];

/// Fields that force a grammar on the response. They would produce a new document instead of the rest.
const GRAMMAR_FIELDS: [&str; 9] = [
    "response_format",
    "grammar",
    "json_schema",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "prediction",
];

impl ChatRequest {
    /// Asks the server to continue the cut message itself. Tools and grammar stay.
    ///
    /// If the client's own last message is the assistant's, that message is extended, because servers refuse
    /// two consecutive messages of the assistant. The text must not be empty, because llama.cpp treats an
    /// empty last message as absent.
    ///
    /// ```
    /// use endmark_wire::openai_chat::{ChatRequest, Partial, PrefillVariant, Terms, ToolPrefill};
    /// let request = ChatRequest::parse(br#"{"messages":[{"role":"user","content":"Hi"}], "n":2, "max_tokens":3}"#)?;
    /// let terms = Terms { limit: 4096, stream: false, include_usage: false };
    /// let body = request.with_prefill(&Partial::Text("Hello, "), terms, PrefillVariant::Plain, ToolPrefill::Hermes);
    /// let expected = r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello, "}], "max_tokens":4096}"#;
    /// assert_eq!(String::from_utf8(body).unwrap(), expected);
    /// # Ok::<(), endmark_wire::openai_chat::RequestError>(())
    /// ```
    pub fn with_prefill(
        &self,
        so_far: &Partial<'_>,
        terms: Terms,
        variant: PrefillVariant,
        tool: ToolPrefill,
    ) -> Vec<u8> {
        let mut edits = self.apply_terms(terms);
        let (text, calls) = match (so_far, tool) {
            (Partial::Text(text), _) => ((*text).to_owned(), None),
            (Partial::ToolCall { .. }, ToolPrefill::Hermes) => (hermes_prefill(so_far), None),
            (Partial::ToolCall { call, content_before, calls_before }, ToolPrefill::Calls) => {
                let calls: Vec<String> = calls_before.iter().chain([*call]).map(call_json).collect();
                ((*content_before).to_owned(), Some(format!("[{}]", calls.join(","))))
            }
        };
        let mut fields: Vec<(&str, String)> = calls.map(|calls| ("tool_calls", calls)).into_iter().collect();
        match variant {
            PrefillVariant::Plain => {}
            PrefillVariant::ContinueFinalMessage => {
                edits.set_field(self.root(), "continue_final_message", "true");
                edits.set_field(self.root(), "add_generation_prompt", "false");
            }
            PrefillVariant::PrefixFlag => fields.push(("prefix", "true".to_owned())),
            PrefillVariant::PartialFlag => fields.push(("partial", "true".to_owned())),
        }
        self.show(&mut edits, &text, &fields);
        edits.finish()
    }

    /// Returns the texts that an echoing server may send before its continuation: the client's own prefill
    /// and this text. The first text is the plain one. The other has the blank lines that llama.cpp adds
    /// between the parts of a prefill.
    ///
    /// With an empty `so_far`, this is what such a server sends before its first reply to a prefill. Remove
    /// it from the text that becomes a [`Partial`].
    ///
    /// ```
    /// use endmark_wire::openai_chat::ChatRequest;
    /// let request = ChatRequest::parse(br#"{"messages":[{"role":"assistant","content":"The planets "}]}"#)?;
    /// assert_eq!(request.echoes("are "), ["The planets are "]);
    /// # Ok::<(), endmark_wire::openai_chat::RequestError>(())
    /// ```
    pub fn echoes(&self, so_far: &str) -> Vec<String> {
        let content = self.last_assistant().and_then(|message| message.field("content"));
        let parts: Vec<_> = content.into_iter().flat_map(text_parts).filter_map(Value::text).collect();
        let plain = self.prefill.clone().unwrap_or_default();
        let mut echoes = vec![plain, parts.join("\n"), parts.join("\n\n")];
        if parts.len() < 2 {
            echoes.truncate(1);
        }
        for echo in &mut echoes {
            echo.push_str(so_far);
        }
        echoes
    }

    /// Requests the rest with a user message after the cut reply (PC-3).
    ///
    /// A cut tool call is shown as quoted text and not as a call. Servers reject a call without a result, and
    /// a call whose arguments are not JSON. Tools and grammars are removed, so that the response is the rest
    /// as text.
    pub fn with_prompt(&self, so_far: &Partial<'_>, prompt: &str, terms: Terms) -> Vec<u8> {
        let mut edits = self.apply_terms(terms);
        let root = self.root();
        for name in TOOL_FIELDS.into_iter().chain(GRAMMAR_FIELDS) {
            edits.remove_field(root, name);
        }
        self.show_and_ask(&mut edits, &quoted_text(so_far), prompt);
        edits.finish()
    }

    /// Repeats the request with other limits, for a reply that reached its limit before any text arrived
    /// (PC-8 `empty`).
    pub fn with_limit(&self, terms: Terms) -> Vec<u8> {
        self.apply_terms(terms).finish()
    }

    /// Requests a corrected document instead of this one (PC-6). For a text, the grammar stays. Tools are
    /// removed, so that the response is text even for a correction of a tool call's arguments.
    pub fn with_correction(&self, wrong: &Partial<'_>, prompt: &str, terms: Terms) -> Vec<u8> {
        let mut edits = self.apply_terms(terms);
        for name in TOOL_FIELDS {
            edits.remove_field(self.root(), name);
        }
        if matches!(wrong, Partial::ToolCall { .. }) {
            for name in GRAMMAR_FIELDS {
                edits.remove_field(self.root(), name);
            }
        }
        self.show_and_ask(&mut edits, &quoted_text(wrong), prompt);
        edits.finish()
    }

    /// Changes the request to these terms and to a single choice.
    fn apply_terms(&self, terms: Terms) -> Edits<'_> {
        let mut edits = self.edits();
        let root = self.root();
        for name in ["n", "logprobs", "top_logprobs"] {
            edits.remove_field(root, name);
        }
        let fields = [LimitField::MaxCompletionTokens, LimitField::MaxTokens].map(LimitField::name);
        let own = fields.into_iter().filter(|name| root.field(name).is_some_and(|limit| !limit.is_null()));
        let own: Vec<&str> = own.collect();
        for name in if own.is_empty() { &fields[..1] } else { &own } {
            edits.set_field(root, name, &terms.limit.to_string());
        }
        if terms.stream || root.field("stream").is_some() {
            edits.set_field(root, "stream", if terms.stream { "true" } else { "false" });
        }
        match root.field("stream_options") {
            _ if terms.stream && terms.include_usage => request_usage(root, &mut edits),
            Some(options) if terms.stream && self.include_usage => {
                edits.set_field(options, "include_usage", "false");
            }
            Some(_) if !terms.stream => edits.remove_field(root, "stream_options"),
            Some(_) | None => {}
        }
        edits
    }

    /// Appends the model's own text as the last message, with these fields.
    fn show<'a>(&'a self, edits: &mut Edits<'a>, text: &str, fields: &[(&str, String)]) {
        if let Some(message) = self.last_assistant() {
            extend(edits, message, text);
            for (name, json) in fields {
                edits.set_field(message, name, json);
            }
        } else if let Some(messages) = self.root().field("messages") {
            let mut message = format!("{{\"role\":\"assistant\",\"content\":{}", quote(text));
            for (name, json) in fields {
                message.extend([",", &quote(name), ":", json]);
            }
            message.push('}');
            edits.push_item(messages, &message);
        }
    }

    /// Appends the model's own text, and a user message that asks for the rest.
    fn show_and_ask<'a>(&'a self, edits: &mut Edits<'a>, text: &str, prompt: &str) {
        let root = self.root();
        // The client's own prefill fields would be rejected, because the last message is now a user message.
        for name in ["continue_final_message", "add_generation_prompt"] {
            edits.remove_field(root, name);
        }
        if let Some(message) = self.last_assistant() {
            edits.remove_field(message, "prefix");
            edits.remove_field(message, "partial");
        }
        if !text.is_empty() {
            self.show(edits, text, &[]);
        }
        if let Some(messages) = root.field("messages") {
            edits.push_item(messages, &format!("{{\"role\":\"user\",\"content\":{}}}", quote(prompt)));
        }
    }
}

/// Appends this text to a message, in the form of its content.
fn extend<'a>(edits: &mut Edits<'a>, message: Value<'a>, text: &str) {
    let content = message.field("content");
    match content.map(|content| (content, content.kind())) {
        Some((content, Kind::String)) => edits.append_text(content, text),
        Some((content, Kind::Array)) => match text_parts(content).last() {
            Some(part) => edits.append_text(part, text),
            None => edits.push_item(content, &format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))),
        },
        Some((_, Kind::Object | Kind::Number | Kind::Bool | Kind::Null)) | None => {
            edits.set_field(message, "content", &quote(text));
        }
    }
}

#[cfg(test)]
mod tests;
