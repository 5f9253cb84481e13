//! The messages of a Messages request as turns (CX-3).

use std::borrow::Cow;

use endmark_context::conversation::{Call, Content, Media, Order, Role, ToolResult};

use crate::conversation::{Placed, Slot, media_in, text_of_parts, text_or_json};
use crate::json::{Fields, Value, quoted};

/// The results of a message's calls come first behind it; turns of the user that follow each other are one to the server.
pub(super) const ORDER: Order =
    Order { results_behind_calls: true, results_in_one_turn: false, user_first: true };

/// Who speaks in a message, and its parts.
pub(super) fn turn(message: Value<'_>) -> Result<(Role, Vec<Placed<'_>>), &'static str> {
    let fields = Fields::of(message);
    let role = fields.get("role").and_then(Value::text).ok_or("has no `role`")?;
    fields.get("content").ok_or("has no `content`")?;
    if role == "tool" {
        return Err("has the role `tool`: that is another format");
    }
    let role = role_named(&role);
    let text = Placed::text_field(message, "content");
    Ok((role, text.into_iter().chain(Placed::items(message, "content", block)).collect()))
}

/// Who speaks in a message.
pub(super) fn role(message: Value<'_>) -> Option<Role> {
    message.field("role").and_then(Value::text).map(|role| role_named(&role))
}

fn role_named(role: &str) -> Role {
    match role {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Other,
    }
}

/// A block of a message's content.
fn block(block: Value<'_>) -> (Content<'_>, Slot<'_>) {
    let fields = Fields::of(block);
    let word = |name: &str| fields.get(name).and_then(Value::text);
    let kind = word("type").unwrap_or_default();
    let content = match kind.as_ref() {
        "text" => match fields.get("text").and_then(|value| Some((value, value.text()?))) {
            Some((value, text)) => return (Content::Text(text), Slot::Text(value)),
            None => Content::Unknown { kind },
        },
        "tool_use" => {
            let input = fields.get("input");
            let call = Call {
                id: word("id"),
                name: word("name").unwrap_or_default(),
                arguments: input.map(text_or_json).unwrap_or_default(),
                can_be_answered: true,
            };
            return (Content::Call(call), Slot::arguments(input, false));
        }
        "tool_result" => {
            let content = fields.get("content");
            let result = ToolResult {
                call_id: word("tool_use_id"),
                name: None,
                text: content.map(text_of_parts).unwrap_or_default(),
                is_error: fields.get("is_error").and_then(Value::as_bool) == Some(true),
                media: content.map(media_in).unwrap_or_default(),
            };
            return (Content::Result(result), Slot::Field(block, "content"));
        }
        "thinking" => Content::Reasoning { text: word("thinking").unwrap_or_default(), sealed: true },
        "redacted_thinking" => Content::Reasoning { text: Cow::default(), sealed: true },
        "image" | "document" | "container_upload" => Content::Media(media(block, kind)),
        _ if is_of_server(&kind) => Content::Server { kind },
        _ => Content::Unknown { kind },
    };
    (content, Slot::None)
}

/// Whether a block is something that the server did: a tool that it ran itself, what came of it, or a compaction.
fn is_of_server(kind: &str) -> bool {
    kind.ends_with("_tool_use") || kind.ends_with("_tool_result") || kind == "compaction"
}

fn media<'a>(block: Value<'a>, kind: Cow<'a, str>) -> Media<'a> {
    let name = ["title", "source.url", "source.file_id", "file_id"].into_iter().find_map(|at| block.at(at));
    let named = block.at("source.media_type").and_then(Value::text);
    Media { kind: named.unwrap_or(kind), name: name.and_then(Value::text) }
}

/// A message of the user's.
pub(super) fn user_turn(text: &str) -> String {
    format!("{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", quoted(text))
}

/// The message that has these results.
pub(super) fn result_turns(results: &[String]) -> Vec<String> {
    vec![format!("{{\"role\":\"user\",\"content\":[{}]}}", results.join(","))]
}

/// A block in the place of a call's result.
pub(super) fn absent_result(call: Value<'_>, text: &str) -> String {
    let id = call.field("id").map_or("\"\"", Value::raw);
    format!(
        "{{\"type\":\"tool_result\",\"tool_use_id\":{id},\"content\":{},\"is_error\":true}}",
        quoted(text)
    )
}
