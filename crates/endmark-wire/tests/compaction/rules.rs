//! The providers' rules for conversations, from their documentation, checked on the bytes of a request.

use std::collections::BTreeSet;

use serde_json::Value;

/// Panics if a provider would refuse the request because of its calls, results or order.
pub(crate) fn check(format: &str, body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap();
    match format {
        "openai_chat" => chat(body["messages"].as_array().unwrap()),
        "openai_responses" => responses(body["input"].as_array().unwrap()),
        "anthropic_messages" => messages(body["messages"].as_array().unwrap()),
        "gemini" => gemini(body["contents"].as_array().unwrap()),
        other => panic!("no format {other}"),
    }
}

fn ids<'v>(values: impl Iterator<Item = &'v Value>, name: &str) -> Vec<String> {
    let mut ids: Vec<String> = values.map(|value| value[name].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// "An assistant message with `tool_calls` must be followed by tool messages responding to each `tool_call_id`."
fn chat(messages: &[Value]) {
    let mut rest = messages.iter().peekable();
    while let Some(message) = rest.next() {
        assert_ne!(message["role"], "tool", "a result without its call: {message}");
        let calls = ids(list(message, "tool_calls").iter(), "id");
        let mut answers = Vec::new();
        while answers.len() < calls.len() {
            let next = rest.next_if(|next| next["role"] == "tool");
            assert!(next.is_some(), "a call without its result");
            answers.extend(next);
        }
        assert_eq!(ids(answers.into_iter(), "tool_call_id"), calls);
        assert!(!message.as_object().unwrap().contains_key("tool_calls") || !calls.is_empty());
    }
}

/// Ids pair calls with outputs, and the item that reasoning led to follows the reasoning.
fn responses(items: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        if kind.ends_with("_call_output") {
            let id = item["call_id"].as_str().unwrap();
            let call = open.iter().rposition(|open| *open == id);
            open.remove(call.unwrap_or_else(|| panic!("an output without its call: {item}")));
        } else if let Some(id) = item["call_id"].as_str() {
            open.push(id);
        } else if kind == "reasoning" {
            let next = items.get(at + 1).map(|next| (next["type"].as_str(), next["role"].as_str()));
            let follows = matches!(next, Some((Some("function_call"), _) | (_, Some("assistant"))));
            assert!(follows, "reasoning without what it led to: {next:?}");
        }
    }
    assert!(open.is_empty(), "calls without output: {open:?}");
}

/// The user's content after a message with calls begins with the results. The server merges consecutive
/// messages of one role.
fn messages(messages: &[Value]) {
    let blocks = |message: &Value| match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        text => vec![serde_json::json!({"type": "text", "text": text})],
    };
    let mut merged: Vec<(String, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        match merged.last_mut() {
            Some((last, all)) if last == role => all.extend(blocks(message)),
            _ => merged.push((role.to_owned(), blocks(message))),
        }
        assert!(!blocks(message).is_empty(), "an empty message");
    }
    let first = merged.iter().find(|(role, _)| role != "system");
    assert!(first.is_none_or(|(role, _)| role == "user"), "the first message is not the user's");
    let of_kind = |blocks: &[Value], kind: &str| {
        blocks.iter().filter(|block| block["type"] == kind).cloned().collect::<Vec<_>>()
    };
    let mut expected: Vec<String> = Vec::new();
    for (role, blocks) in &merged {
        let answers: Vec<&Value> = blocks.iter().take(expected.len()).collect();
        if !expected.is_empty() {
            assert_eq!(role, "user", "calls without results");
            assert!(
                answers.iter().all(|block| block["type"] == "tool_result"),
                "a result is not where it must be"
            );
            assert_eq!(ids(answers.iter().copied(), "tool_use_id"), expected);
        }
        let results = of_kind(blocks, "tool_result");
        assert_eq!(results.len(), expected.len(), "results without calls");
        expected = ids(of_kind(blocks, "tool_use").iter(), "id");
    }
    assert!(expected.is_empty(), "calls without results at the end");
}

/// The turn after the calls contains exactly one response for each call and nothing else. Names pair them.
fn gemini(contents: &[Value]) {
    assert!(contents.first().is_none_or(|first| first["role"] == "user"), "the first turn is not the user's");
    let named = |content: &Value, kind: &str| {
        ids(list(content, "parts").iter().map(|part| &part[kind]).filter(|it| it.is_object()), "name")
    };
    let mut expected: Vec<String> = Vec::new();
    let mut roles = BTreeSet::new();
    for content in contents {
        roles.insert(content["role"].as_str().unwrap());
        let responses = named(content, "functionResponse");
        assert_eq!(responses, expected, "responses do not match the calls before them");
        assert!(
            responses.is_empty() || responses.len() == list(content, "parts").len(),
            "a turn of responses holds more"
        );
        assert!(!list(content, "parts").is_empty(), "an empty turn");
        expected = named(content, "functionCall");
    }
    assert!(expected.is_empty() && roles.len() <= 2, "calls without responses at the end");
}
