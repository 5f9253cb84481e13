//! A view of a Responses request.

use endmark_text::Format;

use super::Responses;
use crate::json::{Fields, Kind, Value};
use crate::request::{Address, RequestView, Tool};
use crate::wire_format::WireRequest;

impl WireRequest for Responses {
    fn view(&self, root: Value<'_>, _address: &Address) -> RequestView {
        let fields = Fields::new(root);
        let input = fields.get("input").filter(|input| matches!(input.kind(), Kind::String | Kind::Array));
        // A stored prompt or the previous response may replace the input.
        let asks_nothing = input.is_none()
            && ["prompt", "previous_response_id", "conversation"]
                .iter()
                .all(|name| root.non_empty(name).is_none());
        let in_background = fields.get("background").and_then(Value::as_bool).unwrap_or(false);
        let limit = fields.get("max_output_tokens").and_then(Value::as_u64);
        let format = root.at("text.format");
        let is_json = format
            .and_then(|format| format.non_empty_text("type"))
            .is_some_and(|kind| matches!(kind.as_str(), "json_schema" | "json_object"));
        let schema = format.and_then(|format| format.field("schema")?.as_kind(Kind::Object));
        let conversation = fields.get("conversation");
        let conversation = conversation
            .and_then(|named| named.text().map(Into::into).or_else(|| named.non_empty_text("id")));
        RequestView {
            model: root.non_empty_text("model").unwrap_or_default(),
            stream: fields.get("stream").and_then(Value::as_bool).unwrap_or(false),
            include_usage: true,
            limit,
            limit_field: limit.map(|_| "max_output_tokens"),
            choices: 1,
            has_stop: root.non_empty("stop").is_some(),
            has_tools: root.non_empty("tools").is_some(),
            prefill: last_assistant(root).map(item_text).filter(|text| !text.is_empty()),
            required_format: is_json.then_some(Format::Json),
            text_schema: schema.map(|schema| schema.raw().to_owned()),
            conversation: conversation.or_else(|| root.non_empty_text("previous_response_id")),
            is_pass_through: asks_nothing || in_background,
        }
    }

    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        let tools = root.field("tools").into_iter().flat_map(Value::items);
        let functions = tools.filter(|tool| tool.has_text("type", "function")).filter_map(|tool| {
            let schema = tool.field("parameters").and_then(|schema| schema.as_kind(Kind::Object));
            Some(Tool {
                name: tool.non_empty_text("name")?,
                schema: schema.map(|schema| schema.raw().to_owned()),
            })
        });
        functions.collect()
    }

    fn previous_response<'a>(&self, root: Value<'a>) -> Option<Value<'a>> {
        root.non_empty("previous_response_id").filter(|id| id.kind() == Kind::String)
    }
}

/// Returns the last item, if it is an assistant message. Some servers continue such a message.
pub(super) fn last_assistant(root: Value<'_>) -> Option<Value<'_>> {
    let last = root.field("input")?.items().last()?;
    last.has_text("role", "assistant").then_some(last)
}

/// Returns the text strings of a message in `input`.
pub(super) fn text_parts(item: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let parts = item.field("content").into_iter().flat_map(Value::items);
    let texts = parts.filter(|part| {
        part.non_empty_text("type")
            .is_some_and(|kind| matches!(kind.as_str(), "input_text" | "output_text" | "text"))
    });
    texts.filter_map(|part| part.field("text")).filter(|text| text.kind() == Kind::String)
}

fn item_text(item: Value<'_>) -> String {
    match item.field("content").and_then(Value::text) {
        Some(text) => text.into_owned(),
        None => text_parts(item).filter_map(Value::text).fold(String::new(), |whole, text| whole + &text),
    }
}
