//! Requests for the rest of a cut reply (PC-3, PC-9): the client's own request, edited in place.

use super::Responses;
use super::request::{last_assistant, text_parts};
use crate::ask::{Ask, ContinuationRequest, Partial, Terms, ToolPrefill, hermes_prefill, quoted_text};
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::request::Request;
use crate::wire_format::WireRequestBuilder;

/// Fields that offer tools or choose among them.
const TOOL_FIELDS: [&str; 4] = ["tools", "tool_choice", "parallel_tool_calls", "max_tool_calls"];

impl WireRequestBuilder for Responses {
    // OpenAI treats an unfinished assistant message as a finished turn and writes a new answer. llama.cpp
    // repeats the message and continues it. So a prefill works only where that was detected.
    fn continuation(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<ContinuationRequest> {
        let root = request.root();
        let mut edits = apply_terms(root, terms);
        // With this field, the server would add Endmark's prompt and the rest, as separate messages, to the
        // client's conversation.
        edits.remove_field(root, "conversation");
        if is_never_continued(ask) {
            edits.set_field(root, "store", "false");
        }
        match ask {
            Ask::Prefill { so_far, tool, .. } => {
                let text = match (so_far, tool) {
                    (Partial::Text(text), _) => (*text).to_owned(),
                    (Partial::ToolCall { .. }, ToolPrefill::Hermes) => hermes_prefill(so_far),
                    // Servers refuse a call without a result.
                    (Partial::ToolCall { .. }, ToolPrefill::Calls) => return None,
                };
                if text.is_empty() {
                    return None;
                }
                append_continuation(&mut edits, root, &text, None);
            }
            Ask::Prompt { so_far, prompt } => {
                remove_tool_fields(&mut edits, root, true);
                append_continuation(&mut edits, root, &quoted_text(so_far), Some(prompt));
            }
            Ask::Again => {}
            Ask::Correction { wrong, prompt } => {
                remove_tool_fields(&mut edits, root, matches!(wrong, Partial::ToolCall { .. }));
                append_continuation(&mut edits, root, &quoted_text(wrong), Some(prompt));
            }
            Ask::Native { .. } => return None,
        }
        Some(edits.finish().into())
    }

    fn question(&self, model: &str, text: &str, _limit_tokens: u64) -> String {
        format!(r#"{{"model":{},"input":{},"store":false}}"#, quote(model), quote(text))
    }
}

/// Returns whether no client can continue from the response: after a call, a client continues from the
/// response that contains the call.
fn is_never_continued(ask: &Ask<'_>) -> bool {
    match ask {
        Ask::Prefill { so_far, .. } | Ask::Prompt { so_far, .. } => {
            matches!(so_far, Partial::ToolCall { .. })
        }
        Ask::Correction { wrong, .. } => matches!(wrong, Partial::ToolCall { .. }),
        Ask::Again | Ask::Native { .. } => false,
    }
}

fn apply_terms(root: Value<'_>, terms: Terms) -> Edits<'_> {
    let mut edits = Edits::for_document(root);
    edits.set_field(root, "max_output_tokens", &terms.limit.to_string());
    edits.remove_field(root, "top_logprobs");
    if terms.stream || root.field("stream").is_some() {
        edits.set_field(root, "stream", if terms.stream { "true" } else { "false" });
    }
    if !terms.stream {
        edits.remove_field(root, "stream_options");
    }
    edits
}

/// Removes the fields because of which the rest could be a call. With `grammar`, also removes those because
/// of which it would be a new document.
fn remove_tool_fields<'a>(edits: &mut Edits<'a>, root: Value<'a>, grammar: bool) {
    for name in TOOL_FIELDS {
        edits.remove_field(root, name);
    }
    if let Some(text) = root.field("text").filter(|text| grammar && text.field("format").is_some()) {
        edits.remove_field(text, "format");
    }
}

/// Appends the model's own text, and a user message that asks for the rest if there is a prompt.
fn append_continuation<'a>(edits: &mut Edits<'a>, root: Value<'a>, text: &str, prompt: Option<&str>) {
    let own = last_assistant(root);
    let shown = (!text.is_empty() && own.is_none()).then(|| message("assistant", text));
    let prompt_message = prompt.map(|prompt| message("user", prompt));
    if let Some(own) = own.filter(|_| !text.is_empty()) {
        extend(edits, own, text);
    }
    let new: Vec<String> = shown.into_iter().chain(prompt_message).collect();
    match root.field("input").map(|input| (input, input.kind())) {
        Some((input, Kind::Array)) => new.iter().for_each(|item| edits.push_item(input, item)),
        Some((input, Kind::String)) => {
            let first = format!("{{\"role\":\"user\",\"content\":{}}}", input.raw());
            edits.replace(input, &format!("[{first},{}]", new.join(",")));
        }
        _ => edits.set_field(root, "input", &format!("[{}]", new.join(","))),
    }
}

/// Returns a message as an item of `input`.
fn message(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(
        "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}\",\"text\":{}}}]}}",
        quote(text)
    )
}

/// Appends this text to a message, in the form of its content.
fn extend<'a>(edits: &mut Edits<'a>, message: Value<'a>, text: &str) {
    let content = message.field("content");
    let array = content.filter(|content| content.kind() == Kind::Array);
    let string = content.filter(|content| content.kind() == Kind::String);
    match (string.or_else(|| text_parts(message).last()), array) {
        (Some(held), _) => edits.append_text(held, text),
        (None, Some(array)) => {
            let part = format!("{{\"type\":\"output_text\",\"text\":{}}}", quote(text));
            edits.push_item(array, &part);
        }
        (None, None) => edits.set_field(message, "content", &quote(text)),
    }
}
