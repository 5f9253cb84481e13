//! The contents of a Gemini request as turns (CX-3).

use std::borrow::Cow;

use endmark_context::conversation::{Call, Content, Media, ResultTurns, Role, ToolResult, TurnOrder};

use super::Gemini;
use super::candidate::{is_thought, part_signature};
use super::request::{FUNCTION_CALL, field_in_either_spelling};
use crate::conversation::{EditableText, PlacedPart, text_or_json, with_role};
use crate::json::{Kind, Value, quote};
use crate::own_tool::OwnTool;
use crate::reply::Choice;
use crate::wire_format::WireConversation;

/// One turn directly after the calls contains as many results as there were calls. The first turn is the
/// user's.
pub(super) const ORDER: TurnOrder = TurnOrder {
    results_follow_calls: true,
    turns_of_results: ResultTurns::SingleTurn,
    begins_with_user: true,
};

const FUNCTION_RESPONSE: [&str; 2] = ["functionResponse", "function_response"];
const INLINE_DATA: [&str; 2] = ["inlineData", "inline_data"];
const FILE_DATA: [&str; 2] = ["fileData", "file_data"];
const MIME_TYPE: [&str; 2] = ["mimeType", "mime_type"];
const FILE_URI: [&str; 2] = ["fileUri", "file_uri"];
const DISPLAY_NAME: [&str; 2] = ["displayName", "display_name"];
/// Fields with the server's own actions and their results.
const SERVER_ACTION_FIELDS: [&str; 8] = [
    "executableCode",
    "executable_code",
    "codeExecutionResult",
    "code_execution_result",
    "toolCall",
    "tool_call",
    "toolResponse",
    "tool_response",
];

/// Returns the role of a content. User contents may contain tool results.
fn content_role(content: Value<'_>) -> Role {
    let role = content.field("role").and_then(Value::text);
    match role.as_deref() {
        None | Some("user" | "function" | "tool" | "") => Role::User,
        Some("model") => Role::Assistant,
        Some("system") => Role::System,
        Some(_) => Role::Other,
    }
}

fn part(part: Value<'_>) -> (Content<'_>, EditableText<'_>) {
    if let Some((value, text)) = part.field("text").and_then(|value| Some((value, value.text()?))) {
        if is_thought(part) {
            return (Content::Reasoning { text, sealed: part_signature(part).is_some() }, EditableText::None);
        }
        return (Content::Text(text), EditableText::Text(value));
    }
    let object = |names| {
        field_in_either_spelling(part, names).map(|(_, value)| value).filter(|it| it.kind() == Kind::Object)
    };
    if let Some(call) = object(FUNCTION_CALL) {
        let slot = EditableText::arguments(call.field("args"), false);
        return (Content::Call(function_call(call)), slot);
    }
    if let Some(response) = object(FUNCTION_RESPONSE) {
        return (Content::Result(function_response(response)), EditableText::Output(response, "response"));
    }
    if let Some(data) = object(INLINE_DATA).or_else(|| object(FILE_DATA)) {
        return (Content::Media(media(data)), EditableText::None);
    }
    let server = SERVER_ACTION_FIELDS.into_iter().find(|name| part.field(name).is_some());
    if let Some(kind) = server {
        return (Content::Server { kind: kind.into(), follows: None }, EditableText::None);
    }
    // A part may consist only of the signature of a thought.
    if let (Some(_), None) = (part_signature(part), part.fields().nth(1)) {
        return (Content::Reasoning { text: Cow::default(), sealed: true }, EditableText::None);
    }
    let kind = part.fields().next().and_then(|field| field.key.text()).unwrap_or_default();
    (Content::Unknown { kind }, EditableText::None)
}

fn function_call(call: Value<'_>) -> Call<'_> {
    Call {
        id: call.field("id").and_then(Value::text),
        name: call.field("name").and_then(Value::text).unwrap_or_default(),
        arguments: call.field("args").map(text_or_json).unwrap_or_default(),
        can_be_answered: true,
    }
}

fn function_response(response: Value<'_>) -> ToolResult<'_> {
    let media = response.field("parts").into_iter().flat_map(Value::items);
    let media = media.filter_map(|part| {
        field_in_either_spelling(part, INLINE_DATA).or_else(|| field_in_either_spelling(part, FILE_DATA))
    });
    ToolResult {
        call_id: response.field("id").and_then(Value::text),
        name: response.field("name").and_then(Value::text),
        text: response.field("response").map(response_text).unwrap_or_default(),
        is_error: response.at("response.error").is_some_and(|error| !error.is_blank()),
        media: media.map(|(_, data)| self::media(data)).collect(),
        is_fixed: false,
    }
}

/// Returns the text of a response that contains only text, or else its JSON.
fn response_text(response: Value<'_>) -> Cow<'_, str> {
    let mut fields = response.fields();
    match (fields.next(), fields.next()) {
        (Some(only), None) if ["output", "result", "error"].iter().any(|name| only.has_name(name)) => {
            text_or_json(only.value)
        }
        _ => text_or_json(response),
    }
}

fn media(data: Value<'_>) -> Media<'_> {
    let word = |names| field_in_either_spelling(data, names).and_then(|(_, value)| value.text());
    Media { kind: word(MIME_TYPE).unwrap_or_default(), name: word(DISPLAY_NAME).or_else(|| word(FILE_URI)) }
}

impl WireConversation for Gemini {
    fn role(&self, item: Value<'_>) -> Option<Role> {
        (item.kind() == Kind::Object).then(|| content_role(item))
    }

    fn turn<'a>(&self, content: Value<'a>) -> Result<(Role, Vec<PlacedPart<'a>>), &'static str> {
        if content.field("parts").is_none_or(|parts| parts.kind() != Kind::Array) {
            return Err("has no list of `parts`");
        }
        Ok((content_role(content), PlacedPart::items(content, "parts", part).collect()))
    }

    fn user_turn(&self, text: &str) -> String {
        format!("{{\"role\":\"user\",\"parts\":[{{\"text\":{}}}]}}", quote(text))
    }

    fn result_turns(&self, results: Vec<String>) -> Vec<String> {
        vec![format!("{{\"role\":\"user\",\"parts\":[{}]}}", results.join(","))]
    }

    fn absent_result(&self, part: Value<'_>, text: &str) -> String {
        self.result(part, text, true)
    }

    fn result(&self, part: Value<'_>, text: &str, is_error: bool) -> String {
        let call = field_in_either_spelling(part, FUNCTION_CALL).map_or(part, |(_, call)| call);
        let id = call.field("id").map(|id| format!("\"id\":{},", id.raw())).unwrap_or_default();
        let name = call.field("name").map_or("\"\"", Value::raw);
        let member = if is_error { "error" } else { "output" };
        format!(
            "{{\"functionResponse\":{{{id}\"name\":{name},\"response\":{{\"{member}\":{}}}}}}}",
            quote(text)
        )
    }

    fn tool_json(&self, tool: &OwnTool<'_>) -> String {
        let (name, description) = (quote(tool.name), quote(tool.description));
        format!("{{\"name\":{name},\"description\":{description},\"parameters\":{}}}", tool.schema)
    }

    // The content keeps all of its parts, because calls are signed.
    fn response_items(&self, root: Value<'_>) -> Vec<String> {
        let content = root.at("candidates[0].content").filter(|content| content.field("parts").is_some());
        content.map(|content| with_role(content, "model")).into_iter().collect()
    }

    fn stream_items(&self, events: &[Value<'_>], _choice: &Choice) -> Vec<String> {
        let parts = events.iter().filter_map(|event| event.at("candidates[0].content.parts"));
        let parts: Vec<&str> = parts.flat_map(Value::items).map(Value::raw).collect();
        let content = || format!("{{\"role\":\"model\",\"parts\":[{}]}}", parts.join(","));
        (!parts.is_empty()).then(content).into_iter().collect()
    }
}
