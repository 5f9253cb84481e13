//! The libraries that are compared.

use std::collections::BTreeSet;

use endmark_text::{CompleteError, Format, complete};
use jiter::{JsonValue, PartialMode};
use serde_json::{Number, Value};

/// A function that turns cut JSON into a value.
#[derive(Clone, Copy)]
pub struct Closer {
    pub name: &'static str,
    pub close: fn(&[u8]) -> Option<ClosedText>,
}

/// The value that a closer made of a cut document.
pub struct ClosedText {
    pub value: Value,
    /// JSON Pointers of the values that are marked as unfinished. `None` if the closer does not mark values.
    pub unfinished: Option<BTreeSet<String>>,
}

/// All closers, Endmark first.
pub const CLOSERS: [Closer; 3] = [
    Closer { name: "Endmark", close: endmark },
    Closer { name: "jiter 0.18, trailing strings", close: trailing_strings },
    Closer { name: "jiter 0.18, partial", close: partial },
];

fn endmark(cut: &[u8]) -> Option<ClosedText> {
    let completed = match complete(cut, &Format::Json) {
        Ok(completed) => completed,
        Err(CompleteError::NoValue) => return None,
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(cut)),
    };
    let unfinished = completed.unfinished().map(|place| place.pointer.to_owned()).collect();
    let value = serde_json::from_str(&completed.text).expect("a closed text is JSON");
    Some(ClosedText { value, unfinished: Some(unfinished) })
}

fn trailing_strings(cut: &[u8]) -> Option<ClosedText> {
    jiter(cut, PartialMode::TrailingStrings)
}

fn partial(cut: &[u8]) -> Option<ClosedText> {
    jiter(cut, PartialMode::On)
}

fn jiter(cut: &[u8], mode: PartialMode) -> Option<ClosedText> {
    let value = JsonValue::parse_with_config(cut, false, mode).ok()?;
    Some(ClosedText { value: value_of(&value), unfinished: None })
}

/// Converts a `jiter` value to the same `serde_json` value.
fn value_of(value: &JsonValue<'_>) -> Value {
    match value {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(said) => Value::Bool(*said),
        JsonValue::Int(number) => Value::from(*number),
        JsonValue::BigInt(number) => number.to_string().parse::<Number>().map_or(Value::Null, Value::Number),
        JsonValue::Float(number) => Value::from(*number),
        JsonValue::Str(text) => Value::String(text.to_string()),
        JsonValue::Array(items) => items.iter().map(value_of).collect(),
        JsonValue::Object(members) => {
            members.iter().map(|(name, value)| (name.to_string(), value_of(value))).collect()
        }
    }
}
