//! Calls of custom tools, which Codex uses by default. Their input is free text, so only the end of a reply
//! shows that one is cut.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::{Value, json};
use testkit::{Answer, Reply, Request, Script};

use crate::support::Endmark;

const PATCH: &str = "*** Begin Patch\n*** Update File: a.rs\n-let x = 1;\n+let x = 2;\n*** End Patch\n";
const CUT_AT_BYTE: usize = 46;

fn frame(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

fn item(status: &str, input: &str) -> Value {
    json!({"id": "ctc_1", "type": "custom_tool_call", "status": status, "call_id": "call_1", "name": "apply_patch",
        "input": input})
}

fn response(status: &str, output: &Value) -> Value {
    let details = if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": null, "model": "m",
        "incomplete_details": details, "output": output,
        "usage": {"input_tokens": 5, "output_tokens": 9, "total_tokens": 14}})
}

/// Returns a Responses reply with this call: complete, cut by the limit, or broken off.
fn responses_answer(status: &str, input: &str, stream: bool) -> Answer {
    let item_done = item(if status == "completed" { status } else { "incomplete" }, input);
    let end = response(status, &json!([item_done]));
    if !stream {
        return Answer::json(200, &end);
    }
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", &json!([]))}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", "")}),
        json!({"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 0, "delta": input}),
    ];
    if status != "dropped" {
        events.push(json!({"type": "response.custom_tool_call_input.done", "item_id": "ctc_1", "output_index": 0, "input": input}));
        events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item_done}));
        events.push(json!({"type": format!("response.{status}"), "response": end}));
    }
    Answer::sse(events.iter().map(frame).collect::<Vec<_>>())
}

fn chat_answer(status: &str, input: &str, stream: bool) -> Answer {
    let finish = if status == "completed" { "tool_calls" } else { "length" };
    let call = json!({"id": "call_1", "type": "custom", "custom": {"name": "apply_patch", "input": input}});
    let base = json!({"id": "c1", "object": "chat.completion", "created": 1, "model": "m"});
    let with = |choice: Value| {
        let mut body = base.clone();
        body["choices"] = json!([choice]);
        body
    };
    if !stream {
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        return Answer::json(200, &with(json!({"index": 0, "message": message, "finish_reason": finish})));
    }
    let delta = |delta: Value, finish: Value| {
        let mut body = with(json!({"index": 0, "delta": delta, "finish_reason": finish}));
        body["object"] = json!("chat.completion.chunk");
        format!("data: {body}\n\n")
    };
    let begin = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "apply_patch", "input": ""}}]});
    let piece = json!({"tool_calls": [{"index": 0, "custom": {"input": input}}]});
    let mut chunks = vec![delta(begin, Value::Null), delta(piece, Value::Null)];
    if status != "dropped" {
        chunks.push(delta(json!({}), json!(finish)));
        chunks.push("data: [DONE]\n\n".to_owned());
    }
    Answer::sse(chunks)
}

/// Returns the rest as plain text, as a model answers a prompt.
fn rest_as_text(path: &str, text: &str, stream: bool) -> Answer {
    if path.ends_with("responses") {
        let message = json!({"id": "msg_9", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "text": text}]});
        let end = response("completed", &json!([message]));
        if !stream {
            return Answer::json(200, &end);
        }
        let mut bare = message.clone();
        bare["content"] = json!([]);
        let events = [
            json!({"type": "response.created", "response": response("in_progress", &json!([]))}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": bare}),
            json!({"type": "response.content_part.added", "item_id": "msg_9", "output_index": 0, "content_index": 0,
                "part": {"type": "output_text", "annotations": [], "text": ""}}),
            json!({"type": "response.output_text.delta", "item_id": "msg_9", "output_index": 0, "content_index": 0, "delta": text}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": message}),
            json!({"type": "response.completed", "response": end}),
        ];
        return Answer::sse(events.iter().map(frame).collect::<Vec<_>>());
    }
    let message = json!({"role": "assistant", "content": text});
    if !stream {
        let body = json!({"id": "c2", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        return Answer::json(200, &body);
    }
    let chunk = |delta: &Value, finish: Value| {
        let body = json!({"id": "c2", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {body}\n\n")
    };
    Answer::sse([
        chunk(&message, Value::Null),
        chunk(&json!({}), json!("stop")),
        "data: [DONE]\n\n".to_owned(),
    ])
}

fn answer(path: &str, status: &str, input: &str, stream: bool) -> Answer {
    if path.ends_with("responses") {
        responses_answer(status, input, stream)
    } else {
        chat_answer(status, input, stream)
    }
}

async fn ask(endmark: &Endmark, path: &str, stream: bool) -> Reply {
    let body = if path.ends_with("responses") {
        json!({"model": "m", "stream": stream, "input": "Patch.", "max_output_tokens": 20,
            "tools": [{"type": "custom", "name": "apply_patch"}]})
    } else {
        json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Patch."}], "max_tokens": 20,
            "tools": [{"type": "custom", "custom": {"name": "apply_patch"}}]})
    };
    Request::post(endmark.address, path)
        .header("authorization", "Bearer key")
        .json(&body)
        .send()
        .await
        .read()
        .await
}

/// Returns the input of the call as the client received it, and whether the call looks finished.
fn received_call(path: &str, reply: &Reply, stream: bool) -> (String, bool) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (path.ends_with("responses"), stream) {
        (true, false) => {
            let body = reply.json();
            let item = &body["output"][0];
            (text(&item["input"]), body["status"] == "completed" && item["status"] == "completed")
        }
        (true, true) => {
            let events = reply.json_events();
            let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
            let input: String =
                of("response.custom_tool_call_input.delta").map(|event| text(&event["delta"])).collect();
            let done: Vec<&Value> = of("response.output_item.done").collect();
            for event in of("response.custom_tool_call_input.done") {
                assert_eq!(event["input"], input);
            }
            for event in &done {
                assert_eq!(event["item"]["input"], input);
            }
            assert_eq!(of("response.custom_tool_call_input.done").count(), done.len());
            let ends = of("response.completed").map(|event| event["response"]["output"][0]["input"].clone());
            assert_eq!(ends.collect::<Vec<_>>(), vec![json!(input); done.len()]);
            (input, done.len() == 1)
        }
        (false, false) => {
            let choice = &reply.json()["choices"][0];
            let input = text(&choice["message"]["tool_calls"][0]["custom"]["input"]);
            (input, choice["finish_reason"] == "tool_calls")
        }
        (false, true) => {
            let (mut input, mut is_finished) = (String::new(), false);
            for event in reply.json_events() {
                let choice = &event["choices"][0];
                input += &text(&choice["delta"]["tool_calls"][0]["custom"]["input"]);
                is_finished |= choice["finish_reason"] == "tool_calls";
            }
            (input, is_finished)
        }
    }
}

const PATHS: [&str; 2] = ["/v1/responses", "/v1/chat/completions"];

/// The model returns the rest as text, or repeats the call.
#[tokio::test]
async fn a_cut_custom_call_is_completed() {
    for path in PATHS {
        for (stream, status) in [(false, "incomplete"), (true, "incomplete"), (true, "dropped")] {
            for again in [false, true] {
                let first = answer(path, status, &PATCH[..CUT_AT_BYTE], stream);
                let second = if again {
                    answer(path, "completed", PATCH, stream)
                } else {
                    rest_as_text(path, &PATCH[CUT_AT_BYTE..], stream)
                };
                let endmark = Endmark::start(Script::new().then(first).default_answer(second)).await;
                let reply = ask(&endmark, path, stream).await;
                let case = format!("{path} {stream} {status} {again}");
                assert_eq!(
                    received_call(path, &reply, stream),
                    (PATCH.to_owned(), true),
                    "{case}: {}",
                    reply.text()
                );
                assert!(endmark.calls() > 1, "{case}");
            }
        }
    }
}

/// No event reports the call as complete, because a client would run it.
#[tokio::test]
async fn a_custom_call_that_stays_cut_is_never_finished() {
    for path in PATHS {
        for (stream, status) in [(false, "incomplete"), (true, "incomplete"), (true, "dropped")] {
            let first = answer(path, status, &PATCH[..CUT_AT_BYTE], stream);
            let endmark = Endmark::start(
                Script::new().then(first).default_answer(rest_as_text(path, "Sorry.", stream)),
            )
            .await;
            let reply = ask(&endmark, path, stream).await;
            let (_, is_finished) = received_call(path, &reply, stream);
            assert!(!is_finished, "{path} {stream} {status}: {}", reply.text());
        }
    }
}

/// The rest is not requested, and no byte changes.
#[tokio::test]
async fn a_whole_custom_call_is_unchanged() {
    for path in PATHS {
        for stream in [false, true] {
            let endmark =
                Endmark::start(Script::new().default_answer(answer(path, "completed", PATCH, stream))).await;
            let reply = ask(&endmark, path, stream).await;
            assert_eq!(received_call(path, &reply, stream), (PATCH.to_owned(), true));
            assert_eq!(endmark.calls(), 1);
            assert!(!reply.text().contains("endmark"));
        }
    }
}
