//! Responses requests that refer to stored items by id, as the AI SDK does.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::{Answer, Reply, Request, Script};

use crate::support::Endmark;

const WHOLE_ARGUMENTS: &str = r#"{"path":"a.txt","text":"all of it"}"#;

fn response(id: &str, status: &str, output: &[Value]) -> Value {
    let details = if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    json!({"id": id, "object": "response", "created_at": 1, "status": status, "error": null, "model": "m",
        "incomplete_details": details, "output": output, "store": true,
        "usage": {"input_tokens": 5, "output_tokens": 9, "total_tokens": 14}})
}

fn call(status: &str, arguments: &str) -> Value {
    json!({"id": "fc_7", "type": "function_call", "status": status, "call_id": "call_7", "name": "write",
        "arguments": arguments})
}

fn message(text: &str) -> Value {
    json!({"id": "msg_7", "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "text": text}]})
}

fn frames(events: &[Value]) -> Answer {
    let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    Answer::sse(events.iter().map(frame).collect::<Vec<_>>())
}

/// Returns a call that the limit cut.
fn cut_call_answer(stream: bool) -> Answer {
    let arguments = &WHOLE_ARGUMENTS[..20];
    let item = call("incomplete", arguments);
    let end = response("resp_1", "incomplete", std::slice::from_ref(&item));
    if !stream {
        return Answer::json(200, &end);
    }
    frames(&[
        json!({"type": "response.created", "response": response("resp_1", "in_progress", &[])}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": call("in_progress", "")}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_7", "output_index": 0, "delta": arguments}),
        json!({"type": "response.incomplete", "response": end}),
    ])
}

fn tools() -> Value {
    json!([{"type": "function", "name": "write", "parameters": {"type": "object"}}])
}

async fn ask(address: SocketAddr, body: &Value) -> Reply {
    let request = Request::post(address, "/v1/responses").header("authorization", "Bearer key");
    request.json(body).send().await.read().await
}

fn last_request(endmark: &Endmark) -> Value {
    serde_json::from_slice(&endmark.upstream.requests().last().unwrap().body).unwrap()
}

fn next_request() -> Value {
    json!({"model": "m", "tools": tools(), "input": [{"role": "user", "content": "Write."},
        {"type": "item_reference", "id": "rs_7"}, {"type": "item_reference", "id": "fc_7"},
        {"type": "function_call_output", "call_id": "call_7", "output": "done"}]})
}

/// The provider stored the call as it was cut, so the gateway replaces the reference with the whole call.
#[tokio::test]
async fn a_reference_to_a_completed_call_is_replaced_by_the_whole_call() {
    for stream in [false, true] {
        let rest = response("resp_2", "completed", &[message(&WHOLE_ARGUMENTS[20..])]);
        let last = Answer::json(200, &response("resp_3", "completed", &[message("Written.")]));
        let script =
            Script::new().then(cut_call_answer(stream)).then(Answer::json(200, &rest)).default_answer(last);
        let endmark = Endmark::start_resuming(script).await;
        let body = json!({"model": "m", "stream": stream, "tools": tools(), "input": "Write."});
        let reply = ask(endmark.address, &body).await;
        assert!(reply.text().contains(&serde_json::to_string(WHOLE_ARGUMENTS).unwrap()), "{}", reply.text());
        let restarted = endmark.restart(|_| {});
        for address in [endmark.address, restarted.address] {
            let reply = ask(address, &next_request()).await;
            assert_eq!(reply.header("x-endmark-restored-items"), Some("1"));
            let sent = last_request(&endmark);
            assert_eq!(sent["input"][1], json!({"type": "item_reference", "id": "rs_7"}));
            assert_eq!(sent["input"][2]["arguments"], WHOLE_ARGUMENTS);
            assert_eq!(sent["input"][2]["call_id"], "call_7");
        }
        // A reference of another client is not resolved.
        let other = Request::post(endmark.address, "/v1/responses").header("authorization", "Bearer other");
        other.json(&next_request()).send().await.read().await;
        assert_eq!(last_request(&endmark)["input"][2], json!({"type": "item_reference", "id": "fc_7"}));
    }
}

/// The gateway does not store items if the provider must not.
#[tokio::test]
async fn a_reply_that_must_not_be_stored_is_not_kept() {
    let rest = response("resp_2", "completed", &[message(&WHOLE_ARGUMENTS[20..])]);
    let script = Script::new()
        .then(cut_call_answer(false))
        .then(Answer::json(200, &rest))
        .default_answer(Answer::json(200, &rest));
    let endmark = Endmark::start_resuming(script).await;
    ask(endmark.address, &json!({"model": "m", "store": false, "tools": tools(), "input": "Write."})).await;
    ask(endmark.address, &next_request()).await;
    assert_eq!(last_request(&endmark)["input"][2], json!({"type": "item_reference", "id": "fc_7"}));
}

/// Returns one step of an agent: reasoning, calls and their outputs, sometimes with a user message between
/// them.
fn step(number: usize) -> Vec<Value> {
    let reference = |id: String| json!({"type": "item_reference", "id": id});
    let mut items = vec![reference(format!("rs_{number}"))];
    let calls = 1 + number % 3;
    items.extend((0..calls).map(|call| reference(format!("fc_{number}_{call}"))));
    for call in 0..calls {
        if call == 1 && !number.is_multiple_of(2) {
            items.push(json!({"role": "user", "content": format!("Hint {number}")}));
        }
        let output = format!("Order A-{number} has an amount of {number}17 and agrees. ").repeat(12);
        items.push(json!({"type": "function_call_output", "call_id": format!("call_{number}_{call}"), "output": output}));
    }
    if number.is_multiple_of(4) {
        items.push(json!({"id": format!("msg_{number}")}));
        items.push(json!({"role": "user", "content": format!("Go on after {number}")}));
    }
    items
}

/// Each output needs its call, each call needs its output, and reasoning needs the item after it.
#[tokio::test]
async fn compaction_keeps_references_and_outputs_together() {
    let answer = Answer::json(200, &response("resp_1", "completed", &[message("I see.")]));
    let endmark = Endmark::start_with(Script::new().default_answer(answer), |settings| {
        settings.compact.window.trigger_tokens = 6_000;
        settings.compact.window.budget_tokens = 8_000;
    })
    .await;
    let mut compacted = 0;
    for steps in 30..60 {
        let mut input = vec![json!({"role": "user", "content": "Check the orders."})];
        input.extend((0..steps).flat_map(step));
        let body = json!({"model": "m", "tools": tools(), "input": input});
        let request = Request::post(endmark.address, "/v1/responses").header("authorization", "Bearer key");
        let reply = request.header("x-endmark-compact", "on").json(&body).send().await.read().await;
        compacted += usize::from(reply.header("x-endmark-compacted").is_some());
        let sent = last_request(&endmark)["input"].as_array().unwrap().clone();
        let ids = |field: &str, prefix: &str| -> BTreeSet<String> {
            let values = sent.iter().filter_map(|item| item[field].as_str()?.strip_prefix(prefix));
            values.map(str::to_owned).collect()
        };
        let (calls, outputs) = (ids("id", "fc_"), ids("call_id", "call_"));
        assert_eq!(calls, outputs, "{steps}");
        assert!(!calls.is_empty());
        for (position, item) in sent.iter().enumerate() {
            if let Some(number) = item["id"].as_str().and_then(|id| id.strip_prefix("rs_")) {
                assert_eq!(sent[position + 1]["id"], format!("fc_{number}_0"), "{steps}");
            }
        }
    }
    assert!(compacted > 20, "{compacted}");
}
