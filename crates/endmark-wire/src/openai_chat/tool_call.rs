//! Tool calls in Chat Completions: `tool_calls`, and the legacy `function_call`.

use crate::json::{Fields, Kind, Value, quote};
use crate::reply::ToolCall;

/// Returns the call as an item of a message's `tool_calls`.
pub(super) fn call_json(call: &ToolCall) -> String {
    let id = call.id.as_ref().map(|id| format!("\"id\":{},", quote(id))).unwrap_or_default();
    let (kind, field) = call_form(call);
    format!(
        "{{{id}\"type\":\"{kind}\",\"{kind}\":{{\"name\":{},\"{field}\":{}}}}}",
        quote(&call.name),
        quote(&call.arguments)
    )
}

/// Returns a call's `type`, which is also the name of its object, and the name of the arguments' field in
/// that object.
pub(super) fn call_form(call: &ToolCall) -> (&'static str, &'static str) {
    if call.free_text { (CUSTOM_TYPE, "input") } else { ("function", "arguments") }
}

/// The type of a call of a tool that accepts free text.
const CUSTOM_TYPE: &str = "custom";

/// The present fields of an item of `tool_calls`, or of a `function_call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallView<'a> {
    /// The stated index.
    pub(super) index: Option<u32>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// The value with the arguments.
    pub(super) arguments: Option<Value<'a>>,
    pub(super) legacy: bool,
    /// Whether it calls a function or a custom tool. Other calls are not read.
    pub(super) is_readable: bool,
    /// Whether it calls a custom tool, which accepts free text.
    pub(super) free_text: bool,
}

impl<'a> CallView<'a> {
    /// Returns the calls of a message or delta: `tool_calls`, and the legacy `function_call`.
    pub(super) fn message_calls(message: &Fields<'a>) -> impl Iterator<Item = CallView<'a>> + use<'a> {
        let calls = message.get("tool_calls").into_iter().flat_map(Value::items).map(|call| {
            let (free_text, is_function) = (calls_custom(call), calls_function(call));
            let (kind, field) = if free_text { (CUSTOM_TYPE, "input") } else { ("function", "arguments") };
            CallView {
                index: call
                    .field("index")
                    .and_then(Value::as_u64)
                    .and_then(|index| u32::try_from(index).ok()),
                id: non_empty(call.field("id")),
                is_readable: free_text || is_function,
                free_text,
                ..Self::from_tool(call.field(kind), field, false)
            }
        });
        let legacy = message.get("function_call").filter(|call| call.kind() == Kind::Object);
        calls.chain(legacy.map(|call| Self::from_tool(Some(call), "arguments", true)))
    }

    fn from_tool(tool: Option<Value<'a>>, field: &str, legacy: bool) -> Self {
        let name = non_empty(tool.and_then(|tool| tool.field("name")));
        let arguments = tool.and_then(|tool| tool.field(field));
        CallView { index: None, id: None, name, arguments, legacy, is_readable: true, free_text: false }
    }

    /// Returns the text of the arguments, and whether it is exactly what was sent. If a server sends an
    /// object instead of a string, the text is the JSON of that object.
    pub(super) fn arguments_text(&self) -> (String, bool) {
        match self.arguments.map(|arguments| (arguments, arguments.decode())) {
            Some((_, Some(decoded))) => (decoded.text.into_owned(), decoded.exact),
            Some((arguments, None)) if arguments.kind() == Kind::Object => (arguments.raw().to_owned(), true),
            Some((_, None)) | None => (String::new(), true),
        }
    }
}

/// Returns whether an item of `tool_calls` calls a function, by its `type`. Pieces of a stream have no type,
/// and some servers send null or an empty one. In that case a `custom` object without a `function` means that
/// it does not.
fn calls_function(call: Value<'_>) -> bool {
    let Some(kind) = call.field("type").filter(|kind| !kind.is_null()) else {
        return !has_only_custom_object(call);
    };
    match kind.text() {
        Some(word) if word.trim().is_empty() => !has_only_custom_object(call),
        Some(word) => word == "function",
        None => false,
    }
}

/// Returns whether an item of `tool_calls` calls a custom tool, by the same rules as [`calls_function`].
fn calls_custom(call: Value<'_>) -> bool {
    let word = call.field("type").filter(|kind| !kind.is_null()).map(Value::text);
    match word {
        Some(Some(word)) if !word.trim().is_empty() => word == CUSTOM_TYPE,
        Some(None) => false,
        None | Some(Some(_)) => has_only_custom_object(call),
    }
}

fn has_only_custom_object(call: Value<'_>) -> bool {
    let is_object = |name| call.field(name).is_some_and(|value| value.kind() == Kind::Object);
    is_object("custom") && !is_object("function")
}

fn non_empty(value: Option<Value<'_>>) -> Option<String> {
    value.and_then(Value::text).map(std::borrow::Cow::into_owned).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_calls_and_custom_tool_calls_are_distinguished() {
        let kinds = |call: &str| {
            let message = format!("{{\"tool_calls\":[{call}]}}");
            let message = Value::parse_str(&message).unwrap();
            CallView::message_calls(&Fields::new(message))
                .map(|call| (call.is_readable, call.free_text))
                .collect::<Vec<_>>()
        };
        for call in [
            r#"{"type":"function","function":{"name":"f"}}"#,
            r#"{"type":"function","function":{"name":"f"},"custom":null}"#,
            r#"{"type":null,"function":{"arguments":"{"}}"#,
            r#"{"type":"","function":{"arguments":"{"}}"#,
            r#"{"function":{"arguments":"{"}}"#,
            r#"{"index":0}"#,
        ] {
            assert_eq!(kinds(call), [(true, false)], "{call}");
        }
        for call in [
            r#"{"type":"custom","custom":{"name":"f","input":"x"}}"#,
            r#"{"type":"custom"}"#,
            r#"{"custom":{"input":"x"}}"#,
            r#"{"type":"","custom":{"input":"x"},"function":null}"#,
        ] {
            assert_eq!(kinds(call), [(true, true)], "{call}");
        }
        for call in [
            r#"{"type":"builtin_function","function":{"name":"f","arguments":"{"}}"#,
            r#"{"type":7,"function":{"name":"f"}}"#,
            r#"{"type":7,"custom":{"name":"f"}}"#,
        ] {
            assert_eq!(kinds(call), [(false, false)], "{call}");
        }
        let legacy = Value::parse_str(r#"{"function_call":{"name":"f"}}"#).unwrap();
        assert!(CallView::message_calls(&Fields::new(legacy)).all(|call| call.is_readable && call.legacy));
    }
}
