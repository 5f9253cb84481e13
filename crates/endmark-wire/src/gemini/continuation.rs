//! Requests for the rest of a cut reply (PC-3, PC-9): the client's own request, edited in place.

use super::Gemini;
use super::candidate::part_text;
use super::request::{
    CANDIDATE_COUNT, FUNCTION_DECLARATIONS, GENERATION_CONFIG, MAX_OUTPUT_TOKENS, RESPONSE_JSON_SCHEMA,
    RESPONSE_MIME_TYPE, RESPONSE_SCHEMA, TOOL_CONFIG, field_in_either_spelling, last_model_content,
};
use crate::ask::{Ask, ContinuationRequest, Partial, Terms, quoted_text};
use crate::edit::Edits;
use crate::json::{Kind, Value, quote};
use crate::request::Request;
use crate::wire_format::WireRequestBuilder;

/// The field that controls function calling, within a request's tool settings.
const FUNCTION_CALLING: [&str; 2] = ["functionCallingConfig", "function_calling_config"];

impl WireRequestBuilder for Gemini {
    // The path determines whether the response is streamed ([`Request::path_for`]), not the body.
    fn continuation(&self, request: &Request, ask: &Ask<'_>, terms: Terms) -> Option<ContinuationRequest> {
        let root = request.root();
        let mut edits = Edits::for_document(root);
        let mut settings = Settings::new(terms.limit);
        match ask {
            // A call's arguments must be an object, and models do not write calls as text, so the beginning
            // of a call cannot be shown.
            Ask::Prefill { so_far: Partial::ToolCall { .. }, .. } => return None,
            Ask::Prefill { so_far: Partial::Text(text), .. } => show(&mut edits, root, text),
            Ask::Prompt { so_far, prompt } => {
                forbid_tools(&mut edits, root);
                settings.without_grammar = true;
                show_and_ask(&mut edits, root, &quoted_text(so_far), prompt);
            }
            Ask::Again => {}
            Ask::Correction { wrong, prompt } => {
                forbid_tools(&mut edits, root);
                settings.without_grammar = matches!(wrong, Partial::ToolCall { .. });
                show_and_ask(&mut edits, root, &quoted_text(wrong), prompt);
            }
            Ask::Native { token } => edits.set_field(root, "continuationToken", &quote(token)),
        }
        settings.write(&mut edits, root);
        Some(edits.finish().into())
    }

    fn question(&self, _model: &str, text: &str, _limit_tokens: u64) -> String {
        format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":{}}}]}}]}}"#, quote(text))
    }

    fn with_model(&self, request: &Request, _model: &str) -> Vec<u8> {
        request.body().to_vec()
    }
}

/// Changes to `generationConfig`.
struct Settings {
    limit: u64,
    without_grammar: bool,
}

impl Settings {
    fn new(limit: u64) -> Self {
        Self { limit, without_grammar: false }
    }

    fn write<'a>(&self, edits: &mut Edits<'a>, root: Value<'a>) {
        let config = field_in_either_spelling(root, GENERATION_CONFIG)
            .filter(|(_, config)| config.kind() == Kind::Object);
        let Some((_, config)) = config else {
            let name = field_in_either_spelling(root, GENERATION_CONFIG)
                .map_or(GENERATION_CONFIG[0], |(name, _)| name);
            edits.set_field(root, name, &format!("{{\"maxOutputTokens\":{}}}", self.limit));
            return;
        };
        let name = field_in_either_spelling(config, MAX_OUTPUT_TOKENS)
            .map_or(MAX_OUTPUT_TOKENS[0], |(name, _)| name);
        edits.set_field(config, name, &self.limit.to_string());
        let mut removed_fields = CANDIDATE_COUNT.to_vec();
        if self.without_grammar {
            removed_fields.extend([RESPONSE_MIME_TYPE, RESPONSE_SCHEMA, RESPONSE_JSON_SCHEMA].concat());
        }
        for name in removed_fields {
            edits.remove_field(config, name);
        }
    }
}

/// Forbids calls if functions are declared. The declarations stay, because a conversation with calls requires
/// them. Without declarations, the server would refuse settings for function calling. All other tool settings
/// of the client stay.
fn forbid_tools<'a>(edits: &mut Edits<'a>, root: Value<'a>) {
    let mut tools = root.field("tools").into_iter().flat_map(Value::items);
    if !tools.any(|tool| field_in_either_spelling(tool, FUNCTION_DECLARATIONS).is_some()) {
        return;
    }
    let none = "{\"mode\":\"NONE\"}";
    match field_in_either_spelling(root, TOOL_CONFIG) {
        Some((_, own)) if own.kind() == Kind::Object => {
            let name =
                field_in_either_spelling(own, FUNCTION_CALLING).map_or(FUNCTION_CALLING[0], |(name, _)| name);
            edits.set_field(own, name, none);
        }
        own => {
            let name = own.map_or(TOOL_CONFIG[0], |(name, _)| name);
            edits.set_field(root, name, &format!("{{\"{}\":{none}}}", FUNCTION_CALLING[0]));
        }
    }
}

/// Appends the model's own text as the last content.
fn show<'a>(edits: &mut Edits<'a>, root: Value<'a>, text: &str) {
    let part = format!("{{\"text\":{}}}", quote(text));
    if let Some(content) = last_model_content(root) {
        let parts = content.field("parts").filter(|parts| parts.kind() == Kind::Array);
        match (parts, parts.and_then(|parts| parts.items().filter_map(part_text).last())) {
            (_, Some(held)) => edits.append_text(held, text),
            (Some(parts), None) => edits.push_item(parts, &part),
            (None, None) => edits.set_field(content, "parts", &format!("[{part}]")),
        }
    } else if let Some(contents) = root.field("contents") {
        edits.push_item(contents, &format!("{{\"role\":\"model\",\"parts\":[{part}]}}"));
    }
}

/// Appends the model's own text, and a user turn that asks for the rest.
fn show_and_ask<'a>(edits: &mut Edits<'a>, root: Value<'a>, text: &str, prompt: &str) {
    if !text.is_empty() {
        show(edits, root, text);
    }
    if let Some(contents) = root.field("contents") {
        let part = format!("{{\"text\":{}}}", quote(prompt));
        edits.push_item(contents, &format!("{{\"role\":\"user\",\"parts\":[{part}]}}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_forbidden_only_if_functions_are_declared() {
        for (given, wanted) in [
            (r#"{"tools":[{"googleSearch":{}}]}"#, r#"{"tools":[{"googleSearch":{}}]}"#),
            ("{}", "{}"),
            (
                r#"{"tools":[{"googleSearch":{}},{"functionDeclarations":[]}]}"#,
                r#"{"tools":[{"googleSearch":{}},{"functionDeclarations":[]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}"#,
            ),
            (
                r#"{"tools":[{"function_declarations":[]}],"tool_config":{"retrievalConfig":{"languageCode":"de"},"function_calling_config":{"mode":"ANY"}}}"#,
                r#"{"tools":[{"function_declarations":[]}],"tool_config":{"retrievalConfig":{"languageCode":"de"},"function_calling_config":{"mode":"NONE"}}}"#,
            ),
        ] {
            let root = Value::parse_str(given).unwrap();
            let mut edits = Edits::for_document(root);
            forbid_tools(&mut edits, root);
            assert_eq!(String::from_utf8(edits.finish()).unwrap(), wanted);
        }
    }
}
