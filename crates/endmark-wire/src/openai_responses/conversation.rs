//! The input items of a Responses request as turns (CX-3).
//!
//! A call and its output are separate items with other items between them, and only `call_id` pairs them. A
//! reasoning item belongs to the next item.

use std::borrow::Cow;

use endmark_context::conversation::{Call, Content, Media, ResultTurns, Role, ToolResult, TurnOrder};

use super::Responses;
use crate::conversation::{EditableText, PlacedPart, collect_media, parts_text, text_or_json};
use crate::json::{Fields, Kind, Value, quote};
use crate::own_tool::OwnTool;
use crate::reply::Choice;
use crate::wire_format::WireConversation;

/// An id pairs a call with its output, in any position.
pub(super) const ORDER: TurnOrder = TurnOrder {
    results_follow_calls: false,
    turns_of_results: ResultTurns::OnePerResult,
    begins_with_user: false,
};

/// Types of calls with text as output.
const CALLS_WITH_TEXT_OUTPUT: [&str; 3] = ["function_call", "custom_tool_call", "local_shell_call"];

/// Returns the role of an item, and its parts.
fn turn(item: Value<'_>) -> Result<(Role, Vec<PlacedPart<'_>>), &'static str> {
    if let Some(text) = item.text() {
        return Ok((Role::User, vec![PlacedPart::turn(item, Content::Text(text), EditableText::Text(item))]));
    }
    let fields = Fields::new(item);
    let kind = fields.get("type").and_then(Value::text);
    let named = fields.get("role").and_then(Value::text);
    if let Some(id) = reference(item) {
        let content = Content::Reference { id: id.text().unwrap_or_default() };
        return Ok((Role::Assistant, vec![PlacedPart::turn(item, content, EditableText::None)]));
    }
    let role = item_role(kind.as_deref(), named.as_deref()).ok_or("has neither `type` nor `role`")?;
    if named.is_some() && kind.as_deref().is_none_or(|kind| kind == "message") {
        return Ok((role, message(item)));
    }
    let kind = kind.unwrap_or_default();
    let one = |content, slot| Ok((role, vec![PlacedPart::turn(item, content, slot)]));
    let call_id = fields.get("call_id").filter(|id| id.kind() == Kind::String);
    if is_result(&kind, call_id.is_some()) {
        let names_call = call_id.or_else(|| fields.get("approval_request_id")).or_else(|| fields.get("id"));
        let output = fields.get("output");
        let result = ToolResult {
            call_id: names_call.and_then(Value::text),
            name: None,
            text: output.map(output_text).unwrap_or_default(),
            is_error: false,
            media: output.map(collect_media).unwrap_or_default(),
            is_fixed: false,
        };
        return one(Content::Result(result), editable_output(item, &kind, output));
    }
    let is_approval = kind == "mcp_approval_request";
    let call_id = call_id.or_else(|| fields.get("id").filter(|_| is_approval));
    if is_approval || (kind.ends_with("_call") && call_id.is_some()) {
        let arguments = ["arguments", "input", "action"].into_iter().find_map(|name| fields.get(name));
        let named = fields.get("name").and_then(Value::text);
        let call = Call {
            id: call_id.and_then(Value::text),
            name: named.unwrap_or_else(|| kind.clone()),
            arguments: arguments.map(text_or_json).unwrap_or_default(),
            can_be_answered: CALLS_WITH_TEXT_OUTPUT.contains(&kind.as_ref()),
        };
        let is_json = kind == "function_call";
        let slot = EditableText::arguments(fields.get("arguments").filter(|_| is_json), true);
        return one(Content::Call(call), slot);
    }
    if kind == "reasoning" {
        let text = ["summary", "content"].into_iter().find_map(|name| fields.non_empty(name));
        let text = text.map(parts_text).unwrap_or_default();
        return one(Content::Reasoning { text, sealed: true }, EditableText::None);
    }
    if is_server_item(&kind) {
        // A call of an MCP server refers to the approval that it needed.
        let follows = fields.get("approval_request_id").and_then(Value::text);
        return one(Content::Server { kind, follows }, EditableText::None);
    }
    one(Content::Unknown { kind }, EditableText::None)
}

impl WireConversation for Responses {
    // All calls belong to the model, and so do the server's actions on its behalf.
    fn role(&self, item: Value<'_>) -> Option<Role> {
        if item.kind() == Kind::String {
            return Some(Role::User);
        }
        let word = |name| item.field(name).and_then(Value::text);
        if reference(item).is_some() {
            return Some(Role::Assistant);
        }
        item_role(word("type").as_deref(), word("role").as_deref())
    }

    fn turn<'a>(&self, item: Value<'a>) -> Result<(Role, Vec<PlacedPart<'a>>), &'static str> {
        turn(item)
    }

    fn is_single_turn(&self, conversation: Value<'_>) -> bool {
        conversation.kind() == Kind::String
    }

    fn user_turn(&self, text: &str) -> String {
        let text = quote(text);
        format!(
            "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":{text}}}]}}"
        )
    }

    fn absent_result(&self, call: Value<'_>, text: &str) -> String {
        let kind = call.field("type").and_then(Value::text).unwrap_or_default();
        let id = call.field("call_id").map_or("\"\"", Value::raw);
        let kind = quote(&format!("{kind}_output"));
        format!("{{\"type\":{kind},\"call_id\":{id},\"output\":{}}}", quote(text))
    }

    fn tool_json(&self, tool: &OwnTool<'_>) -> String {
        let (name, description) = (quote(tool.name), quote(tool.description));
        // The strict form, which is the default, does not allow optional arguments.
        format!(
            "{{\"type\":\"function\",\"name\":{name},\"description\":{description},\"parameters\":{},\"strict\":false}}",
            tool.schema
        )
    }

    // Omit reasoning that the server neither stored nor sent in encrypted form, because the server would not
    // know its id.
    fn response_items(&self, root: Value<'_>) -> Vec<String> {
        let is_kept = root.field("store").and_then(Value::as_bool) != Some(false);
        let can_stand = |item: &Value<'_>| {
            is_kept || !item.has_text("type", "reasoning") || item.non_empty("encrypted_content").is_some()
        };
        let items = root.field("output").into_iter().flat_map(Value::items);
        items.filter(can_stand).map(|item| item.raw().to_owned()).collect()
    }

    // Use the items of the final response or, without one, the completed items.
    fn stream_items(&self, events: &[Value<'_>], _choice: &Choice) -> Vec<String> {
        let ended = events.iter().rev().filter_map(|event| event.field("response"));
        if let Some(response) = { ended }.find(|response| response.non_empty("output").is_some()) {
            return self.response_items(response);
        }
        let done = events.iter().filter(|event| event.has_text("type", "response.output_item.done"));
        done.filter_map(|event| event.field("item")).map(|item| item.raw().to_owned()).collect()
    }

    fn reference<'a>(&self, item: Value<'a>) -> Option<Value<'a>> {
        reference(item)
    }
}

fn item_role(kind: Option<&str>, role: Option<&str>) -> Option<Role> {
    match (kind, role) {
        (None, None) => None,
        (None | Some("message"), Some(role)) => Some(parse_role(role)),
        (Some(kind), _) if is_result(kind, false) => Some(Role::Tool),
        (Some(kind), _) if kind == "reasoning" || is_server_item(kind) => Some(Role::Assistant),
        (_, role) => Some(role.map_or(Role::Other, parse_role)),
    }
}

/// Returns whether an item answers another item, which it refers to by id. The output of a tool search refers
/// to its call only if the client ran the search.
fn is_result(kind: &str, names_call: bool) -> bool {
    kind.ends_with("_call_output")
        || kind == "mcp_approval_response"
        || (kind.ends_with("_output") && names_call)
}

/// Returns the location of a result's editable text: a string, a value that may be a string, or the output of
/// shell commands.
fn editable_output<'a>(item: Value<'a>, kind: &str, output: Option<Value<'a>>) -> EditableText<'a> {
    let is_answered_by_text =
        kind.strip_suffix("_output").is_some_and(|call| CALLS_WITH_TEXT_OUTPUT.contains(&call));
    match output.map(Value::kind) {
        Some(Kind::String) => EditableText::Field(item, "output"),
        _ if is_answered_by_text => EditableText::Field(item, "output"),
        Some(Kind::Array) if kind == "shell_call_output" => EditableText::Commands(item, "output"),
        _ => EditableText::None,
    }
}

/// Returns whether an item is an action of the server, or a call that the server made or left to the client.
fn is_server_item(kind: &str) -> bool {
    kind.ends_with("_call") || kind.starts_with("compaction") || kind.starts_with("mcp_")
}

/// Returns the id of the stored item that an item refers to. A reference may lack a type.
fn reference(item: Value<'_>) -> Option<Value<'_>> {
    let id = item.field("id").filter(|id| id.kind() == Kind::String)?;
    let field_text = |name| item.field(name).and_then(Value::text);
    match field_text("type").as_deref() {
        Some("item_reference") => Some(id),
        Some(_) => None,
        None => (field_text("role").is_none() && item.field("content").is_none()).then_some(id),
    }
}

fn parse_role(role: &str) -> Role {
    match role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Other,
    }
}

fn message(item: Value<'_>) -> Vec<PlacedPart<'_>> {
    let text = PlacedPart::text_field(item, "content");
    text.into_iter().chain(PlacedPart::items(item, "content", content)).collect()
}

/// Reads an item of a message's content.
fn content(part: Value<'_>) -> (Content<'_>, EditableText<'_>) {
    let kind = part.field("type").and_then(Value::text).unwrap_or_default();
    let text = part.field("text").or_else(|| part.field("refusal"));
    if let Some((value, text)) = text.and_then(|value| Some((value, value.text()?))) {
        return (Content::Text(text), EditableText::Text(value));
    }
    let name = match kind.as_ref() {
        "input_image" => {
            part.field("image_url").and_then(Value::text).filter(|url| !url.starts_with("data:"))
        }
        "input_file" => {
            let names = ["filename", "file_url", "file_id"];
            names.into_iter().find_map(|name| part.field(name)).and_then(Value::text)
        }
        "input_audio" | "computer_screenshot" => None,
        _ => return (Content::Unknown { kind }, EditableText::None),
    };
    (Content::Media(Media { kind, name }), EditableText::None)
}

/// Returns the text of a call's output, or its JSON if it has no text.
fn output_text(output: Value<'_>) -> Cow<'_, str> {
    let has_text = || output.items().any(|part| part.field("text").is_some());
    let of_commands = || {
        let parts = output.items().flat_map(|part| [part.field("stdout"), part.field("stderr")]);
        let texts: Vec<Cow<'_, str>> = parts.flatten().filter_map(Value::text).collect();
        let filled: Vec<&str> = texts.iter().map(AsRef::as_ref).filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| Cow::Owned(filled.join("\n")))
    };
    match output.kind() {
        Kind::Array if has_text() => parts_text(output),
        Kind::Array => of_commands().unwrap_or_else(|| text_or_json(output)),
        Kind::Object if output.field("image_url").is_some() => Cow::default(),
        _ => text_or_json(output),
    }
}
