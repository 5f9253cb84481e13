//! Tool calls in Chat Completions: `tool_calls`, and the legacy `function_call`.

use crate::json::{Fields, Kind, Value, quoted};
use crate::reply::ToolCall;

/// The call as an item of a message's `tool_calls`.
pub(super) fn call_json(call: &ToolCall) -> String {
    let id = call.id.as_ref().map(|id| format!("\"id\":{},", quoted(id))).unwrap_or_default();
    format!(
        "{{{id}\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}}}",
        quoted(&call.name),
        quoted(&call.arguments)
    )
}

/// What an item of `tool_calls`, or a `function_call`, says; as much as is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallView<'a> {
    /// The index it names itself.
    pub(super) index: Option<u32>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// The value that holds the arguments.
    pub(super) arguments: Option<Value<'a>>,
    pub(super) legacy: bool,
    /// Whether it calls a function. What a call of another kind holds, as the free text of a `custom` tool,
    /// is not read.
    pub(super) of_function: bool,
}

impl<'a> CallView<'a> {
    /// The calls of a message or of a delta: `tool_calls`, and the legacy `function_call`.
    pub(super) fn all(message: &Fields<'a>) -> impl Iterator<Item = CallView<'a>> + use<'a> {
        let calls = message.get("tool_calls").into_iter().flat_map(Value::items).map(|call| CallView {
            index: call.field("index").and_then(Value::as_u64).and_then(|index| u32::try_from(index).ok()),
            id: non_empty(call.field("id")),
            of_function: calls_function(call),
            ..Self::function(call.field("function"), false)
        });
        let legacy = message.get("function_call").filter(|call| call.kind() == Kind::Object);
        calls.chain(legacy.map(|call| Self::function(Some(call), true)))
    }

    fn function(function: Option<Value<'a>>, legacy: bool) -> Self {
        let name = non_empty(function.and_then(|function| function.field("name")));
        let arguments = function.and_then(|function| function.field("arguments"));
        CallView { index: None, id: None, name, arguments, legacy, of_function: true }
    }

    /// The arguments' text, and whether it is exactly what was sent. Some servers send an object where the
    /// format has a string: its source is the text then.
    pub(super) fn arguments_text(&self) -> (String, bool) {
        match self.arguments.map(|arguments| (arguments, arguments.decoded())) {
            Some((_, Some(decoded))) => (decoded.text.into_owned(), decoded.exact),
            Some((arguments, None)) if arguments.kind() == Kind::Object => (arguments.raw().to_owned(), true),
            Some((_, None)) | None => (String::new(), true),
        }
    }
}

/// Whether an item of `tool_calls` calls a function, by its `type`. Pieces of a stream come without one, and
/// from some servers with null or a blank one: then a `custom` object without a `function` tells.
fn calls_function(call: Value<'_>) -> bool {
    let Some(kind) = call.field("type").filter(|kind| !kind.is_null()) else { return !holds_custom(call) };
    match kind.text() {
        Some(word) if word.trim().is_empty() => !holds_custom(call),
        Some(word) => word == "function",
        None => false,
    }
}

fn holds_custom(call: Value<'_>) -> bool {
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
    fn which_calls_are_of_functions() {
        let of_function = |call: &str| {
            let message = format!("{{\"tool_calls\":[{call}]}}");
            let message = Value::parse_str(&message).unwrap();
            CallView::all(&Fields::of(message)).map(|call| call.of_function).collect::<Vec<_>>()
        };
        for call in [
            r#"{"type":"function","function":{"name":"f"}}"#,
            r#"{"type":"function","function":{"name":"f"},"custom":null}"#,
            r#"{"type":null,"function":{"arguments":"{"}}"#,
            r#"{"type":"","function":{"arguments":"{"}}"#,
            r#"{"function":{"arguments":"{"}}"#,
            r#"{"index":0}"#,
        ] {
            assert_eq!(of_function(call), [true], "{call}");
        }
        for call in [
            r#"{"type":"custom","custom":{"name":"f","input":"x"}}"#,
            r#"{"type":"custom"}"#,
            r#"{"type":"builtin_function","function":{"name":"f","arguments":"{"}}"#,
            r#"{"custom":{"input":"x"}}"#,
            r#"{"type":"","custom":{"input":"x"},"function":null}"#,
            r#"{"type":7,"function":{"name":"f"}}"#,
        ] {
            assert_eq!(of_function(call), [false], "{call}");
        }
        let legacy = Value::parse_str(r#"{"function_call":{"name":"f"}}"#).unwrap();
        assert!(CallView::all(&Fields::of(legacy)).all(|call| call.of_function && call.legacy));
    }
}
