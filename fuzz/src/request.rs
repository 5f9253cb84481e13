//! Requests of Chat Completions (PC-3, PC-9). The input is the body.

use std::fmt;

use endmark_wire::deciding::{Restrictions, check as check_deciding};
use endmark_wire::format::FORMATS;
use endmark_wire::json::{Kind, Value};
use endmark_wire::openai_chat::{ChatRequest, Partial, PrefillVariant, Terms, ToolCall, ToolPrefill};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::input::Numbers;

/// Top-level fields that a continuation may change, add or remove.
const CHANGEABLE_FIELDS: &[&str] = &[
    "messages",
    "n",
    "logprobs",
    "top_logprobs",
    "max_completion_tokens",
    "max_tokens",
    "stream",
    "stream_options",
    "continue_final_message",
    "add_generation_prompt",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "response_format",
    "grammar",
    "json_schema",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "prediction",
];

const TEXTS: &[&str] = &["", "Once ", "{\"a\": \"\\u00", "line\n\t\"quoted\" \u{0}é\u{1f600}"];

/// Checks that each continuation of an accepted request is accepted, has the given terms, and keeps all
/// unrelated fields.
pub fn check(bytes: &[u8]) {
    check_deciding_fields(bytes);
    let Ok(request) = ChatRequest::parse(bytes) else { return };
    assert_eq!(request.body(), bytes);
    let root = Value::parse(bytes).unwrap();
    for name in request.tool_names() {
        if let Some(schema) = request.tool_schema(&name) {
            assert_eq!(Value::parse_str(&schema).unwrap().kind(), Kind::Object);
        }
    }

    // A request without a message list is accepted but cannot be continued.
    if root.field("messages").is_none_or(|messages| messages.kind() != Kind::Array) {
        return;
    }
    let mut numbers = Numbers::of(bytes);
    let text = *numbers.pick(TEXTS);
    let call =
        ToolCall { name: "write \"file\"".to_owned(), arguments: text.to_owned(), ..ToolCall::default() };
    let before = [ToolCall { id: Some("1".to_owned()), arguments: "{}".to_owned(), ..call.clone() }];
    let partials = [
        Partial::Text(text),
        Partial::ToolCall { call: &call, content_before: "", calls_before: &[] },
        Partial::ToolCall { call: &call, content_before: "Sure.", calls_before: &before },
    ];
    let partial = numbers.pick(&partials);
    let terms =
        Terms { limit: numbers.below(1 << 40) as u64, stream: numbers.flip(), include_usage: numbers.flip() };
    let variant = *numbers.pick(&PrefillVariant::ALL);
    let tool = *numbers.pick(&[ToolPrefill::Hermes, ToolPrefill::Calls]);
    let prompt = *numbers.pick(TEXTS);

    let prefill = check_continuation(&request.with_prefill(partial, terms, variant, tool), root, terms);
    if let Partial::Text(text) = partial {
        let expected = format!("{}{text}", request.prefill.as_deref().unwrap_or_default());
        assert_eq!(prefill.prefill.unwrap_or_default(), expected);
        assert!(request.echoes(text).contains(&expected));
    }
    assert_eq!((&prefill.required_format, prefill.has_tools), (&request.required_format, request.has_tools));

    let prompted = check_continuation(&request.with_prompt(partial, prompt, terms), root, terms);
    assert!(prompted.required_format.is_none() && !prompted.has_tools && prompted.prefill.is_none());
    ends_in_question(&prompted, prompt);
    let corrected = check_continuation(&request.with_correction(partial, prompt, terms), root, terms);
    assert!(!corrected.has_tools && corrected.prefill.is_none());
    ends_in_question(&corrected, prompt);
    let again = check_continuation(&request.with_limit(terms), root, terms);
    assert_eq!(again.prefill, request.prefill);
}

/// Reads a continuation, and compares it with the original request.
fn check_continuation(body: &[u8], original: Value<'_>, terms: Terms) -> ChatRequest {
    let request = ChatRequest::parse(body).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(body));
    });
    assert_eq!((request.limit, request.stream, request.choices), (Some(terms.limit), terms.stream, 1));
    assert!(request.include_usage || !(terms.stream && terms.include_usage));
    let root = Value::parse(body).unwrap();
    assert_eq!(unchangeable_fields(root), unchangeable_fields(original));
    // All messages are kept, except that the continuation may extend an assistant message at the end.
    let (before, after) = (messages(original), messages(root));
    let kept = before.len().saturating_sub(1);
    assert_eq!(before[..kept], after[..kept]);
    assert!(after.len() >= before.len());
    request
}

fn unchangeable_fields(root: Value<'_>) -> Vec<(&str, &str)> {
    let fields = root.fields().filter(|field| !CHANGEABLE_FIELDS.iter().any(|name| field.has_name(name)));
    fields.map(|field| (field.key.raw(), field.value.raw())).collect()
}

fn messages(root: Value<'_>) -> Vec<&str> {
    root.field("messages").unwrap().items().map(Value::raw).collect()
}

fn ends_in_question(request: &ChatRequest, prompt: &str) {
    let root = Value::parse(request.body()).unwrap();
    let last = root.field("messages").unwrap().items().last().unwrap();
    assert_eq!(last.field("role").and_then(Value::text).as_deref(), Some("user"));
    assert_eq!(last.field("content").and_then(Value::text).as_deref(), Some(prompt));
}

/// Checks that an accepted request contains each deciding field at most once, even for a parser that ignores
/// case.
fn check_deciding_fields(bytes: &[u8]) {
    let Ok(root) = Value::parse(bytes) else { return };
    let Ok(Names(names)) = serde_json::from_slice(bytes) else { return };
    for format in FORMATS {
        if check_deciding(root, format.facts().deciding_fields, Restrictions { models: true, budget: true })
            .is_err()
        {
            continue;
        }
        for known in format.facts().deciding_fields {
            let is_meant = |name: &&String| known.names.iter().any(|known| lowercase_name(name) == *known);
            let matching: Vec<_> = names.iter().filter(is_meant).collect();
            assert!(matching.len() <= 1, "{matching:?}");
            assert!(matching.iter().all(|name| known.names.contains(&name.as_str())), "{matching:?}");
        }
    }
}

fn lowercase_name(name: &str) -> String {
    name.to_uppercase().to_lowercase()
}

/// The field names of an object, including duplicates.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Names;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
