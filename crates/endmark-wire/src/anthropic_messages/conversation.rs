//! The messages of a Messages request as turns (CX-3).

use std::borrow::Cow;

use endmark_context::conversation::{Call, Content, Media, ResultTurns, Role, ToolResult, TurnOrder};

use super::Messages;
use crate::conversation::{EditableText, PlacedPart, collect_media, parts_text, text_or_json};
use crate::edit::Edits;
use crate::json::{Fields, Kind, Value, quote};
use crate::own_tool::OwnTool;
use crate::reply::Choice;
use crate::wire_format::WireConversation;

/// The next message begins with the results of a message's calls. The server merges consecutive user turns.
pub(super) const ORDER: TurnOrder =
    TurnOrder { results_follow_calls: true, turns_of_results: ResultTurns::Shared, begins_with_user: true };

impl WireConversation for Messages {
    fn role(&self, message: Value<'_>) -> Option<Role> {
        message.field("role").and_then(Value::text).map(|role| parse_role(&role))
    }

    fn turn<'a>(&self, message: Value<'a>) -> Result<(Role, Vec<PlacedPart<'a>>), &'static str> {
        let fields = Fields::new(message);
        let role = fields.get("role").and_then(Value::text).ok_or("has no `role`")?;
        fields.get("content").ok_or("has no `content`")?;
        if role == "tool" {
            return Err("has the role `tool`: that is another format");
        }
        let role = parse_role(&role);
        let text = PlacedPart::text_field(message, "content");
        Ok((role, text.into_iter().chain(PlacedPart::items(message, "content", block)).collect()))
    }

    fn user_turn(&self, text: &str) -> String {
        format!("{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", quote(text))
    }

    fn result_turns(&self, results: Vec<String>) -> Vec<String> {
        vec![format!("{{\"role\":\"user\",\"content\":[{}]}}", results.join(","))]
    }

    fn absent_result(&self, call: Value<'_>, text: &str) -> String {
        let id = call.field("id").map_or("\"\"", Value::raw);
        format!(
            "{{\"type\":\"tool_result\",\"tool_use_id\":{id},\"content\":{},\"is_error\":true}}",
            quote(text)
        )
    }

    fn result(&self, call: Value<'_>, text: &str, is_error: bool) -> String {
        if is_error {
            return self.absent_result(call, text);
        }
        let id = call.field("id").map_or("\"\"", Value::raw);
        format!("{{\"type\":\"tool_result\",\"tool_use_id\":{id},\"content\":{}}}", quote(text))
    }

    fn tool_json(&self, tool: &OwnTool<'_>) -> String {
        let (name, description) = (quote(tool.name), quote(tool.description));
        format!("{{\"name\":{name},\"description\":{description},\"input_schema\":{}}}", tool.schema)
    }

    // The message keeps all of its blocks, because thoughts are signed and must precede the calls.
    fn response_items(&self, root: Value<'_>) -> Vec<String> {
        let content = root.field("content").filter(|content| content.items().next().is_some());
        let message =
            |content: Value<'_>| format!("{{\"role\":\"assistant\",\"content\":{}}}", content.raw());
        content.map(message).into_iter().collect()
    }

    // The message keeps all of its blocks. Each is built from its beginning and its deltas.
    fn stream_items(&self, events: &[Value<'_>], _choice: &Choice) -> Vec<String> {
        let mut blocks: Vec<(Option<u64>, StreamedBlock<'_>)> = Vec::new();
        for event in events {
            let index = event.field("index").and_then(Value::as_u64);
            if let Some(content_block) = event.field("content_block") {
                blocks.push((index, StreamedBlock { content_block, deltas: Vec::new() }));
            } else if let (Some(delta), Some((_, block))) =
                (event.field("delta"), blocks.iter_mut().rfind(|(own, _)| *own == index))
            {
                block.deltas.push(delta);
            }
        }
        let blocks: Vec<String> = blocks.iter().filter_map(|(_, block)| block.to_block()).collect();
        let message = || format!("{{\"role\":\"assistant\",\"content\":[{}]}}", blocks.join(","));
        (!blocks.is_empty()).then(message).into_iter().collect()
    }
}

fn parse_role(role: &str) -> Role {
    match role {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Other,
    }
}

/// Reads a block of a message's content.
fn block(block: Value<'_>) -> (Content<'_>, EditableText<'_>) {
    let fields = Fields::new(block);
    let word = |name: &str| fields.get(name).and_then(Value::text);
    let kind = word("type").unwrap_or_default();
    let content = match kind.as_ref() {
        "text" => match fields.get("text").and_then(|value| Some((value, value.text()?))) {
            Some((value, text)) => return (Content::Text(text), EditableText::Text(value)),
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
            return (Content::Call(call), EditableText::arguments(input, false));
        }
        "tool_result" => {
            let content = fields.get("content");
            let result = ToolResult {
                call_id: word("tool_use_id"),
                name: None,
                text: content.map(parts_text).unwrap_or_default(),
                is_error: fields.get("is_error").and_then(Value::as_bool) == Some(true),
                media: content.map(collect_media).unwrap_or_default(),
                is_fixed: false,
            };
            return (Content::Result(result), EditableText::Field(block, "content"));
        }
        "thinking" => Content::Reasoning { text: word("thinking").unwrap_or_default(), sealed: true },
        "redacted_thinking" => Content::Reasoning { text: Cow::default(), sealed: true },
        "image" | "document" | "container_upload" => Content::Media(media(block, kind)),
        _ if is_server_item(&kind) => Content::Server { kind, follows: None },
        _ => Content::Unknown { kind },
    };
    (content, EditableText::None)
}

/// Returns whether a block is an action of the server: a call of a server tool, the result of one, or a
/// compaction.
fn is_server_item(kind: &str) -> bool {
    kind.ends_with("_tool_use") || kind.ends_with("_tool_result") || kind == "compaction"
}

fn media<'a>(block: Value<'a>, kind: Cow<'a, str>) -> Media<'a> {
    let name = ["title", "source.url", "source.file_id", "file_id"].into_iter().find_map(|at| block.at(at));
    let named = block.at("source.media_type").and_then(Value::text);
    Media { kind: named.unwrap_or(kind), name: name.and_then(Value::text) }
}

/// A block of a stream.
struct StreamedBlock<'a> {
    content_block: Value<'a>,
    deltas: Vec<Value<'a>>,
}

impl StreamedBlock<'_> {
    /// Returns the block as it would be in a non-streamed message, or `None` for an empty text, which the
    /// server would refuse.
    fn to_block(&self) -> Option<String> {
        let block = Value::parse_str(self.content_block.raw()).ok()?;
        let mut edits = Edits::for_document(block);
        // The field of a delta, and the field of the block that it extends.
        for (from, field) in [("text", "text"), ("thinking", "thinking"), ("signature", "signature")] {
            let added: String = self.deltas.iter().filter_map(|delta| delta.field(from)?.text()).collect();
            let content_block = block.field(field).and_then(Value::text).unwrap_or_default();
            if !added.is_empty() {
                edits.set_field(block, field, &quote(&format!("{content_block}{added}")));
            } else if field == "text" && content_block.is_empty() && block.has_text("type", "text") {
                return None;
            }
        }
        let input: String =
            self.deltas.iter().filter_map(|delta| delta.field("partial_json")?.text()).collect();
        // A cut input is not an object and cannot be sent back. The call's result states the error instead.
        if Value::parse_str(&input).is_ok_and(|input| input.kind() == Kind::Object) {
            edits.set_field(block, "input", &input);
        }
        let cited: Vec<&str> =
            self.deltas.iter().filter_map(|delta| delta.field("citation")).map(Value::raw).collect();
        if !cited.is_empty() {
            edits.set_field(block, "citations", &format!("[{}]", cited.join(",")));
        }
        String::from_utf8(edits.finish()).ok()
    }
}
