//! A view of a Gemini request. Google's servers accept its fields in either spelling, `maxOutputTokens` or
//! `max_output_tokens`.

use endmark_text::Format;

use super::Gemini;
use super::candidate::{part_call, part_text};
use super::schema::as_json_schema;
use crate::json::{Kind, Value};
use crate::request::{Address, RequestView, Tool};
use crate::wire_format::WireRequest;

/// Returns a field under either of its spellings, with the spelling that the object uses.
pub(super) fn field_in_either_spelling<'a>(
    object: Value<'a>,
    spellings: [&'static str; 2],
) -> Option<(&'static str, Value<'a>)> {
    spellings.into_iter().find_map(|name| Some((name, object.field(name)?)))
}

pub(super) const GENERATION_CONFIG: [&str; 2] = ["generationConfig", "generation_config"];
pub(super) const MAX_OUTPUT_TOKENS: [&str; 2] = ["maxOutputTokens", "max_output_tokens"];
pub(super) const CANDIDATE_COUNT: [&str; 2] = ["candidateCount", "candidate_count"];
pub(super) const RESPONSE_MIME_TYPE: [&str; 2] = ["responseMimeType", "response_mime_type"];
pub(super) const RESPONSE_SCHEMA: [&str; 2] = ["responseSchema", "response_schema"];
pub(super) const RESPONSE_JSON_SCHEMA: [&str; 2] = ["responseJsonSchema", "response_json_schema"];
pub(super) const FUNCTION_DECLARATIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];
pub(super) const FUNCTION_CALL: [&str; 2] = ["functionCall", "function_call"];
pub(super) const TOOL_CONFIG: [&str; 2] = ["toolConfig", "tool_config"];

impl WireRequest for Gemini {
    fn view(&self, root: Value<'_>, address: &Address) -> RequestView {
        let array = root.field("contents").filter(|contents| contents.kind() == Kind::Array);
        let config = field_in_either_spelling(root, GENERATION_CONFIG).map(|(_, config)| config);
        let setting = |spellings| field_in_either_spelling(config?, spellings).map(|(_, value)| value);
        let limit = setting(MAX_OUTPUT_TOKENS).and_then(Value::as_u64);
        let choices =
            setting(CANDIDATE_COUNT).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
        let json_schema = setting(RESPONSE_JSON_SCHEMA).filter(|schema| schema.kind() == Kind::Object);
        let schema = json_schema.map(|schema| schema.raw().to_owned());
        let schema = schema.or_else(|| setting(RESPONSE_SCHEMA).and_then(as_json_schema));
        let is_json =
            setting(RESPONSE_MIME_TYPE).and_then(Value::text).as_deref() == Some("application/json");
        let stops = setting(["stopSequences", "stop_sequences"]);
        RequestView {
            model: address.model.clone().unwrap_or_default(),
            stream: address.stream.unwrap_or(false),
            include_usage: true,
            limit,
            limit_field: limit.map(|_| "generationConfig.maxOutputTokens"),
            choices: choices.unwrap_or(1).max(1),
            has_stop: stops.is_some_and(|stops| !stops.is_blank()),
            has_tools: root.non_empty("tools").is_some(),
            prefill: last_model_content(root).map(content_text).filter(|text| !text.is_empty()),
            required_format: is_json.then_some(Format::Json),
            text_schema: schema.filter(|_| is_json),
            conversation: None,
            is_pass_through: array.is_none(),
        }
    }

    fn tools(&self, root: Value<'_>) -> Vec<Tool> {
        let tools = root.field("tools").into_iter().flat_map(Value::items);
        let declared = tools
            .filter_map(|tool| field_in_either_spelling(tool, FUNCTION_DECLARATIONS))
            .flat_map(|(_, declared)| declared.items());
        let tools = declared.filter_map(|function| {
            let json = field_in_either_spelling(function, ["parametersJsonSchema", "parameters_json_schema"]);
            let json = json.map(|(_, schema)| schema).filter(|schema| schema.kind() == Kind::Object);
            let schema = json.map(|schema| schema.raw().to_owned());
            Some(Tool {
                name: function.non_empty_text("name")?,
                schema: schema.or_else(|| function.field("parameters").and_then(as_json_schema)),
            })
        });
        tools.collect()
    }

    fn function_list<'a>(&self, root: Value<'a>) -> Option<Value<'a>> {
        let tools = root.field("tools").into_iter().flat_map(Value::items);
        let mut lists = tools
            .filter_map(|tool| field_in_either_spelling(tool, FUNCTION_DECLARATIONS))
            .map(|(_, declared)| declared);
        lists.find(|list| list.kind() == Kind::Array)
    }
}

/// Returns the last content, if it is the model's and not a call. A reply continues it.
pub(super) fn last_model_content(root: Value<'_>) -> Option<Value<'_>> {
    let last = root.field("contents")?.items().last()?;
    let calls = last.field("parts").into_iter().flat_map(Value::items).any(|part| part_call(part).is_some());
    (last.has_text("role", "model") && !calls).then_some(last)
}

/// Returns the text of a content. Other parts are ignored.
fn content_text(content: Value<'_>) -> String {
    let parts = content.field("parts").into_iter().flat_map(Value::items);
    parts.filter_map(part_text).filter_map(Value::text).fold(String::new(), |whole, text| whole + &text)
}
