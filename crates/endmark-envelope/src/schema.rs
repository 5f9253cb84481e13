//! JSON Schemas of answers and inputs. (EN-1, EN-4)

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::envelope::Meta;
use crate::error::ErrorBody;
use crate::limits::{Limit, Limits};
use crate::path::{FieldPattern, Segment, pointer_step};
use crate::rules::FieldRules;
use crate::warning::Warning;

/// The keyword for the maximum UTF-8 bytes of a text, which JSON Schema lacks.
pub const MAX_BYTES: &str = "x-max-bytes";

/// The shape of a serialised [`crate::Envelope`]. It exists for the schema alone, because the envelope has more
/// fields.
#[derive(JsonSchema)]
#[schemars(rename = "Envelope", inline, description = "One answer: all five members are always there.")]
#[expect(dead_code, reason = "its schema is all that is asked for")]
struct Answer<T> {
    /// Whether the command succeeded: true exactly if there is no error.
    ok: bool,
    /// The result of the command.
    data: Option<T>,
    /// Why it failed.
    error: Option<ErrorBody>,
    /// Information for the reader of a successful answer.
    warnings: Vec<Warning>,
    /// Facts about the whole answer.
    meta: Meta,
}

/// Returns the schema of an envelope with `T` as data (EN-1).
///
/// ```
/// use endmark_envelope::schema;
///
/// #[derive(schemars::JsonSchema)]
/// struct Created {
///     number: u64,
/// }
///
/// let schema = schema::for_answer::<Created>();
/// assert_eq!(schema.pointer("/required").unwrap().as_array().unwrap().len(), 5);
/// assert_eq!(schema.pointer("/$defs/Created/properties/number/type").unwrap(), "integer");
/// ```
pub fn for_answer<T: JsonSchema>() -> Schema {
    // In a serialised envelope, a null member is present and never omitted.
    generate::<Answer<T>>(SchemaSettings::draft2020_12().for_serialize())
}

/// Returns the schema of input of type `T` with its limits: `maxLength` for characters, `maxItems` for items and
/// [`MAX_BYTES`] for bytes (EN-4).
///
/// ```
/// use endmark_envelope::{Limits, schema};
///
/// #[derive(Limits, schemars::JsonSchema)]
/// struct NewIssue {
///     #[limits(max_bytes = 255)]
///     title: String,
/// }
///
/// let schema = schema::for_limits::<NewIssue>();
/// assert_eq!(schema.pointer("/properties/title/x-max-bytes").unwrap(), 255);
/// ```
pub fn for_limits<T: JsonSchema + Limits>() -> Schema {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12());
    let mut rules = FieldRules::default();
    T::declare(&FieldPattern::root(), Limit::default(), &mut rules);
    for (places, rule) in rules.iter() {
        let mut keywords = Map::new();
        let mut add = |keyword: &str, limit: Option<u64>| {
            keywords.extend(limit.map(|limit| (keyword.to_owned(), Value::from(limit))));
        };
        add(MAX_BYTES, rule.max_bytes);
        add("maxLength", rule.max_chars);
        add("maxItems", rule.max_items);
        if let Some(place) = find_schema(schema.as_value(), places)
            && let Some(Value::Object(found)) = schema.pointer_mut(&place)
        {
            if !found.contains_key("items") && found.contains_key("additionalProperties") {
                let items = keywords.remove("maxItems");
                keywords.extend(items.map(|items| ("maxProperties".to_owned(), items)));
            }
            found.extend(keywords);
        }
    }
    schema
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    settings.into_generator().into_root_schema_for::<T>()
}

/// Returns the JSON Pointer of the schema of these values. It follows references and skips `null`
/// alternatives.
fn find_schema(schema: &Value, places: &FieldPattern) -> Option<String> {
    let mut at = String::new();
    for step in places.steps() {
        at = resolve_reference(schema, at)?;
        let here = schema.pointer(&at)?;
        let inner = match step {
            Some(Segment::Key(name)) => format!("properties/{}", pointer_step(name)),
            Some(Segment::Index(_)) => "items".to_owned(),
            None if here.get("items").is_some() => "items".to_owned(),
            None => "additionalProperties".to_owned(),
        };
        at = format!("{at}/{inner}");
    }
    resolve_reference(schema, at)
}

/// Follows references, and chooses the only alternative that is not null.
fn resolve_reference(schema: &Value, mut at: String) -> Option<String> {
    loop {
        let here = schema.pointer(&at)?;
        if let Some(reference) = here.get("$ref").and_then(Value::as_str) {
            let inside = reference.strip_prefix('#')?.to_owned();
            at = inside;
        } else if let Some(alternatives) = here.get("anyOf").and_then(Value::as_array) {
            let non_null = alternatives.iter().position(|other| other["type"] != "null")?;
            at = format!("{at}/anyOf/{non_null}");
        } else {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{Limits, Page};

    #[derive(JsonSchema, Limits)]
    struct NewIssue {
        #[limits(max_bytes = 255)]
        title: String,
        #[limits(max_chars = 9)]
        body: Option<String>,
        #[limits(max_bytes = 50, max_items = 10)]
        labels: Option<Vec<String>>,
        author: Option<Person>,
        watchers: Vec<Person>,
        #[limits(max_items = 4, max_bytes = 8)]
        fields: BTreeMap<String, String>,
    }

    #[derive(JsonSchema, Limits)]
    struct Person {
        #[limits(max_chars = 40)]
        name: String,
    }

    #[test]
    fn limits_appear_in_the_right_schemas() {
        let schema = for_limits::<NewIssue>();
        for (pointer, expected) in [
            ("/properties/title/x-max-bytes", 255),
            ("/properties/body/maxLength", 9),
            ("/properties/labels/maxItems", 10),
            ("/properties/labels/items/x-max-bytes", 50),
            ("/properties/fields/maxProperties", 4),
            ("/properties/fields/additionalProperties/x-max-bytes", 8),
            ("/$defs/Person/properties/name/maxLength", 40),
        ] {
            assert_eq!(schema.pointer(pointer), Some(&json!(expected)), "{pointer} in {}", schema.as_value());
        }
    }

    #[test]
    fn all_members_of_an_envelope_and_its_error_are_required() {
        let schema = for_answer::<Page<Person>>();
        let required = |pointer: &str| schema.pointer(pointer).unwrap().as_array().unwrap().len();
        assert_eq!(required("/required"), 5);
        assert_eq!(required("/$defs/ErrorBody/required"), 8);
        assert!(schema.pointer("/$defs/Warning/properties/returned_bytes").is_some());
    }
}
