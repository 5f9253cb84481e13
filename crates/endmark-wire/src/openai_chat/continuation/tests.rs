use proptest::prelude::*;
use serde_json::{Value as Tree, json};

use super::*;
use crate::reply::ToolCall;

const TERMS: Terms = Terms { limit: 4096, stream: false, include_usage: false };

fn request(tree: &Tree) -> ChatRequest {
    ChatRequest::parse(&serde_json::to_vec(tree).unwrap()).unwrap()
}

fn tree(body: &[u8]) -> Tree {
    serde_json::from_slice(body).unwrap()
}

#[test]
fn a_continuation_streams_as_requested() {
    let continuation_of = |body: Tree, stream, include_usage| {
        let body = tree(&request(&body).with_limit(Terms { limit: 1, stream, include_usage }));
        (body.get("stream").cloned(), body.get("stream_options").cloned())
    };
    let options = |include: bool| Some(json!({"x": 1, "include_usage": include}));
    let plain = json!({"messages": []});
    assert_eq!(continuation_of(plain.clone(), false, true), (None, None));
    assert_eq!(continuation_of(plain.clone(), true, false), (Some(json!(true)), None));
    assert_eq!(continuation_of(plain, true, true), (Some(json!(true)), Some(json!({"include_usage": true}))));
    let streamed = json!({"messages": [], "stream": true, "stream_options": {"x": 1, "include_usage": true}});
    assert_eq!(continuation_of(streamed.clone(), false, false), (Some(json!(false)), None));
    assert_eq!(continuation_of(streamed.clone(), true, false), (Some(json!(true)), options(false)));
    assert_eq!(continuation_of(streamed, true, true), (Some(json!(true)), options(true)));
    let null = json!({"messages": [], "stream": null, "stream_options": null});
    assert_eq!(continuation_of(null, true, true), (Some(json!(true)), Some(json!({"include_usage": true}))));
}

#[test]
fn the_limit_is_set_in_the_clients_own_field() {
    let limits = |body: &str| {
        let body = tree(&ChatRequest::parse(body.as_bytes()).unwrap().with_limit(TERMS));
        (body.get("max_tokens").cloned(), body.get("max_completion_tokens").cloned())
    };
    let new = Some(json!(4096));
    assert_eq!(limits(r#"{"messages":[],"max_tokens":1}"#), (new.clone(), None));
    assert_eq!(limits(r#"{"messages":[],"max_completion_tokens":1}"#), (None, new.clone()));
    assert_eq!(
        limits(r#"{"messages":[],"max_tokens":1,"max_completion_tokens":2}"#),
        (new.clone(), new.clone())
    );
    assert_eq!(limits(r#"{"messages":[],"max_tokens":1,"max_tokens":2}"#), (new.clone(), None));
    assert_eq!(limits(r#"{"messages":[]}"#), (None, new.clone()));
    assert_eq!(limits(r#"{"messages":[],"max_tokens":null}"#), (Some(Tree::Null), new));
}

#[test]
fn empty_arguments_are_not_shown() {
    let shown = |arguments: &str| {
        let call = ToolCall { name: "w".to_owned(), arguments: arguments.to_owned(), ..ToolCall::default() };
        hermes_prefill(&Partial::ToolCall { call: &call, content_before: "", calls_before: &[] })
    };
    let begin = "<tool_call>\n{\"name\": \"w\", \"arguments\":";
    for nothing in ["", "{", "{\n ", " "] {
        assert_eq!(shown(nothing), begin, "{nothing:?}");
    }
    assert_eq!(shown("{\""), format!("{begin} {{\""));
    assert_eq!(shown("{\"a\": "), format!("{begin} {{\"a\":"));
}

#[test]
fn a_reply_that_ends_with_a_call_has_no_prefill() {
    let call =
        json!({"role": "assistant", "content": "x", "tool_calls": [{"id": "1", "function": {"name": "f"}}]});
    let request = request(&json!({"messages": [call]}));
    assert_eq!(request.prefill, None);
    let body = tree(&request.with_prompt(&Partial::Text("so far"), "go on", TERMS));
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["assistant", "assistant", "user"]);
    let empty = json!({"role": "assistant", "content": null, "tool_calls": []});
    let request = super::tests::request(&json!({"messages": [empty]}));
    let body =
        tree(&request.with_prefill(&Partial::Text("x"), TERMS, PrefillVariant::Plain, ToolPrefill::Hermes));
    assert_eq!(body["messages"], json!([{"role": "assistant", "content": "x", "tool_calls": []}]));
}

#[test]
fn an_empty_reply_is_not_shown_before_a_prompt() {
    let request = request(&json!({"messages": [{"role": "user", "content": "Hi"}]}));
    let body = tree(&request.with_prompt(&Partial::Text(""), "go on", TERMS));
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}

/// Any value, to cover fields of the wrong type.
fn any_value() -> impl Strategy<Value = Tree> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Tree::from),
        any::<i32>().prop_map(Tree::from),
        ".{0,6}".prop_map(Tree::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!({"include_usage": true})),
        Just(json!([{"type": "text", "text": "part"}])),
        Just(json!([{"function": {"name": "f", "parameters": {}}}])),
    ]
}

fn any_message() -> impl Strategy<Value = Tree> {
    let role = prop::sample::select(vec!["system", "user", "assistant", "tool"]);
    (role, prop::option::of(any_value()), prop::option::of(any_value())).prop_map(|(role, content, calls)| {
        let mut message = json!({"role": role});
        if let Some(content) = content {
            message["content"] = content;
        }
        if let Some(calls) = calls {
            message["tool_calls"] = calls;
        }
        message
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For any request, its continuations are JSON, have the given terms and the right last message, and keep
    /// everything else.
    #[test]
    fn any_request_has_valid_continuations(
        messages in prop::collection::vec(any_message(), 0..4),
        fields in prop::collection::btree_map(prop::sample::select(vec![
            "model", "n", "stream", "stream_options", "max_tokens", "max_completion_tokens", "stop", "tools",
            "response_format", "logprobs", "seed", "unknown",
        ]), any_value(), 0..8),
        so_far in ".{1,10}",
        stream: bool,
    ) {
        let mut body = json!({"messages": messages});
        for (name, value) in &fields {
            body[name] = value.clone();
        }
        let request = request(&body);
        let terms = Terms { limit: 77, stream, include_usage: stream };
        let text = Partial::Text(&so_far);
        let prefill = request.with_prefill(&text, terms, PrefillVariant::Plain, ToolPrefill::Hermes);
        let prompt = request.with_prompt(&text, "go on", terms);
        for body in [&prefill, &prompt] {
            let continuation_of = ChatRequest::parse(body).unwrap();
            prop_assert_eq!((continuation_of.limit, continuation_of.stream, continuation_of.include_usage, continuation_of.choices), (Some(77), stream, stream, 1));
            let body = tree(body);
            for name in ["seed", "unknown", "model", "stop"] {
                prop_assert_eq!(body.get(name), fields.get(name), "{}", name);
            }
            // All messages but the last are unchanged.
            let before = messages.len().saturating_sub(1);
            prop_assert_eq!(&body["messages"].as_array().unwrap()[..before], &messages[..before]);
        }
        let own = request.prefill.clone().unwrap_or_default();
        prop_assert_eq!(ChatRequest::parse(&prefill).unwrap().prefill, Some(format!("{own}{so_far}")));
        let prompt = tree(&prompt);
        prop_assert_eq!(prompt["messages"].as_array().unwrap().last(), Some(&json!({"role": "user", "content": "go on"})));
        prop_assert_eq!((prompt.get("tools"), prompt.get("response_format")), (None, None));
    }
}
