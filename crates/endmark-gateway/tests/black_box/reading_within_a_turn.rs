//! A model reads omitted parts of a tool result within the turn (CX-5).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;

use endmark_context::budget::{BudgetRule, Period, Scope, Unit};
use endmark_gateway::{BudgetSettings, Settings};
use endmark_store::FinalStatus;
use serde_json::{Value, json};
use testkit::{Answer, ModelFormat, ReceivedRequest, Reply, Request, Respond};

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};

/// A line in the omitted part of the log.
const OMITTED_LINE: &str = "request 250 was served as usual";

fn log() -> String {
    (0..600).fold(String::new(), |mut log, line| {
        writeln!(log, "2026-01-02 INFO request {line} was served as usual within the time that it has")
            .unwrap();
        log
    })
}

/// Returns a conversation that contains this tool result.
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
        Wire::Other(ModelFormat::Responses) => (
            "input",
            json!([
                {"role": "user", "content": user_question},
                {"type": "function_call", "call_id": "c1", "name": "get_time", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": result},
            ]),
        ),
        Wire::Other(ModelFormat::Messages) => (
            "messages",
            json!([
                {"role": "user", "content": user_question},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_time", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": result}]},
            ]),
        ),
        Wire::Other(ModelFormat::Gemini) => (
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
    Endmark::start_with(respond, offer_read_tool).await
}

fn offer_read_tool(settings: &mut Settings) {
    (settings.cap.tool, settings.cap.max_chars) = (true, 20_000);
}

/// Returns the handle in the marker of a capped result.
fn handle(received: &ReceivedRequest) -> Option<String> {
    let text = received.json().to_string();
    let (_, behind) = text.split_once("endmark_read h")?;
    Some(format!("h{}", behind.get(..32)?))
}

fn is_offered(received: &ReceivedRequest) -> bool {
    received.json()["tools"].to_string().contains("\"endmark_read\"")
}

/// Returns the arguments of a call that searches for the omitted line.
fn search_arguments(received: &ReceivedRequest) -> String {
    json!({"handle": handle(received), "grep": "request 250 "}).to_string()
}

/// Returns a model that reads, and then reports that it found the line.
fn searching_model(wire: Wire, stream: bool) -> impl Respond {
    move |received: &ReceivedRequest| {
        if received.json().to_string().contains(OMITTED_LINE) {
            return wire.answer(&[ReplyPart::Text("As usual.")], End::Turn, stream);
        }
        let arguments = search_arguments(received);
        let parts = [ReplyPart::Text("I look it up."), ReplyPart::Call("endmark_read", &arguments)];
        wire.answer(&parts, End::Calls, stream)
    }
}

/// Returns the purpose of each call when at least `calls` calls are recorded.
async fn wait_for_purposes(endmark: &Endmark, calls: usize) -> Vec<String> {
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
        let endmark = start_offering(searching_model(wire, stream)).await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), stream).to_string(), stream).await;
        let headers = (reply.status, reply.header("x-endmark-reads"), reply.header("x-endmark-capped"));
        assert_eq!(headers, (200, Some("1"), Some("1")), "{of}: {}", reply.text());
        // The client gets only the last reply.
        let last = [ReplyPart::Text("As usual.")];
        let expected = if stream {
            wire.frames(&last, Some(End::Turn)).concat()
        } else {
            wire.whole_reply(&last, wire.finish_reason(End::Turn)).to_string()
        };
        assert_eq!(reply.text(), expected, "{of}");
        let requests = endmark.upstream.requests();
        assert_eq!(requests.len(), 2, "{of}");
        assert!(!requests[0].json().to_string().contains(OMITTED_LINE), "{of}");
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
        assert_eq!(wait_for_purposes(&endmark, 2).await, ["reply", "read"], "{of}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_before_any_call_resumes_without_the_tool() {
    for wire in Wire::ALL {
        let endmark = Endmark::start_with(
            move |received: &ReceivedRequest| {
                if is_offered(received) {
                    return Answer::sse(wire.frames(&[ReplyPart::Text("Request 250 was served ")], None));
                }
                wire.answer(&[ReplyPart::Text("as usual, within its time.")], End::Turn, true)
            },
            |settings| {
                offer_read_tool(settings);
                settings.resume.mode = endmark_gateway::ResumeMode::On;
            },
        )
        .await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), true).to_string(), true).await;
        let heard = wire.read_reply(&reply);
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
        let endmark = start_offering(move |received: &ReceivedRequest| {
            let text = received.json().to_string();
            if text.contains("was not run") && text.contains(OMITTED_LINE) {
                return wire.answer(&[ReplyPart::Call("get_time", "{\"of\":250}")], End::Calls, stream);
            }
            let arguments = search_arguments(received);
            let parts =
                [ReplyPart::Call("get_weather", "{\"at\":1}"), ReplyPart::Call("endmark_read", &arguments)];
            wire.answer(&parts, End::Calls, stream)
        })
        .await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), stream).to_string(), stream).await;
        let calls = wire.read_reply(&reply).tool_calls;
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

/// Returns a model that calls `endmark_read` in every reply, even if the tool is not offered.
fn endlessly_reading_model(wire: Wire) -> impl Respond {
    move |received: &ReceivedRequest| {
        let arguments = json!({"handle": handle(received), "page": 1}).to_string();
        wire.answer(&[ReplyPart::Call("endmark_read", &arguments)], End::Calls, false)
    }
}

#[tokio::test]
async fn a_model_that_reads_without_end_loses_the_tool_and_is_refused() {
    for wire in Wire::ALL {
        let endmark = start_offering(endlessly_reading_model(wire)).await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), false).to_string(), false).await;
        assert_eq!(reply.status, 502, "{wire:?}: {}", reply.text());
        assert!(reply.text().contains("again and again"), "{wire:?}: {}", reply.text());
        let requests = endmark.upstream.requests();
        let offered: Vec<bool> = requests.iter().map(is_offered).collect();
        assert_eq!(offered, [true, true, true, true, false], "{wire:?}");
        assert!(requests[4].json().to_string().contains("the last part that can be read"), "{wire:?}");
        assert_eq!(
            wait_for_purposes(&endmark, 5).await,
            ["reply", "read", "read", "read", "read"],
            "{wire:?}"
        );
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
        (json!({"handle": "HANDLE", "lines": "251:251"}), OMITTED_LINE),
        (json!({"handle": "HANDLE", "page": 2}), "[page 2 of"),
    ] {
        let endmark = start_offering(move |received: &ReceivedRequest| {
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
        let heard = Wire::Chat.read_reply(&ask(&endmark, Wire::Chat, body, false).await);
        assert!(heard.text.contains(expected), "{expected}: {}", heard.text);
        assert!(heard.text.chars().count() <= 20_100, "{expected}: {}", heard.text.len());
    }
}

#[tokio::test]
async fn a_read_call_is_held_in_the_budget() {
    let change = |settings: &mut Settings| {
        offer_read_tool(settings);
        let rule = BudgetRule { scope: Scope::All, unit: Unit::Tokens, period: Period::Day, limit: 100_000 };
        settings.budget = BudgetSettings { rules: vec![rule], ..BudgetSettings::default() };
    };
    let billed = |answer: Value| {
        let mut answer = answer;
        answer["usage"] = json!({"prompt_tokens": 90_000, "completion_tokens": 9, "total_tokens": 90_009});
        Answer::json(200, &answer)
    };
    let respond = move |received: &ReceivedRequest| {
        let arguments = search_arguments(received);
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
            move |received: &ReceivedRequest| {
                let arguments = search_arguments(received);
                let long = "All of it. ".repeat(4_000);
                wire.answer(
                    &[ReplyPart::Text(&long), ReplyPart::Call("endmark_read", &arguments)],
                    End::Calls,
                    stream,
                )
            },
            |settings| {
                offer_read_tool(settings);
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
            move |received: &ReceivedRequest| {
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
                offer_read_tool(settings);
                settings.resume.mode = endmark_gateway::ResumeMode::On;
            },
        )
        .await;
        let reply = ask(&endmark, wire, conversation(wire, &log(), stream).to_string(), stream).await;
        assert!(endmark.calls() > 1, "{of}");
        let text = reply.text();
        assert!(text.contains("Request 250 was served "), "{of}: {text}");
        let heard = wire.read_reply(&reply);
        assert!(!text.contains("handle") && heard.tool_calls.is_empty(), "{of}: {text}");
        // The reply is not recorded as whole.
        let cuts = endmark.log(1).await;
        assert!(cuts.iter().all(|cut| cut.final_status == FinalStatus::Exhausted), "{of}: {cuts:?}");
        assert!(heard.stop.is_none_or(|stop| wire.finish_reason(End::Limit) == stop), "{of}: {text}");
    }
}
