//! Converts Gemini's older `Schema` objects to JSON Schema. Their type names are in capitals, and a nullable value
//! has a flag.

use crate::edit::Edits;
use crate::json::{Fields, Kind, Value};

/// The maximum depth. The cost grows with the square of the depth, because each level scans all levels below
/// it.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Fields with a schema.
const SINGLE_SCHEMA_FIELDS: [&str; 2] = ["items", "additionalProperties"];
/// Fields with an array of schemas.
const SCHEMA_LIST_FIELDS: [&str; 2] = ["anyOf", "prefixItems"];
/// Fields with an object whose members are schemas.
const NAMED_SCHEMA_FIELDS: [&str; 2] = ["properties", "$defs"];

/// Returns the schema as JSON Schema. Fields that JSON Schema does not define stay and have no effect.
///
/// It visits only fields that contain schemas, so that a property named `type` is not converted. It stops at
/// a depth that no server accepts.
pub(super) fn as_json_schema(schema: Value<'_>) -> Option<String> {
    if schema.kind() != Kind::Object {
        return None;
    }
    // Make the schema a document of its own, so that only the schema is copied.
    let raw = schema.raw();
    let root = Value::from_checked(raw, 0..raw.len());
    let mut edits = Edits::for_document(root);
    let mut pending = vec![(root, 0)];
    while let Some((schema, depth)) = pending.pop() {
        let fields = Fields::new(schema);
        let nullable = fields.get("nullable").and_then(Value::as_bool) == Some(true);
        if let Some((kind, word)) = fields.get("type").and_then(|kind| Some((kind, kind.text()?))) {
            let word = word.to_ascii_lowercase();
            match (word.as_str(), nullable) {
                ("type_unspecified", _) => edits.remove_field(schema, "type"),
                (_, true) => edits.replace(kind, &format!("[\"{}\",\"null\"]", word.escape_default())),
                (_, false) => edits.set_text(kind, &word),
            }
        }
        if depth == MAX_SCHEMA_DEPTH {
            continue;
        }
        let mut inner: Vec<Value<'_>> =
            SINGLE_SCHEMA_FIELDS.iter().filter_map(|name| fields.get(name)).collect();
        inner.extend(SCHEMA_LIST_FIELDS.iter().filter_map(|name| fields.get(name)).flat_map(Value::items));
        let named = NAMED_SCHEMA_FIELDS.iter().filter_map(|name| fields.get(name)).flat_map(Value::fields);
        inner.extend(named.map(|field| field.value));
        pending.extend(inner.into_iter().map(|schema| (schema, depth + 1)));
    }
    String::from_utf8(edits.finish()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(schema: &str) -> String {
        as_json_schema(Value::parse_str(schema).unwrap()).unwrap()
    }

    #[test]
    fn schema_types_are_converted_to_lower_case() {
        assert_eq!(
            convert(
                r#"{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true},"n":{"type":"ARRAY","items":{"type":"INTEGER"}}},"enum":["STRING"]}"#
            ),
            r#"{"type":"object","properties":{"type":{"type":["string","null"],"nullable":true},"n":{"type":"array","items":{"type":"integer"}}},"enum":["STRING"]}"#
        );
        let own = r#"{ "type": "object", "required": ["a"] }"#;
        assert_eq!(convert(own), own);
        assert!(as_json_schema(Value::parse_str("[]").unwrap()).is_none());
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(20_000), "}".repeat(20_000));
        assert_eq!(convert(&deep), deep);
    }
}
