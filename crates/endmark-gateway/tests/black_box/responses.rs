//! Responses: which id a client continues from, what the server stores of Endmark's own requests, and replies
//! with several parts.

use serde_json::{Value, json};
use testkit::{Answer, Reply, Request, Script};

use crate::support::Endmark;

const STORY: &str = "The harbour was quiet that morning, and the gulls had not yet found the boats.";

fn message_item(status: &str, text: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "status": status, "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "text": text}]})
}

fn call_item(status: &str, call_id: &str, arguments: &str) -> Value {
    json!({"id": "fc_1", "type": "function_call", "status": status, "call_id": call_id, "name": "write", "arguments": arguments})
}

/// Returns a response with this item, complete or cut by its limit.
fn response(id: &str, item: &Value) -> Value {
    let details =
        if item["status"] == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    json!({"id": id, "object": "response", "created_at": 1, "status": item["status"], "error": null,
        "incomplete_details": details, "model": "m", "output": [item],
        "usage": {"input_tokens": 5, "output_tokens": 9, "total_tokens": 14}})
}

fn stream(id: &str, item: &Value) -> Answer {
    let whole = response(id, item);
    let opening = json!({"id": id, "object": "response", "created_at": 1, "status": "in_progress", "model": "m", "output": []});
    let mut bare = item.clone();
    bare["status"] = json!("in_progress");
    bare["content"] = json!([]);
    let part = &item["content"][0];
    let kind = format!("response.{}", item["status"].as_str().unwrap_or_default());
    let events = [
        json!({"type": "response.created", "response": opening}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": bare}),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0,
            "part": {"type": "output_text", "annotations": [], "text": ""}}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": part["text"]}),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "text": part["text"]}),
        json!({"type": "response.content_part.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": part}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": kind, "response": whole}),
    ];
    let frame =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    Answer::sse(events.iter().map(frame).collect::<Vec<_>>())
}

fn request(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "conversation": "conv_1", "input": "Tell.",
        "tools": [{"type": "function", "name": "write", "parameters": {"type": "object"}}]})
}

async fn ask(script: Script, stream: bool) -> (Endmark, Reply) {
    let endmark = Endmark::start_resuming(script).await;
    let reply =
        Request::post(endmark.address, "/v1/responses").json(&request(stream)).send().await.read().await;
    (endmark, reply)
}

/// Returns the fields `conversation` and `store` of the second call.
fn second_call_storage_fields(endmark: &Endmark) -> (Value, Value) {
    let second_request = endmark.upstream.requests()[1].json();
    (second_request["conversation"].clone(), second_request["store"].clone())
}

#[tokio::test]
async fn a_resumed_stream_keeps_its_first_id() {
    let script = Script::new()
        .then(stream("resp_1", &message_item("incomplete", &STORY[..40])))
        .default_answer(stream("resp_2", &message_item("completed", &STORY[40..])));
    let (endmark, reply) = ask(script, true).await;
    let events = reply.json_events();
    let ids: Vec<&Value> = events.iter().filter_map(|event| event["response"].get("id")).collect();
    assert_eq!(ids, ["resp_1", "resp_1"], "{}", reply.text());
    assert_eq!(events.last().unwrap()["response"]["output"][0]["content"][0]["text"], STORY);
    // The client may continue from the id in the stream, so the server must store the answer.
    assert_eq!(second_call_storage_fields(&endmark), (Value::Null, Value::Null));
}

/// The server stores only the beginning of the reply under the first id of the stream.
#[tokio::test]
async fn a_follow_up_of_a_resumed_stream_refers_to_the_whole_reply() {
    let whole = || Answer::json(200, &response("resp_9", &message_item("completed", "Yes.")));
    let script = Script::new()
        .then(stream("resp_1", &message_item("incomplete", &STORY[..40])))
        .then(stream("resp_2", &message_item("completed", &STORY[40..])))
        .default_answer(whole());
    let endmark = Endmark::start_resuming(script).await;
    let post = |key: &str| Request::post(endmark.address, "/v1/responses").header("authorization", key);
    let reply = post("Bearer me").json(&request(true)).send().await.read().await;
    assert!(reply.text().contains("resp_1") && !reply.text().contains("resp_2"), "{}", reply.text());
    let body = r#"{ "model":"m", "previous_response_id" : "resp_1" , "input":"And then?", "odd": 1.0 }"#;
    let cases = [
        ("Bearer me", "auto", "resp_2"),
        // Other clients cannot use the stored ids, and some modes change nothing.
        ("Bearer you", "auto", "resp_1"),
        ("Bearer me", "off", "resp_1"),
        ("Bearer me", "warn", "resp_1"),
    ];
    for (key, mode, expected) in cases {
        let reply = post(key).header("x-endmark-resume", mode).body(body).send().await.read().await;
        let sent = endmark.upstream.requests().last().unwrap().body.clone();
        assert_eq!(String::from_utf8(sent).unwrap(), body.replace("resp_1", expected), "{key} {mode}");
        let expected_id = (expected != "resp_1").then_some(expected);
        assert_eq!(reply.header("x-endmark-previous-response"), expected_id, "{key} {mode}");
    }
}

/// Forwarded requests that continue the same response are changed in the same way: background responses,
/// token counts and compactions.
#[tokio::test]
async fn a_pass_through_follow_up_refers_to_the_whole_reply() {
    let script = Script::new()
        .then(stream("resp_1", &message_item("incomplete", &STORY[..40])))
        .then(stream("resp_2", &message_item("completed", &STORY[40..])))
        .default_answer(Answer::json(200, &json!({"object": "response.input_tokens", "input_tokens": 7})));
    let endmark = Endmark::start_resuming(script).await;
    let post = |path: &str| Request::post(endmark.address, path).header("authorization", "Bearer me");
    post("/v1/responses").json(&request(true)).send().await.read().await;
    let body = r#"{ "previous_response_id" : "resp_1", "background":true, "input":"And then?", "odd": 1.0 }"#;
    for (path, mode, expected) in [
        ("/v1/responses", "auto", "resp_2"),
        ("/v1/responses", "warn", "resp_1"),
        ("/v1/responses/input_tokens", "auto", "resp_2"),
        ("/u/scripted/v1/responses/compact?x=1", "on", "resp_2"),
        ("/openai/v1/responses/compact", "auto", "resp_2"),
        ("/v1/responses/input_tokens", "off", "resp_1"),
        ("/v1/responses/resp_1/cancel", "auto", "resp_1"),
    ] {
        let request = post(path)
            .header("x-endmark-resume", mode)
            .header("content-type", "application/json")
            .header("content-digest", "sha-256=:AA==:");
        let reply = request.body(body).send().await.read().await;
        let sent = endmark.upstream.requests().pop().unwrap();
        let is_other = expected != "resp_1";
        assert_eq!(sent.header("content-digest").is_none(), is_other, "{path} {mode}");
        assert_eq!(String::from_utf8(sent.body).unwrap(), body.replace("resp_1", expected), "{path} {mode}");
        let expected_id = is_other.then_some(expected);
        assert_eq!(reply.header("x-endmark-previous-response"), expected_id, "{path} {mode}");
    }
}

/// A tool result belongs to the response that contains the call, even if the call was cut there.
#[tokio::test]
async fn a_follow_up_with_a_tool_result_refers_to_the_answer_with_the_call() {
    let script = Script::new()
        .then(stream("resp_1", &call_item("incomplete", "call_1", "")))
        .then(stream("resp_2", &call_item("completed", "call_2", r#"{"a":1}"#)))
        .default_answer(Answer::json(200, &response("resp_9", &message_item("completed", "Yes."))));
    let (endmark, _) = ask(script, true).await;
    let body = json!({"model": "m", "previous_response_id": "resp_1", "input": "And then?"});
    Request::post(endmark.address, "/v1/responses").json(&body).send().await.read().await;
    assert_eq!(endmark.upstream.requests().last().unwrap().json()["previous_response_id"], "resp_1");
}

/// A stream that broke off before any content has no id.
#[tokio::test]
async fn an_empty_broken_stream_takes_the_id_of_its_replacement() {
    let script = Script::new()
        .then(Answer::sse([String::new()]))
        .default_answer(stream("resp_2", &message_item("completed", STORY)));
    let (_, reply) = ask(script, true).await;
    let events = reply.json_events();
    let ids: Vec<&Value> = events.iter().filter_map(|event| event["response"].get("id")).collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| *id == "resp_2"), "{}", reply.text());
}

#[tokio::test]
async fn follow_ups_of_a_resumed_text_and_call_refer_to_the_right_answers() {
    let script = Script::new()
        .then(Answer::json(200, &response("resp_1", &message_item("incomplete", &STORY[..40]))))
        .default_answer(Answer::json(200, &response("resp_2", &message_item("completed", &STORY[40..]))));
    let (endmark, reply) = ask(script, false).await;
    let body = reply.json();
    assert_eq!((&body["id"], &body["output"][0]["content"][0]["text"]), (&json!("resp_2"), &json!(STORY)));
    // The client may continue from this id, so the server must store the answer.
    assert_eq!(second_call_storage_fields(&endmark), (Value::Null, Value::Null));

    let script = Script::new()
        .then(Answer::json(200, &response("resp_1", &call_item("incomplete", "call_1", ""))))
        .default_answer(Answer::json(
            200,
            &response("resp_2", &call_item("completed", "call_2", r#"{"a":1}"#)),
        ));
    let (endmark, reply) = ask(script, false).await;
    let body = reply.json();
    assert_eq!(reply.header("x-endmark-outcome"), Some("resumed"), "{body}");
    assert_eq!((&body["id"], &body["output"][0]["call_id"]), (&json!("resp_1"), &json!("call_1")));
    assert_eq!(second_call_storage_fields(&endmark).0, Value::Null);
}

/// A schema applies only to the last message. Earlier messages stay unchanged.
#[tokio::test]
async fn the_schema_applies_to_the_last_message() {
    let format = json!({"format": {"type": "json_schema", "name": "n", "schema": {"type": "object", "required": ["a"]}}});
    let asks = |stream: bool| json!({"model": "m", "stream": stream, "input": "Tell.", "text": format});
    let two = |status: &str, json: &str| {
        let mut whole = response("resp_1", &message_item(status, json));
        whole["output"] = json!([message_item("completed", "I looked it up. "), message_item(status, json)]);
        whole
    };
    let whole = two("completed", r#"{"a":1}"#);
    let endmark = Endmark::start_resuming(Script::new().default_answer(Answer::json(200, &whole))).await;
    let reply = Request::post(endmark.address, "/v1/responses").json(&asks(false)).send().await.read().await;
    assert_eq!((reply.text(), endmark.calls()), (whole.to_string(), 1));
    // Only the last message is completed if it is cut, or corrected if it is invalid.
    for (status, cut, rest) in
        [("incomplete", r#"{"a":"Mercury, "#, r#"Venus"}"#), ("completed", r#"{"b":1}"#, r#"{"b":1,"a":2}"#)]
    {
        let script = Script::new()
            .then(Answer::json(200, &two(status, cut)))
            .default_answer(Answer::json(200, &response("resp_2", &message_item("completed", rest))));
        let endmark = Endmark::start_resuming(script).await;
        let reply =
            Request::post(endmark.address, "/v1/responses").json(&asks(false)).send().await.read().await;
        let output = &reply.json()["output"];
        assert_eq!(output[0], message_item("completed", "I looked it up. "), "{}", reply.text());
        let made = if status == "incomplete" { format!("{cut}{rest}") } else { rest.to_owned() };
        assert_eq!(output[1]["content"][0]["text"], made, "{}", reply.text());
    }
}

/// Within a message, a schema applies to the last text block.
#[tokio::test]
async fn the_schema_applies_to_the_last_text_block() {
    let format = json!({"format": {"type": "json_schema", "schema": {"type": "object", "required": ["a"]}}});
    let asks = |stream: bool| {
        json!({"model": "m", "max_tokens": 9000, "stream": stream, "output_config": format,
        "messages": [{"role": "user", "content": "Tell."}]})
    };
    let blocks = [
        json!({"type": "text", "text": "I searched. "}),
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
        json!({"type": "text", "text": "{\"a\":"}),
        json!({"type": "text", "text": "1}"}),
    ];
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks,
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 9}});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 5, "output_tokens": 1}}}),
    ];
    for (index, block) in blocks.iter().enumerate() {
        let mut opening = block.clone();
        if block["type"] == "text" {
            opening["text"] = json!("");
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": opening}));
        if block["type"] == "text" {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": block["text"]}}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
    );
    events.push(json!({"type": "message_stop"}));
    let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let answers = [Answer::json(200, &whole), Answer::sse(events.iter().map(frame).collect::<Vec<_>>())];
    for (answer, stream) in answers.into_iter().zip([false, true]) {
        let direct = String::from_utf8(answer.body()).unwrap();
        let endmark = Endmark::start_resuming(Script::new().default_answer(answer)).await;
        let reply =
            Request::post(endmark.address, "/v1/messages").json(&asks(stream)).send().await.read().await;
        assert_eq!((reply.text(), endmark.calls()), (direct, 1), "{stream}");
    }
}

/// A continuation adds a message and a call. The end of each item is sent once.
#[tokio::test]
async fn every_item_of_a_stream_ends_exactly_once() {
    let cuts = [message_item("incomplete", &STORY[..40]), call_item("incomplete", "call_1", r#"{"a":"b"#)];
    for first in cuts {
        let is_text = first["type"] == "message";
        let mut whole = response("resp_2", &message_item("completed", &STORY[40..]));
        if !is_text {
            whole["output"] = json!([call_item("completed", "call_8", r#"{"a":"bc"}"#)]);
        }
        whole["output"].as_array_mut().unwrap().push(call_item("completed", "call_9", r#"{"c":1}"#));
        let mut opening = whole.clone();
        opening["status"] = json!("in_progress");
        opening["output"] = json!([]);
        let mut events = vec![json!({"type": "response.created", "response": opening})];
        for (at, item) in whole["output"].as_array().unwrap().iter().enumerate() {
            events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
        }
        events.push(json!({"type": "response.completed", "response": whole}));
        let frames = events.iter().map(|event| format!("data: {event}\n\n"));
        let script = Script::new().then(stream("resp_1", &first)).default_answer(Answer::sse(frames));
        let (_, reply) = ask(script, true).await;
        let events = reply.json_events();
        let done: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "response.output_item.done")
            .map(|event| &event["item"])
            .collect();
        assert_eq!(done.len(), 2, "{}", reply.text());
        assert!(done.iter().all(|item| item["status"] == "completed"), "{done:?}");
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["status"], "completed", "{response}");
        let output: Vec<&Value> = response["output"].as_array().unwrap().iter().collect();
        assert_eq!(output, done);
        let order: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
        let added = order.iter().rposition(|kind| **kind == "response.output_item.added").unwrap();
        let ended = order.iter().position(|kind| **kind == "response.output_item.done").unwrap();
        assert!(ended < added, "{order:?}");
    }
}
