//! Replies with thousands of tool calls: memory grows linearly in every format.

use serde_json::{Value, json};
use testkit::{Answer, Dialect, Received, Request, Respond, Upstream};

use crate::run::Place;
use crate::serve::{Served, in_runtime};

/// The four formats; `None` is Chat Completions.
const FORMATS: [Option<Dialect>; 4] =
    [None, Some(Dialect::Responses), Some(Dialect::Messages), Some(Dialect::Gemini)];

const ARGUMENTS: &str = r#"{"path":"sea.txt"}"#;

fn path(format: Option<Dialect>, stream: bool) -> &'static str {
    format.map_or("/v1/chat/completions", |dialect| dialect.path(stream))
}

fn build_request(format: Option<Dialect>, stream: bool) -> Value {
    let Some(dialect) = format else {
        return json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Go."}]});
    };
    dialect.request(100_000, stream)
}

/// A reply with `count` calls. The last one is cut if the format has its arguments as a text.
fn reply(format: Option<Dialect>, count: usize, stream: bool) -> Answer {
    let arguments = |at: usize| if at + 1 == count { r#"{"path":"se"# } else { ARGUMENTS };
    let object = json!({"path": "sea.txt"});
    let id = |at: usize| format!("call_{at}");
    let numbers = 0..count;
    let named = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let data = |event: Value| format!("data: {event}\n\n");
    match (format, stream) {
        (None, _) => {
            let call = |at: usize| json!({"index": at, "id": id(at), "type": "function", "function": {"name": "read", "arguments": arguments(at)}});
            let choice = |key: &str, calls: Vec<Value>, end: Option<&str>| json!({"id": "c", "object": "c", "created": 1, "model": "m", "choices": [{"index": 0, key: {"role": "assistant", "tool_calls": calls}, "finish_reason": end}]});
            if !stream {
                return Answer::json(
                    200,
                    &choice("message", numbers.map(call).collect(), Some("tool_calls")),
                );
            }
            let calls = numbers.map(|at| data(choice("delta", vec![call(at)], None)));
            Answer::sse(calls.chain([
                data(choice("delta", Vec::new(), Some("tool_calls"))),
                "data: [DONE]\n\n".to_owned(),
            ]))
        }
        (Some(Dialect::Responses), _) => {
            let item = |at: usize, arguments: &str| json!({"id": format!("fc_{at}"), "type": "function_call", "status": "completed", "call_id": id(at), "name": "read", "arguments": arguments});
            let all = |items: Vec<Value>, status: &str| json!({"id": "r", "object": "response", "created_at": 1, "model": "m", "status": status, "output": items});
            let items = numbers.clone().map(|at| item(at, arguments(at))).collect();
            if !stream {
                return Answer::json(200, &all(items, "completed"));
            }
            let calls = numbers.flat_map(|at| {
                [
                    json!({"type": "response.output_item.added", "output_index": at, "item": item(at, "")}),
                    json!({"type": "response.function_call_arguments.delta", "output_index": at, "item_id": format!("fc_{at}"), "delta": arguments(at)}),
                    json!({"type": "response.output_item.done", "output_index": at, "item": item(at, arguments(at))}),
                ]
            });
            let begins = json!({"type": "response.created", "response": all(Vec::new(), "in_progress")});
            let ends = json!({"type": "response.completed", "response": all(items, "completed")});
            Answer::sse([begins].into_iter().chain(calls).chain([ends]).map(named))
        }
        (Some(Dialect::Messages), _) => {
            let block = |at: usize, input: &Value| json!({"type": "tool_use", "id": id(at), "name": "read", "input": input});
            let all = |blocks: Vec<Value>, end: Option<&str>| json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": blocks, "stop_reason": end, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
            if !stream {
                return Answer::json(
                    200,
                    &all(numbers.map(|at| block(at, &object)).collect(), Some("tool_use")),
                );
            }
            let calls = numbers.flat_map(|at| {
                [
                    json!({"type": "content_block_start", "index": at, "content_block": block(at, &json!({}))}),
                    json!({"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": arguments(at)}}),
                    json!({"type": "content_block_stop", "index": at}),
                ]
            });
            let begins = json!({"type": "message_start", "message": all(Vec::new(), None)});
            let ends = [
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 1}}),
                json!({"type": "message_stop"}),
            ];
            Answer::sse([begins].into_iter().chain(calls).chain(ends).map(named))
        }
        (Some(Dialect::Gemini), _) => {
            let all = |calls: Vec<usize>, end: Option<&str>| {
                let parts: Vec<Value> =
                    calls.iter().map(|_| json!({"functionCall": {"name": "read", "args": object}})).collect();
                let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
                if let Some(end) = end {
                    candidate["finishReason"] = json!(end);
                }
                json!({"candidates": [candidate], "modelVersion": "m", "responseId": "r"})
            };
            if !stream {
                return Answer::json(200, &all(numbers.collect(), Some("STOP")));
            }
            Answer::sse(numbers.map(|at| data(all(vec![at], (at + 1 == count).then_some("STOP")))))
        }
    }
}

/// Replies with as many calls as the `x-calls` header of the request states.
struct Calls;

impl Respond for Calls {
    fn respond(&self, request: &Received) -> Answer {
        let count = request.header("x-calls").and_then(|count| count.parse().ok()).unwrap_or(1);
        for format in FORMATS {
            for stream in [false, true] {
                let is_it =
                    request.path.split(['?', ':']).next() == path(format, stream).split(['?', ':']).next();
                let asks_for_it = match format {
                    Some(Dialect::Gemini) => request.path.contains("stream") == stream,
                    _ => request.json()["stream"].as_bool().unwrap_or(false) == stream,
                };
                if is_it && asks_for_it {
                    return reply(format, count, stream);
                }
            }
        }
        Answer::error(404, "not_found", None, "no such path")
    }
}

async fn ask_many(served: &Served, count: usize, settings: &str) {
    for format in FORMATS {
        for stream in [false, true] {
            let request = Request::post(served.address, path(format, stream)).header("x-api-key", "k");
            let request = request.header("x-calls", &count.to_string());
            let reply = request.json(&build_request(format, stream)).send().await.read().await;
            assert_eq!(reply.status, 200, "{format:?} {stream} {settings}");
            assert!(reply.body.len() > count * 50, "{format:?} {stream} {settings}");
        }
    }
}

#[test]
fn the_memory_of_a_reply_grows_linearly_with_its_calls() {
    in_runtime(async {
        for settings in ["tools.hold=false", "tools.hold=true"] {
            let upstream = Upstream::start(Calls).await;
            let place = Place::new();
            let served = Served::start(&place, &["--upstream", &upstream.base_url(), "--set", settings]);
            ask_many(&served, 10, settings).await;
            let before = served.memory("VmHWM");
            ask_many(&served, 1_000, settings).await;
            let small = served.memory("VmHWM") - before;
            ask_many(&served, 4_000, settings).await;
            let large = served.memory("VmHWM") - before;
            // Quadratic growth would be sixteen times as much; some of the growth is the allocator's.
            assert!(large < 6 * small.max(8 * 1024), "{settings}: {small} KiB, then {large} KiB");
        }
    });
}

#[test]
fn a_gateway_stops_while_it_processes_thousands_of_calls() {
    in_runtime(async {
        let upstream = Upstream::start(Calls).await;
        let place = Place::new();
        let served = Served::start(&place, &["--upstream", &upstream.base_url(), "--set", "tools.hold=true"]);
        let request =
            Request::post(served.address, path(Some(Dialect::Responses), true)).header("x-calls", "8000");
        let request = request.json(&build_request(Some(Dialect::Responses), true));
        let asking = tokio::spawn(async move { request.send().await.read().await });
        while upstream.requests().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let (code, said) = tokio::task::spawn_blocking(move || served.end("-TERM")).await.unwrap();
        assert_eq!(code, Some(0), "{said}");
        asking.abort();
    });
}
