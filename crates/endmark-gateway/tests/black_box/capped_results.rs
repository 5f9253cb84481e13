//! Large tool results: the upstream gets a short version that reports what is omitted, and every later
//! request contains the same bytes (CX-5).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;

use serde_json::{Value, json};
use testkit::{ModelFormat, ReceivedRequest, Reply, Request, Script};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// The important row of the log.
const ERROR_LINE: &str = "2026-01-02 ERROR payment 4711 was not booked: the ledger is locked";

/// Returns a log of `lines` lines, with one error in the middle.
fn log(lines: usize) -> String {
    let mut log = String::new();
    for line in 0..lines {
        if line == lines / 2 {
            writeln!(log, "{ERROR_LINE}").unwrap();
        }
        writeln!(log, "2026-01-02 INFO request {line} was served as usual within the time that it has")
            .unwrap();
    }
    log
}

/// Returns a conversation with this tool result, followed by `further` turns.
fn conversation(wire: Wire, result: &Value, further: usize) -> Value {
    let (name, mut turns) = match wire {
        Wire::Chat => (
            "messages",
            vec![
                json!({"role": "user", "content": "Why is 4711 not booked?"}),
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": "c1", "content": result}),
            ],
        ),
        Wire::Other(ModelFormat::Responses) => (
            "input",
            vec![
                json!({"role": "user", "content": "Why is 4711 not booked?"}),
                json!({"type": "function_call", "call_id": "c1", "name": "get_time", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": "c1", "output": result}),
            ],
        ),
        Wire::Other(ModelFormat::Messages) => (
            "messages",
            vec![
                json!({"role": "user", "content": "Why is 4711 not booked?"}),
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_time", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": result}]}),
            ],
        ),
        Wire::Other(ModelFormat::Gemini) => (
            "contents",
            vec![
                json!({"role": "user", "parts": [{"text": "Why is 4711 not booked?"}]}),
                json!({"role": "model", "parts": [{"functionCall": {"name": "get_time", "args": {}}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"name": "get_time", "response": {"output": result}}}]}),
            ],
        ),
    };
    for turn in 0..further {
        let text = format!("And what about number {turn}?");
        let (assistant, user) = match wire {
            Wire::Other(ModelFormat::Gemini) => (
                json!({"role": "model", "parts": [{"text": "It is locked."}]}),
                json!({"role": "user", "parts": [{"text": text}]}),
            ),
            _ => (
                json!({"role": "assistant", "content": "It is locked."}),
                json!({"role": "user", "content": text}),
            ),
        };
        turns.extend([assistant, user]);
    }
    let mut body = wire.request(false);
    body[name] = json!(turns);
    body
}

/// Returns the tool result that the upstream received.
fn received_result(wire: Wire, received: &ReceivedRequest) -> Value {
    let body = received.json();
    match wire {
        Wire::Chat => body["messages"][2]["content"].clone(),
        Wire::Other(ModelFormat::Responses) => body["input"][2]["output"].clone(),
        Wire::Other(ModelFormat::Messages) => body["messages"][2]["content"][0]["content"].clone(),
        Wire::Other(ModelFormat::Gemini) => {
            body["contents"][2]["parts"][0]["functionResponse"]["response"]["output"].clone()
        }
    }
}

async fn ask(address: std::net::SocketAddr, wire: Wire, body: impl Into<Vec<u8>>) -> Reply {
    let request = Request::post(address, wire.path(false)).header("authorization", "Bearer key");
    request.header("content-type", "application/json").body(body).send().await.read().await
}

async fn start_gateway(wire: Wire) -> Endmark {
    let final_reply = wire.answer(&[ReplyPart::Text("It is locked.")], End::Turn, false);
    Endmark::start(Script::new().default_answer(final_reply)).await
}

#[tokio::test]
async fn a_large_output_is_capped_and_keeps_the_important_line() {
    for wire in Wire::ALL {
        let endmark = start_gateway(wire).await;
        let flood = log(6_000);
        assert!(flood.len() > 400_000);
        let reply = ask(endmark.address, wire, conversation(wire, &json!(flood), 0).to_string()).await;
        assert_eq!((reply.status, reply.header("x-endmark-capped")), (200, Some("1")), "{wire:?}");
        let metrics = Request::get(endmark.address, "/endmark/metrics").send().await.read().await.text();
        assert!(metrics.contains(r#"endmark_capped_results_total{upstream="scripted"} 1"#), "{metrics}");
        let received = &endmark.upstream.requests()[0];
        let capped = received_result(wire, received);
        let capped = capped.as_str().unwrap();
        assert!(capped.chars().count() <= 200_000, "{wire:?}: {}", capped.len());
        assert!(capped.contains(ERROR_LINE), "{wire:?}");
        assert!(
            capped.ends_with("request 5999 was served as usual within the time that it has\n"),
            "{wire:?}"
        );

        // The owner can read the whole output with the handle in the marker.
        let (_, behind) = capped.split_once("endmark read ").unwrap();
        let handle = endmark_store::Handle::parse(behind.split_whitespace().next().unwrap()).unwrap();
        let reader = endmark.store.reader().unwrap();
        let kept = reader.client_output(&handle).unwrap().read(0..u64::MAX).unwrap();
        assert_eq!(kept, flood.as_bytes(), "{wire:?}");
        assert!(reader.output(&handle, "client:").is_err(), "{wire:?}");
        assert!(reader.output(&handle, "local").is_err(), "{wire:?}");
    }
}

#[tokio::test]
async fn the_same_result_has_the_same_bytes_in_every_later_request() {
    for wire in Wire::ALL {
        let endmark = start_gateway(wire).await;
        let flood = json!(log(4_000));
        for further in [0, 2] {
            ask(endmark.address, wire, conversation(wire, &flood, further).to_string()).await;
        }
        let restarted = endmark.restart(|_| {});
        ask(restarted.address, wire, conversation(wire, &flood, 3).to_string()).await;
        let received = endmark.upstream.requests();
        let results: Vec<Value> = received.iter().map(|received| received_result(wire, received)).collect();
        assert!(results[0].as_str().unwrap().contains("endmark read h"), "{wire:?}");
        assert_eq!([&results[1], &results[2]], [&results[0], &results[0]], "{wire:?}");
    }
}

#[tokio::test]
async fn json_stays_json_and_keeps_the_unusual_row() {
    for wire in Wire::ALL {
        let endmark = start_gateway(wire).await;
        let row = |id: usize| json!({"id": id, "state": if id == 7_000 { "lost" } else { "ok" }});
        let rows = Value::from((0..11_000).map(row).collect::<Vec<_>>());
        // Gemini sends the result as an object, and the other formats send it as text.
        let given = if wire == Wire::Other(ModelFormat::Gemini) { rows } else { json!(rows.to_string()) };
        ask(endmark.address, wire, conversation(wire, &given, 0).to_string()).await;
        let capped = received_result(wire, &endmark.upstream.requests()[0]);
        let capped: Value = match capped {
            Value::String(text) => serde_json::from_str(&text).unwrap(),
            other => other,
        };
        let items = capped.as_array().unwrap();
        assert_eq!(items.len(), 501, "{wire:?}");
        assert!(items.contains(&row(7_000)), "{wire:?}");
        assert_eq!(items.last().unwrap()["endmark_omitted"]["items"], 10_500, "{wire:?}");
    }
}

#[tokio::test]
async fn small_results_and_disabled_capping_change_nothing() {
    for wire in Wire::ALL {
        let endmark = start_gateway(wire).await;
        // Parsing and serialising again would change these bytes.
        let odd = |body: &Value| format!(" {}", body.to_string().replacen('{', "{ \"odd\" : 1.50e1 ,", 1));
        let small = odd(&conversation(wire, &json!("12:00\n".repeat(400)), 1));
        let without = odd(&wire.request(false));
        let large = odd(&conversation(wire, &json!(log(4_000)), 0));
        for body in [&small, &without] {
            let reply = ask(endmark.address, wire, body.as_str()).await;
            assert_eq!(reply.header("x-endmark-capped"), None, "{wire:?}");
            assert_eq!(endmark.upstream.requests().last().unwrap().body, body.as_bytes(), "{wire:?}");
        }
        let request = Request::post(endmark.address, wire.path(false)).header("x-endmark-resume", "off");
        request.header("content-type", "application/json").body(large.as_str()).send().await.read().await;
        assert_eq!(endmark.upstream.requests().last().unwrap().body, large.as_bytes(), "{wire:?}");
        let off = endmark.restart(|settings| settings.cap.enabled = false);
        ask(off.address, wire, large.as_str()).await;
        assert_eq!(endmark.upstream.requests().last().unwrap().body, large.as_bytes(), "{wire:?}");
        ask(endmark.address, wire, large.as_str()).await;
        assert_ne!(endmark.upstream.requests().last().unwrap().body, large.as_bytes(), "{wire:?}");
    }
}

#[tokio::test]
async fn only_the_owner_of_an_output_can_read_its_pages() {
    let endmark = start_gateway(Wire::Chat).await;
    let flood = log(6_000);
    ask(endmark.address, Wire::Chat, conversation(Wire::Chat, &json!(flood), 0).to_string()).await;
    let capped = received_result(Wire::Chat, &endmark.upstream.requests()[0]);
    let (_, behind) = capped.as_str().unwrap().split_once("endmark read ").unwrap();
    let handle = behind.split_whitespace().next().unwrap();
    let get = |path: String, key: &str| Request::get(endmark.address, &path).header("authorization", key);
    let mut read = String::new();
    for page in 1..=3 {
        let path = format!("/endmark/api/outputs/{handle}?page={page}");
        let reply = get(path, "Bearer key").send().await.read().await;
        let part = reply.json();
        assert_eq!((reply.status, &part["page"], &part["pages"]), (200, &json!(page), &json!(3)));
        assert!(reply.body.len() < 220_000);
        read += part["text"].as_str().unwrap();
    }
    assert_eq!(read, flood);
    for (path, key, status) in [
        (handle.to_owned(), "Bearer another", 404),
        (format!("{handle}?page=4"), "Bearer key", 404),
        (format!("{handle}?page=x"), "Bearer key", 400),
        (format!("{handle}?lines=5:7"), "Bearer key", 400),
        ("h00".to_owned(), "Bearer key", 404),
    ] {
        let reply = get(format!("/endmark/api/outputs/{path}"), key).send().await.read().await;
        assert_eq!(reply.status, status, "{path} {key}");
    }
}

#[tokio::test]
async fn results_are_capped_even_if_the_store_is_closed() {
    let endmark = start_gateway(Wire::Chat).await;
    endmark.store.close().await;
    let reply =
        ask(endmark.address, Wire::Chat, conversation(Wire::Chat, &json!(log(4_000)), 0).to_string()).await;
    assert_eq!((reply.status, reply.header("x-endmark-capped")), (200, Some("1")));
    let capped = received_result(Wire::Chat, &endmark.upstream.requests()[0]);
    let capped = capped.as_str().unwrap();
    assert!(
        capped.contains(ERROR_LINE) && capped.contains("left out …]") && !capped.contains("endmark read")
    );
}
