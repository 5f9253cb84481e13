//! A view of a Messages request.

use endmark_text::Format;

use super::Messages;
use super::content::read_text;
use crate::json::{Fields, Kind, Value};
use crate::request::{Address, RequestView, Tool};
use crate::wire_format::WireRequest;

impl WireRequest for Messages {
    fn view(&self, root: Value<'_>, _address: &Address) -> RequestView {
        let fields = Fields::new(root);
        let array = fields.get("messages").and_then(|messages| messages.as_kind(Kind::Array));
        let text = |message: Value<'_>| message.field("content").map(|content| read_text(content).0);
        let limit = fields.get("max_tokens").and_then(Value::as_u64);
        let format = output_format(root);
        let schema = format.and_then(|format| format.field("schema")?.as_kind(Kind::Object));
        RequestView {
            model: root.non_empty_text("model").unwrap_or_default(),
            stream: fields.get("stream").and_then(Value::as_bool).unwrap_or(false),
            include_usage: true,
            limit,
            limit_field: limit.map(|_| "max_tokens"),
            choices: 1,
            has_stop: root.non_empty("stop_sequences").is_some(),
            has_tools: root.non_empty("tools").is_some(),
            prefill: last_assistant(root).and_then(text).filter(|text| !text.is_empty()),
            required_format: format.map(|_| Format::Json),
            text_schema: schema.map(|schema| schema.raw().to_owned()),
            conversation: session(root),
            is_pass_through: array.is_none(),
        }
    }

    // Tools that the server runs itself have no schema.
    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        let tools = root.field("tools").into_iter().flat_map(Value::items).filter_map(|tool| {
            let schema = tool.field("input_schema").and_then(|schema| schema.as_kind(Kind::Object));
            Some(Tool {
                name: tool.non_empty_text("name")?,
                schema: schema.map(|schema| schema.raw().to_owned()),
            })
        });
        tools.collect()
    }
}

/// Returns the session id that Claude Code sends. `metadata.user_id` is JSON with a `session_id`. In older
/// versions it is a string that ends with the session id.
fn session(root: Value<'_>) -> Option<String> {
    let user = root.at("metadata.user_id")?.text()?;
    let session = match Value::parse_str(&user) {
        Ok(named) => named.non_empty_text("session_id"),
        Err(_) => user.rsplit_once("_session_").map(|(_, session)| session.to_owned()),
    };
    session.filter(|session| !session.is_empty())
}

/// Returns the format that the text must have: `output_config.format`, or the older `output_format`.
fn output_format(root: Value<'_>) -> Option<Value<'_>> {
    let format = root.at("output_config.format").or_else(|| root.field("output_format"));
    format.filter(|format| format.has_text("type", "json_schema"))
}

/// Returns the last message if the assistant wrote it and it is not a tool call. The reply continues such a
/// message.
pub(super) fn last_assistant(root: Value<'_>) -> Option<Value<'_>> {
    let last = root.field("messages")?.items().last()?;
    let content = last.field("content").filter(|content| !content.is_null());
    let only_text = content.is_none_or(|content| {
        content.kind() != Kind::Array
            || content.items().last().is_none_or(|block| block.has_text("type", "text"))
    });
    (last.has_text("role", "assistant") && only_text).then_some(last)
}

/// Returns whether thinking is enabled. An unfinished message then cannot be continued.
pub(super) fn thinks(root: Value<'_>) -> bool {
    root.non_empty("thinking").is_some_and(|thinking| !thinking.has_text("type", "disabled"))
}

/// Returns whether the conversation contains tool calls. The request must then offer tools.
pub(super) fn has_called_tools(root: Value<'_>) -> bool {
    let messages = root.field("messages").into_iter().flat_map(Value::items);
    let mut blocks = messages.filter_map(|message| message.field("content")).flat_map(Value::items);
    blocks.any(|block| {
        block
            .non_empty_text("type")
            .is_some_and(|kind| kind.ends_with("tool_use") || kind.ends_with("tool_result"))
    })
}
