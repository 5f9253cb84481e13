//! Requests for the rest of a cut reply (PC-3, PC-9): the client's own request, edited in place.
//!
//! The client's request stays byte for byte, except for the limit, `stream`, and fields that would prevent
//! the rest from arriving as text. If the conversation contains tool calls, the server requires the tools. In
//! that case the tools stay, but calling them is forbidden.

use super::Messages;
use super::content::text_blocks;
use super::request::{has_called_tools, last_assistant, thinks};
use crate::ask::{Ask, ContinuationRequest, Partial, Terms, ToolPrefill, hermes_prefill, quoted_text};
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::request::Request;
use crate::wire_format::WireRequestBuilder;

impl WireRequestBuilder for Messages {
    fn continuation(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<ContinuationRequest> {
        let root = request.root();
        let mut edits = apply_terms(root, terms);
        let mut unshown = 0;
        match ask {
            Ask::Prefill { so_far, tool, .. } => {
                if thinks(root) {
                    return None;
                }
                let text = match (so_far, tool) {
                    (Partial::Text(text), _) => (*text).to_owned(),
                    (Partial::ToolCall { .. }, ToolPrefill::Hermes) => hermes_prefill(so_far),
                    // A call's input must be an object, so the beginning of a call cannot be shown.
                    (Partial::ToolCall { .. }, ToolPrefill::Calls) => return None,
                };
                // Anthropic refuses a last message that ends in whitespace.
                let shown = text.trim_end();
                if shown.is_empty() {
                    return None;
                }
                if matches!(so_far, Partial::Text(_)) {
                    unshown = text.len() - shown.len();
                }
                // Anthropic refuses an unfinished message together with a requested format.
                without_grammar(&mut edits, root);
                show(&mut edits, root, shown);
            }
            Ask::Prompt { so_far, prompt } => {
                without_tools(&mut edits, root);
                without_grammar(&mut edits, root);
                show_and_ask(&mut edits, root, &quoted_text(so_far), prompt);
            }
            Ask::Again => {}
            Ask::Correction { wrong, prompt } => {
                without_tools(&mut edits, root);
                if matches!(wrong, Partial::ToolCall { .. }) {
                    without_grammar(&mut edits, root);
                }
                show_and_ask(&mut edits, root, &quoted_text(wrong), prompt);
            }
            Ask::Native { .. } => return None,
        }
        Some(ContinuationRequest { body: edits.finish(), unshown_bytes: unshown })
    }

    fn question(&self, model: &str, text: &str, limit_tokens: u64) -> String {
        let (model, text) = (quote(model), quote(text));
        format!(
            r#"{{"model":{model},"max_tokens":{limit_tokens},"messages":[{{"role":"user","content":{text}}}]}}"#
        )
    }
}

fn apply_terms(root: Value<'_>, terms: Terms) -> Edits<'_> {
    let mut edits = Edits::for_document(root);
    edits.set_field(root, "max_tokens", &terms.limit.to_string());
    if terms.stream || root.field("stream").is_some() {
        edits.set_field(root, "stream", if terms.stream { "true" } else { "false" });
    }
    edits
}

fn without_tools<'a>(edits: &mut Edits<'a>, root: Value<'a>) {
    if has_called_tools(root) {
        edits.set_field(root, "tool_choice", "{\"type\":\"none\"}");
    } else {
        edits.remove_field(root, "tools");
        edits.remove_field(root, "tool_choice");
    }
}

fn without_grammar<'a>(edits: &mut Edits<'a>, root: Value<'a>) {
    edits.remove_field(root, "output_format");
    if let Some(output) = root.field("output_config").filter(|output| output.field("format").is_some()) {
        if output.fields().all(|field| field.has_name("format")) {
            edits.remove_field(root, "output_config");
        } else {
            edits.remove_field(output, "format");
        }
    }
}

/// Shows the model its own text as the last message.
fn show<'a>(edits: &mut Edits<'a>, root: Value<'a>, text: &str) {
    if let Some(message) = last_assistant(root) {
        extend(edits, message, text);
    } else if let Some(messages) = root.field("messages") {
        edits.push_item(messages, &format!("{{\"role\":\"assistant\",\"content\":{}}}", quote(text)));
    }
}

/// Shows the model its own text, and asks for the rest in a user message.
fn show_and_ask<'a>(edits: &mut Edits<'a>, root: Value<'a>, text: &str, prompt: &str) {
    if !text.is_empty() {
        show(edits, root, text);
    }
    if let Some(messages) = root.field("messages") {
        edits.push_item(messages, &format!("{{\"role\":\"user\",\"content\":{}}}", quote(prompt)));
    }
}

/// Appends this text to a message, in the form of its content.
fn extend<'a>(edits: &mut Edits<'a>, message: Value<'a>, text: &str) {
    let content = message.field("content");
    match content.map(|content| (content, content.kind())) {
        Some((content, Kind::String)) => edits.append_text(content, text),
        Some((content, Kind::Array)) => {
            match text_blocks(content).last().and_then(|block| block.field("text")) {
                Some(held) => edits.append_text(held, text),
                None => edits.push_item(content, &format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))),
            }
        }
        Some((_, Kind::Object | Kind::Number | Kind::Bool | Kind::Null)) | None => {
            edits.set_field(message, "content", &quote(text));
        }
    }
}
