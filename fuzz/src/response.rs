//! Responses of Chat Completions (PC-9). The input is the body.

use endmark_wire::json::{Kind, Value};
use endmark_wire::openai_chat::{ChatRequest, ChatResponse, ToolCall, Usage, error_body, read_error};

use crate::input::Numbers;

const REQUESTS: &[&str] =
    &[r#"{"model":"m","messages":[]}"#, r#"{"model":"m","messages":[],"stop":["END"],"max_tokens":3}"#];

const TEXTS: &[&str] = &["", "Hello", "{\"a\": \"b\\\"\"}", "line\n\u{0}é\u{1f600}"];

/// Checks that an edited response is read like the original, except for the edited fields.
pub fn check(bytes: &[u8]) {
    let mut numbers = Numbers::of(bytes);
    if let Some(error) = read_error(bytes) {
        let again = read_error(&error_body(&error.message, "endmark_test", error.code.as_deref(), None));
        assert_eq!(again.map(|again| again.message), Some(error.message));
    }
    let request = ChatRequest::parse(numbers.pick(REQUESTS).as_bytes()).unwrap();
    let Ok(response) = ChatResponse::parse(bytes, &request) else { return };
    assert_eq!(response.body(), bytes);
    assert_eq!(response.edit().finish(), bytes);
    let root = Value::parse(bytes).unwrap();
    for (position, choice) in response.choices.iter().enumerate() {
        let arguments: usize = choice.tool_calls.iter().map(|call| call.arguments.len()).sum();
        assert_eq!(choice.received_bytes, choice.text.len() + arguments);
        // If several choices have the same index, edits apply to the first of them.
        let first = response.choices.iter().position(|other| other.index == choice.index);
        if first == Some(position) && position < 8 {
            check_edit(&response, root, position, &request, &mut numbers);
        }
    }
    check_usage(&response, root, &request, &mut numbers);
}

fn check_edit(
    response: &ChatResponse,
    root: Value<'_>,
    position: usize,
    request: &ChatRequest,
    numbers: &mut Numbers,
) {
    let choice = &response.choices[position];
    let text = match numbers.below(3) {
        0 => format!("{} and on", choice.text),
        1 => choice.text.clone(),
        _ => (*numbers.pick(TEXTS)).to_owned(),
    };
    let message = root.at(&format!("choices[{position}].message"));
    let can_hold_text = message.is_some_and(|message| message.kind() == Kind::Object);
    let can_hold_finish = root.at(&format!("choices[{position}]")).unwrap().kind() == Kind::Object;

    let mut edit = response.edit();
    edit.set_text(choice.index, &text);
    // Clients distinguish choices by their index, so an edit must not change a choice with another index.
    edit.set_finish(choice.index, "length");
    let changed = edit.finish();
    let again = ChatResponse::parse(&changed, request).unwrap();
    assert_eq!(again.choices.len(), response.choices.len());
    for (other, (before, after)) in response.choices.iter().zip(&again.choices).enumerate() {
        if other == position {
            assert_eq!(&after.text, if can_hold_text { &text } else { &before.text });
            if can_hold_finish {
                assert_eq!(after.finish.as_ref().map(|finish| finish.reason.as_str()), Some("length"));
            }
            assert_eq!(after.tool_calls, before.tool_calls);
        } else {
            assert_eq!(after, before);
        }
    }
    assert_eq!(unchanged_fields(Value::parse(&changed).unwrap()), unchanged_fields(root));

    let calls = [ToolCall { id: Some("c".to_owned()), name: "f".to_owned(), ..ToolCall::default() }];
    let mut edit = response.edit();
    edit.set_tool_calls(choice.index, &calls);
    if let Some(call) = choice.tool_calls.last() {
        let mut edit = response.edit();
        edit.set_arguments(choice.index, call.index, &text);
        let again = ChatResponse::parse(&edit.finish(), request).unwrap();
        let again = again.choices[position].tool_calls.last().cloned();
        assert!(again.is_some_and(|again| again.arguments == text || call.arguments.is_empty()));
    }
    let again = ChatResponse::parse(&edit.finish(), request).unwrap();
    if can_hold_text {
        assert_eq!(again.choices[position].tool_calls.first().map(|call| call.name.as_str()), Some("f"));
    }
}

fn check_usage(response: &ChatResponse, root: Value<'_>, request: &ChatRequest, numbers: &mut Numbers) {
    if root.kind() != Kind::Object {
        return;
    }
    // Parts must not exceed their totals, as in all usage that is written. The reader adds a larger part to
    // its total.
    let (prompt, completion) = (numbers.below(1 << 40), numbers.below(1 << 40));
    let usage = Usage {
        prompt: prompt as u64,
        completion: completion as u64,
        total: (prompt + completion) as u64,
        written: None,
        cached: Some(numbers.below(prompt + 1) as u64),
        reasoning: Some(numbers.below(completion + 1) as u64),
        ..Usage::default()
    };
    let mut edit = response.edit();
    edit.set_usage(&usage);
    edit.set_endmark(&serde_json::value::RawValue::from_string("{\"a\": 1}".to_owned()).unwrap());
    let changed = edit.finish();
    let again = ChatResponse::parse(&changed, request).unwrap();
    assert_eq!(again.usage, Some(usage));
    assert_eq!(again.choices, response.choices);
    let changed = Value::parse(&changed).unwrap();
    assert_eq!(changed.at("endmark.a").and_then(Value::as_u64), Some(1));
    assert_eq!(unchanged_fields(changed), unchanged_fields(root));
}

/// Returns the fields that the edits do not change.
fn unchanged_fields(root: Value<'_>) -> Vec<(&str, &str)> {
    let touched = |field: &endmark_wire::json::Field<'_>| {
        ["choices", "usage", "endmark"].iter().any(|name| field.has_name(name))
    };
    root.fields().filter(|field| !touched(field)).map(|field| (field.key.raw(), field.value.raw())).collect()
}
