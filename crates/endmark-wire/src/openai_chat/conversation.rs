//! The messages of a Chat Completions request as turns (CX-3).

use std::borrow::Cow;

use endmark_context::conversation::{Call, Content, Media, ResultTurns, Role, ToolResult, TurnOrder};

use super::format::Chat;
use crate::conversation::{
    EditableText, PlacedPart, RemovablePart, collect_media, parts_text, text_or_json, with_role,
};
use crate::json::{Fields, Kind, Value, quote};
use crate::own_tool::OwnTool;
use crate::reply::{Choice, ToolCall};
use crate::wire_format::WireConversation;

/// The results of a message's calls follow directly after the message.
pub(super) const ORDER: TurnOrder = TurnOrder {
    results_follow_calls: true,
    turns_of_results: ResultTurns::OnePerResult,
    begins_with_user: false,
};

/// Fields in which servers return the model's reasoning.
const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];
const SIGNED_REASONING_FIELD: &str = "reasoning_details";

impl WireConversation for Chat {
    fn role(&self, message: Value<'_>) -> Option<Role> {
        message.field("role").and_then(Value::text).map(|role| parse_role(&role))
    }

    fn turn<'a>(&self, message: Value<'a>) -> Result<(Role, Vec<PlacedPart<'a>>), &'static str> {
        let fields = Fields::new(message);
        let role = fields.get("role").and_then(Value::text).ok_or("has no `role`")?;
        if fields.get("content").is_none() && fields.get("parts").is_some() {
            return Err("has `parts` and no `content`: that is another format");
        }
        let role = parse_role(&role);
        if role == Role::Tool {
            return Ok((role, vec![result(message, &fields)]));
        }
        let mut parts = Vec::new();
        parts.extend(REASONING_FIELDS.into_iter().filter_map(|field| reasoning(message, field, false)));
        parts.extend(reasoning(message, SIGNED_REASONING_FIELD, true));
        parts.extend(PlacedPart::text_field(message, "content"));
        parts.extend(PlacedPart::items(message, "content", content));
        parts.extend(PlacedPart::text_field(message, "refusal"));
        parts.extend(fields.non_empty("audio").map(|value| PlacedPart {
            value,
            content: Content::Media(Media { kind: "audio".into(), name: None }),
            removable: RemovablePart::Field(message, "audio"),
            editable_text: EditableText::None,
        }));
        parts.extend(PlacedPart::items(message, "tool_calls", tool_call));
        parts.extend(fields.non_empty("function_call").map(|value| PlacedPart {
            value,
            content: Content::Call(function(None, value)),
            removable: RemovablePart::Field(message, "function_call"),
            editable_text: EditableText::arguments(value.field("arguments"), true),
        }));
        Ok((role, parts))
    }

    fn user_turn(&self, text: &str) -> String {
        format!("{{\"role\":\"user\",\"content\":{}}}", quote(text))
    }

    fn absent_result(&self, call: Value<'_>, text: &str) -> String {
        let text = quote(text);
        if let Some(id) = call.field("id") {
            return format!("{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{text}}}", id.raw());
        }
        let name = call.field("name").map_or("\"\"", Value::raw);
        format!("{{\"role\":\"function\",\"name\":{name},\"content\":{text}}}")
    }

    fn tool_json(&self, tool: &OwnTool<'_>) -> String {
        let (name, description) = (quote(tool.name), quote(tool.description));
        format!(
            "{{\"type\":\"function\",\"function\":{{\"name\":{name},\"description\":{description},\"parameters\":{}}}}}",
            tool.schema
        )
    }

    fn response_items(&self, root: Value<'_>) -> Vec<String> {
        let message = root.at("choices[0].message").filter(|message| message.kind() == Kind::Object);
        message.map(|message| with_role(message, "assistant")).into_iter().collect()
    }

    // The text and the calls as received, and the reasoning that some servers require back.
    fn stream_items(&self, events: &[Value<'_>], choice: &Choice) -> Vec<String> {
        let deltas = || events.iter().filter_map(|event| event.at("choices[0].delta"));
        let content = if choice.text.is_empty() { "null".to_owned() } else { quote(&choice.text) };
        let mut members = vec!["\"role\":\"assistant\"".to_owned(), format!("\"content\":{content}")];
        for field in REASONING_FIELDS {
            let text: String = deltas().filter_map(|delta| delta.field(field)?.text()).collect();
            if !text.is_empty() {
                members.push(format!("\"{field}\":{}", quote(&text)));
            }
        }
        let sealed = deltas().filter_map(|delta| delta.field(SIGNED_REASONING_FIELD)).flat_map(Value::items);
        let sealed: Vec<&str> = sealed.map(Value::raw).collect();
        let calls: Vec<String> = choice.tool_calls.iter().map(call_json).collect();
        for (field, items) in [(SIGNED_REASONING_FIELD, sealed.join(",")), ("tool_calls", calls.join(","))] {
            if !items.is_empty() {
                members.push(format!("\"{field}\":[{items}]"));
            }
        }
        vec![format!("{{{}}}", members.join(","))]
    }
}

fn parse_role(role: &str) -> Role {
    match role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => Role::Other,
    }
}

fn reasoning<'a>(message: Value<'a>, field: &'static str, sealed: bool) -> Option<PlacedPart<'a>> {
    let value = message.non_empty(field)?;
    let content = Content::Reasoning { text: parts_text(value), sealed };
    Some(PlacedPart {
        value,
        content,
        removable: RemovablePart::Field(message, field),
        editable_text: EditableText::None,
    })
}

fn result<'a>(message: Value<'a>, fields: &Fields<'a>) -> PlacedPart<'a> {
    let content = fields.get("content");
    let result = ToolResult {
        call_id: fields.get("tool_call_id").and_then(Value::text),
        name: fields.get("name").and_then(Value::text),
        text: content.map(parts_text).unwrap_or_default(),
        is_error: false,
        media: content.map(collect_media).unwrap_or_default(),
        is_fixed: false,
    };
    PlacedPart::turn(message, Content::Result(result), EditableText::Field(message, "content"))
}

/// Reads an item of a message's content.
fn content(part: Value<'_>) -> (Content<'_>, EditableText<'_>) {
    let kind = part.field("type").and_then(Value::text).unwrap_or_default();
    let text = part.field("text").or_else(|| part.field("refusal"));
    if let Some((value, text)) = text.and_then(|value| Some((value, value.text()?))) {
        return (Content::Text(text), EditableText::Text(value));
    }
    let name = match kind.as_ref() {
        "image_url" => part.at("image_url.url").and_then(Value::text).filter(|url| !url.starts_with("data:")),
        "file" => part.at("file.filename").or_else(|| part.at("file.file_id")).and_then(Value::text),
        "input_audio" | "video_url" => None,
        _ => return (Content::Unknown { kind }, EditableText::None),
    };
    (Content::Media(Media { kind, name }), EditableText::None)
}

fn tool_call(call: Value<'_>) -> (Content<'_>, EditableText<'_>) {
    let id = call.field("id").and_then(Value::text);
    let called = call.field("function");
    let slot = EditableText::arguments(called.and_then(|called| called.field("arguments")), true);
    let call = match called.or_else(|| call.field("custom")) {
        Some(called) => function(id, called),
        None => Call { id, name: Cow::default(), arguments: Cow::default(), can_be_answered: true },
    };
    (Content::Call(call), slot)
}

fn function<'a>(id: Option<Cow<'a, str>>, function: Value<'a>) -> Call<'a> {
    let arguments = function.field("arguments").or_else(|| function.field("input"));
    Call {
        id,
        name: function.field("name").and_then(Value::text).unwrap_or_default(),
        arguments: arguments.map(text_or_json).unwrap_or_default(),
        can_be_answered: true,
    }
}

fn call_json(call: &ToolCall) -> String {
    let id = call.id.clone().unwrap_or_else(|| format!("call_{}", call.index));
    let (id, name, arguments) = (quote(&id), quote(&call.name), quote(&call.arguments));
    format!(
        "{{\"id\":{id},\"type\":\"function\",\"function\":{{\"name\":{name},\"arguments\":{arguments}}}}}"
    )
}
