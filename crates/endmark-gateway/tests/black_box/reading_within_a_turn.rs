//! A model that reads omitted parts of a tool's result within the turn (CX-5).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;

use endmark_context::budget::{Period, Rule, Scope, Unit};
use endmark_gateway::{BudgetSettings, Settings};
use endmark_store::FinalStatus;
use serde_json::{Value, json};
use testkit::{Answer, Dialect, Received, Reply, Request, Respond};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// A line in the part of the log that is left out.
const LEFT_OUT: &str = "request 250 was served as usual";

fn log() -> String {
    (0..600).fold(String::new(), |mut log, line| {
        writeln!(log, "2026-01-02 INFO request {line} was served as usual within the time that it has")
            .unwrap();
        log
    })
}

/// A conversation with this result of a call.
fn conversation(wire: Wire, result: &str, stream: bool) -> Value {
    let user_question = "How was 250 served?";
    let (name, turns) = match wire {
        Wire::Chat => (
            "messages",
            json!([
                {"role": "user", "content": user_question},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": result},
            ]),
        ),
        Wire::Other(Dialect::Responses) => (
            "input",
            json!([
                {"role": "user", "content": user_question},
                {"type": "function_call", "call_id": "c1", "name": "get_time", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": result},
            ]),
        ),
        Wire::Other(Dialect::Messages) => (
            "messages",
            json!([
                {"role": "user", "content": user_question},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_time", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": result}]},
            ]),
        ),
        Wire::Other(Dialect::Gemini) => (
            "contents",
            json!([
                {"role": "user", "parts": [{"text": user_question}]},
                {"role": "model", "parts": [{"functionCall": {"name": "get_time", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "get_time", "response": {"output": result}}}]},
            ]),
        ),
    };
    let mut body = wire.request(stream);
    body[name] = turns;
    body
}

async fn ask(endmark: &Endmark, wire: Wire, body: impl Into<Vec<u8>>, stream: bool) -> Reply {
    let request = Request::post(endmark.address, wire.path(stream)).header("authorization", "Bearer key");
    request.header("content-type", "application/json").body(body).send().await.read().await
}

async fn start_offering(respond: impl Respond) -> Endmark {
    Endmark::start_with(respond, offers).await
}

fn offers(settings: &mut Settings) {
    (settings.cap.tool, settings.cap.max_chars) = (true, 20_000);
}

/// The handle that a marker of the request names.
fn handle(received: &Received) -> Option<String> {
    let text = received.json().to_string();
    let (_, behind) = text.split_once("endmark_read h")?;
    Some(format!("h{}", behind.get(..32)?))
}

fn is_offered(received: &Received) -> bool {
    received.json()["tools"].to_string().contains("\"endmark_read\"")
}

/// Returns the call with which the model searches for the omitted line.
fn search_call(received: &Received) -> String {
    json!({"handle": handle(received), "grep": "request 250 "}).to_string()
}

/// A model that reads, and then reports that it found the line.
fn finds(wire: Wire, stream: bool) -> impl Respond {
    move |received: &Received| {
        if received.json().to_string().contains(LEFT_OUT) {
            return wire.answer(&[ReplyPart::Text("As usual.")], End::Turn, stream);
        }
        let arguments = search_call(received);
        let parts = [ReplyPart::Text("I look it up."), ReplyPart::Call("endmark_read", &arguments)];
        wire.answer(&parts, End::Calls, stream)
    }
}

/// Returns the purpose of each call, once this many are recorded.
async fn purposes(endmark: &Endmark, calls: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for _ in 0..200 {
        rows = endmark.store.reader().unwrap().recent_calls(9).unwrap();
        if rows.len() >= calls {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    rows.sort_by_key(|row| row.call);
    rows.into_iter().map(|row| row.purpose).collect()
}

#[tokio::test]
async fn omitted_output_is_read_before_the_client_gets_the_reply() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let of = format!("{wire:?}, stream: {stream}");
        let endmark = start_offering(finds(wire, stream)).await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), stream).to_string(), stream).await;
        let headers = (reply.status, reply.header("x-endmark-reads"), reply.header("x-endmark-capped"));
        assert_eq!(headers, (200, Some("1"), Some("1")), "{of}: {}", reply.text());
        // The client gets exactly the last reply, and nothing of the earlier ones.
        let last = [ReplyPart::Text("As usual.")];
        let expected = if stream {
            wire.frames(&last, Some(End::Turn)).concat()
        } else {
            wire.whole_reply(&last, wire.word(End::Turn)).to_string()
        };
        assert_eq!(reply.text(), expected, "{of}");
        let requests = endmark.upstream.requests();
        assert_eq!(requests.len(), 2, "{of}");
        assert!(!requests[0].json().to_string().contains(LEFT_OUT), "{of}");
        assert!(requests.iter().all(is_offered), "{of}");
        for own in ["get_weather", "get_time"] {
            assert!(requests[0].json()["tools"].to_string().contains(own), "{of}");
        }
        let name = ["messages", "input", "contents"].into_iter();
        let name = { name }.find(|name| requests[0].json()[*name].is_array()).unwrap();
        let turns = |at: usize| requests[at].json()[name].as_array().unwrap().clone();
        let (before, after) = (turns(0), turns(1));
        assert_eq!(after[..before.len()], before[..], "{of}");
        let added = json!(after[before.len()..]).to_string();
        assert!(added.contains("I look it up.") && added.contains("251:2026-01-02 INFO"), "{of}: {added}");
        assert_eq!(purposes(&endmark, 2).await, ["reply", "read"], "{of}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_before_any_call_resumes_without_the_tool() {
    for wire in Wire::ALL {
        let endmark = Endmark::start_with(
            move |received: &Received| {
                if is_offered(received) {
                    return Answer::sse(wire.frames(&[ReplyPart::Text("Request 250 was served ")], None));
                }
                wire.answer(&[ReplyPart::Text("as usual, within its time.")], End::Turn, true)
            },
            |settings| {
                offers(settings);
                settings.resume.mode = endmark_gateway::Mode::On;
            },
        )
        .await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), true).to_string(), true).await;
        let heard = wire.hear(&reply);
        assert!(heard.text.starts_with("Request 250 was served "), "{wire:?}: {}", reply.text());
        assert!(endmark.calls() > 1, "{wire:?}");
        let offered: Vec<bool> = endmark.upstream.requests().iter().map(is_offered).collect();
        assert!(offered[0], "{wire:?}: {offered:?}");
        assert!(offered[1..].iter().all(|is_offered| !is_offered), "{wire:?}: {offered:?}");
    }
}

#[tokio::test]
async fn the_model_repeats_client_calls_made_beside_a_read() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let endmark = start_offering(move |received: &Received| {
            let text = received.json().to_string();
            if text.contains("was not run") && text.contains(LEFT_OUT) {
                return wire.answer(&[ReplyPart::Call("get_time", "{\"of\":250}")], End::Calls, stream);
            }
            let arguments = search_call(received);
            let parts =
                [ReplyPart::Call("get_weather", "{\"at\":1}"), ReplyPart::Call("endmark_read", &arguments)];
            wire.answer(&parts, End::Calls, stream)
        })
        .await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), stream).to_string(), stream).await;
        let calls = wire.hear(&reply).calls;
        assert_eq!(calls, [("get_time".to_owned(), "{\"of\":250}".to_owned())], "{wire:?}: {}", reply.text());
        assert!(!reply.text().contains("get_weather"), "{wire:?}");
    }
}

#[tokio::test]
async fn the_tool_is_offered_only_if_capped_enabled_and_not_a_duplicate() {
    for wire in Wire::ALL {
        let parts = wire.answer(&[ReplyPart::Text("Yes.")], End::Turn, false);
        let endmark = start_offering(testkit::Script::new().default_answer(parts)).await;
        let small = format!(" {}", conversation(wire, "12:00", false));
        let reply = ask(&endmark, wire, small.as_str(), false).await;
        assert_eq!(reply.header("x-endmark-reads"), None, "{wire:?}");
        assert_eq!(endmark.upstream.requests()[0].body, small.as_bytes(), "{wire:?}");
        let off = endmark.restart(|settings| settings.cap.max_chars = 20_000);
        let large = conversation(wire, &log(), false).to_string();
        let request = Request::post(off.address, wire.path(false)).header("authorization", "Bearer key");
        request.header("content-type", "application/json").body(large).send().await.read().await;
        let mut own = conversation(wire, &log(), false);
        let renamed = own["tools"].to_string().replace("get_weather", "endmark_read");
        own["tools"] = serde_json::from_str(&renamed).unwrap();
        ask(&endmark, wire, own.to_string(), false).await;
        let requests = endmark.upstream.requests();
        for received in &requests[1..] {
            let text = received.json().to_string();
            assert!(text.contains("endmark read h") && handle(received).is_none(), "{wire:?}");
        }
        assert!(!is_offered(&requests[1]), "{wire:?}");
    }
}

/// Reads on forever, whether it is offered that or not.
fn never_stops(wire: Wire) -> impl Respond {
    move |received: &Received| {
        let arguments = json!({"handle": handle(received), "page": 1}).to_string();
        wire.answer(&[ReplyPart::Call("endmark_read", &arguments)], End::Calls, false)
    }
}

#[tokio::test]
async fn a_model_that_reads_repeatedly_loses_the_tool_and_is_then_refused() {
    for wire in Wire::ALL {
        let endmark = start_offering(never_stops(wire)).await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), false).to_string(), false).await;
        assert_eq!(reply.status, 502, "{wire:?}: {}", reply.text());
        assert!(reply.text().contains("again and again"), "{wire:?}: {}", reply.text());
        let requests = endmark.upstream.requests();
        let offered: Vec<bool> = requests.iter().map(is_offered).collect();
        assert_eq!(offered, [true, true, true, true, false], "{wire:?}");
        assert!(requests[4].json().to_string().contains("the last part that can be read"), "{wire:?}");
        assert_eq!(purposes(&endmark, 5).await, ["reply", "read", "read", "read", "read"], "{wire:?}");
    }
}

#[tokio::test]
async fn the_model_gets_the_error_of_a_failed_read() {
    let strange = "h00000000000000000000000000000000";
    for (arguments, expected) in [
        (json!({"handle": strange}), "h00000"),
        (json!({"handle": "mine"}), "mine"),
        (json!({"handle": strange, "page": 1, "grep": "x"}), "at most one of"),
        (json!({"handle": null}), "bad arguments"),
        (json!({"handle": "HANDLE", "page": 99}), "there is no page 99"),
        (json!({"handle": "HANDLE", "lines": "9000:"}), "there is no line 9000"),
        (json!({"handle": "HANDLE", "bytes": "0:9000000"}), "can be read at once"),
        (json!({"handle": "HANDLE", "grep": "("}), "unclosed group"),
        (json!({"handle": "HANDLE", "grep": "nobody says this"}), "no line matches"),
        (json!({"handle": "HANDLE", "pointer": "/a"}), "not a JSON document"),
        (json!({"handle": "HANDLE", "lines": "251:251"}), LEFT_OUT),
        (json!({"handle": "HANDLE", "page": 2}), "[page 2 of"),
    ] {
        let endmark = start_offering(move |received: &Received| {
            let before = received.json()["messages"].as_array().unwrap().len();
            if before > 3 {
                let read = received.json()["messages"][before - 1]["content"].as_str().unwrap().to_owned();
                return Wire::Chat.answer(&[ReplyPart::Text(&read)], End::Turn, false);
            }
            let arguments = arguments.to_string().replace("HANDLE", &handle(received).unwrap());
            Wire::Chat.answer(&[ReplyPart::Call("endmark_read", &arguments)], End::Calls, false)
        })
        .await;
        let body = conversation(Wire::Chat, &log(), false).to_string();
        let heard = Wire::Chat.hear(&ask(&endmark, Wire::Chat, body, false).await);
        assert!(heard.text.contains(expected), "{expected}: {}", heard.text);
        assert!(heard.text.chars().count() <= 20_100, "{expected}: {}", heard.text.len());
    }
}

#[tokio::test]
async fn a_read_call_is_held_in_the_budget() {
    let change = |settings: &mut Settings| {
        offers(settings);
        let rule = Rule { scope: Scope::All, unit: Unit::Tokens, period: Period::Day, limit: 100_000 };
        settings.budget = BudgetSettings { rules: vec![rule], ..BudgetSettings::default() };
    };
    let billed = |answer: Value| {
        let mut answer = answer;
        answer["usage"] = json!({"prompt_tokens": 90_000, "completion_tokens": 9, "total_tokens": 90_009});
        Answer::json(200, &answer)
    };
    let respond = move |received: &Received| {
        let arguments = search_call(received);
        billed(Wire::Chat.whole_reply(&[ReplyPart::Call("endmark_read", &arguments)], "tool_calls"))
    };
    let endmark = Endmark::start_with(respond, change).await;
    let body = conversation(Wire::Chat, &log(), false).to_string();
    let reply = ask(&endmark, Wire::Chat, body, false).await;
    assert_eq!((reply.status, endmark.calls()), (402, 1), "{}", reply.text());
    assert!(!reply.text().contains("endmark_read"), "{}", reply.text());
}

#[tokio::test]
async fn a_reply_too_large_to_search_for_calls_is_refused() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let endmark = Endmark::start_with(
            move |received: &Received| {
                let arguments = search_call(received);
                let long = "All of it. ".repeat(4_000);
                wire.answer(
                    &[ReplyPart::Text(&long), ReplyPart::Call("endmark_read", &arguments)],
                    End::Calls,
                    stream,
                )
            },
            |settings| {
                offers(settings);
                settings.limits.reply_bytes = 20_000;
            },
        )
        .await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), stream).to_string(), stream).await;
        assert_eq!(reply.status, 502, "{wire:?}: {}", reply.text());
        assert!(reply.text().contains("endmark_reads_on"), "{wire:?}: {}", reply.text());
        assert!(!reply.text().contains("\"grep"), "{wire:?}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_read_call_in_a_continuation_never_reaches_the_client() {
    for (wire, stream) in Wire::ALL.into_iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let of = format!("{wire:?}, stream: {stream}");
        let endmark = Endmark::start_with(
            move |received: &Received| {
                let first_parts = [ReplyPart::Text("Request 250 was served ")];
                if is_offered(received) {
                    return if stream {
                        Answer::sse(wire.frames(&first_parts, None))
                    } else {
                        wire.answer(&first_parts, End::Limit, false)
                    };
                }
                let parts = [
                    ReplyPart::Text("as usual, I think."),
                    ReplyPart::Call("endmark_read", "{\"handle\":\"h\"}"),
                ];
                wire.answer(&parts, End::Calls, received.json()["stream"] == true || stream)
            },
            |settings| {
                offers(settings);
                settings.resume.mode = endmark_gateway::Mode::On;
            },
        )
        .await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), stream).to_string(), stream).await;
        assert!(endmark.calls() > 1, "{of}");
        let text = reply.text();
        assert!(text.contains("Request 250 was served "), "{of}: {text}");
        let heard = wire.hear(&reply);
        assert!(!text.contains("handle") && heard.calls.is_empty(), "{of}: {text}");
        // It is not reported as whole.
        let cuts = endmark.log(1).await;
        assert!(cuts.iter().all(|cut| cut.final_status == FinalStatus::Exhausted), "{of}: {cuts:?}");
        assert!(heard.stop.is_none_or(|stop| wire.word(End::Limit) == stop), "{of}: {text}");
    }
}
