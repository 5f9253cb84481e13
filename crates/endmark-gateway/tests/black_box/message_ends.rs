//! Messages: the end of a stream, token counts of broken streams, and refusals that a retry cannot avoid.

use crate::support::Endmark;
use crate::support::wire_replies::{End, ReplyPart, Wire};
use serde_json::{Value, json};
use testkit::{Answer, Fault, ModelFormat, Reply, Request, Script};

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

/// Returns the events of a complete message with this text and stop reason.
fn frames(text: &str, stop: &str) -> Vec<String> {
    let usage = json!({"input_tokens": 40, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": 2});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    events.iter().map(event).collect()
}

async fn ask(endmark: &Endmark) -> Reply {
    let body = json!({"model": "m", "max_tokens": 8192, "stream": true, "messages": [{"role": "user", "content": "Tell."}]});
    Request::post(endmark.address, "/v1/messages").json(&body).send().await.read().await
}

/// Libraries wait for the last event, however the stream ended.
#[tokio::test]
async fn a_stream_without_its_last_event_gets_one() {
    let mut frames = frames("The harbour was quiet.", "end_turn");
    let whole = frames.concat();
    frames.pop();
    let length = frames.concat().len();
    for fault in [None, Some(Fault::Reset), Some(Fault::Close)] {
        let answer = Answer::sse(frames.clone());
        let answer = fault.map_or(answer.clone(), |fault| answer.fault(length, fault));
        let endmark = Endmark::start(Script::new().default_answer(answer)).await;
        let reply = ask(&endmark).await;
        let without_blanks = |text: &str| text.replace(": ", ":");
        assert_eq!(without_blanks(&reply.text()), without_blanks(&whole), "{fault:?}");
        assert_eq!(endmark.calls(), 1);
    }
    // The last event counts without the blank line after it, and is not repeated.
    let unended =
        format!("{}{}", frames.concat(), "event: message_stop\ndata: {\"type\":\"message_stop\"}\n");
    let endmark = Endmark::start(Script::new().default_answer(Answer::sse([unended.clone()]))).await;
    assert_eq!(ask(&endmark).await.text(), unended);
}

/// The prompt was billed although the end of the stream is missing. The output is estimated.
#[tokio::test]
async fn the_tokens_of_a_broken_stream_are_counted() {
    let mut broken = frames("The harbour was quiet", "end_turn");
    broken.truncate(3);
    let length = broken.concat().len();
    let first = Answer::sse(broken).fault(length, Fault::Reset);
    let rest = Answer::sse(frames(" that morning.", "end_turn"));
    let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
    let reply = ask(&endmark).await;
    let events = reply.json_events();
    let delta = events.iter().find(|event| event["type"] == "message_delta").unwrap();
    let usage = &delta["usage"];
    assert_eq!(usage["input_tokens"], 80, "{usage}");
    assert_eq!((&usage["cache_read_input_tokens"], &usage["output_tokens"]), (&json!(200), &json!(14)));
    for _ in 0..200 {
        let rows = endmark.store.reader().unwrap().recent_calls(9).unwrap();
        if rows.len() == 2 {
            let first = rows.iter().find(|row| row.call == 1).unwrap();
            assert_eq!(
                (first.ending.as_str(), first.tokens.prompt, first.tokens.cached),
                ("dropped", Some(143), Some(100))
            );
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    unreachable!("the calls have no rows");
}

/// If no rest was requested, the end of the stream does not report zero tokens.
#[tokio::test]
async fn the_tokens_of_a_whole_call_before_a_break_are_reported() {
    let mut broken = frames("", "end_turn");
    let call = json!({"type": "tool_use", "id": "t", "name": "f", "input": {}});
    broken.truncate(1);
    broken.push(event(&json!({"type": "content_block_start", "index": 0, "content_block": call})));
    let delta = json!({"type": "input_json_delta", "partial_json": "{\"a\": 1}"});
    broken.push(event(&json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    broken.push(event(&json!({"type": "content_block_stop", "index": 0})));
    let length = broken.concat().len();
    let endmark =
        Endmark::start(Script::new().default_answer(Answer::sse(broken).fault(length, Fault::Reset))).await;
    let reply = ask(&endmark).await;
    let delta = reply.json_events().into_iter().find(|event| event["type"] == "message_delta").unwrap();
    assert_eq!(
        (&delta["usage"]["input_tokens"], &delta["usage"]["output_tokens"]),
        (&json!(40), &json!(8)),
        "{delta}"
    );
}

/// An account without money is refused in every form of request.
#[tokio::test]
async fn a_refusal_for_lack_of_credit_is_disclosed_and_not_repeated() {
    let cut = Answer::sse(frames("The harbour was quiet", "max_tokens"));
    let why = "Your credit balance is too low to access the Anthropic API.";
    let refused = Answer::error(400, "invalid_request_error", None, why);
    let endmark = Endmark::start(Script::new().then(cut).default_answer(refused)).await;
    let reply = ask(&endmark).await;
    assert_eq!(endmark.calls(), 2, "{}", reply.text());
    let delta = reply.json_events().into_iter().find(|event| event["type"] == "message_delta").unwrap();
    assert!(delta["endmark"]["reason"].as_str().unwrap().contains(why), "{delta}");
    assert_eq!(delta["delta"]["stop_reason"], "max_tokens");
}

/// The client continues a paused turn itself, and a refusal is final. The gateway does not request the rest
/// of either.
#[tokio::test]
async fn paused_turns_and_refusals_pass_unchanged() {
    for stop in ["pause_turn", "refusal"] {
        let bytes = frames("The harbour was quiet", stop).concat();
        let script = Script::new().then(Answer::sse([bytes.clone()])).default_answer(Answer::server_error());
        let endmark = Endmark::start_resuming(script).await;
        let reply = ask(&endmark).await;
        assert_eq!((reply.text(), endmark.calls()), (bytes, 1), "{stop}");
    }
}

/// The client continues the turn itself, even if the required format is incomplete.
#[tokio::test]
async fn a_paused_turn_passes_even_if_a_format_is_required() {
    let wire = Wire::Other(ModelFormat::Messages);
    for (stop, is_paused) in [("pause_turn", true), ("max_tokens", false)] {
        let whole = wire.whole_reply(&[ReplyPart::Text("{\"a\": [1, ")], stop);
        let rest = wire.answer(&[ReplyPart::Text("2]}")], End::Turn, false);
        let endmark =
            Endmark::start_resuming(Script::new().then(Answer::json(200, &whole)).default_answer(rest)).await;
        let request = Request::post(endmark.address, wire.path(false)).header("x-endmark-format", "json");
        let reply = request.json(&wire.request(false)).send().await.read().await;
        assert_eq!(endmark.calls() == 1, is_paused, "{stop}: {}", reply.text());
        if is_paused {
            assert_eq!(reply.json(), whole);
        }
    }
}

/// Some clients depend on the stop sequence, so it must be correct even after a continuation.
#[tokio::test]
async fn the_stop_sequence_of_a_continuation_is_reported() {
    let wire = Wire::Other(ModelFormat::Messages);
    for stream in [false, true] {
        let first = wire.answer(&[ReplyPart::Text("The harbour was qu")], End::Limit, stream);
        let rest = if stream {
            let met = |frame: String| {
                let frame =
                    frame.replace("\"stop_reason\":\"end_turn\"", "\"stop_reason\":\"stop_sequence\"");
                frame.replace("\"stop_sequence\":null}", "\"stop_sequence\":\"END\"}")
            };
            Answer::sse(wire.frames(&[ReplyPart::Text("iet.")], Some(End::Turn)).into_iter().map(met))
        } else {
            let mut rest = wire.whole_reply(&[ReplyPart::Text("iet.")], "stop_sequence");
            rest["stop_sequence"] = json!("END");
            Answer::json(200, &rest)
        };
        let endmark = Endmark::start(Script::new().then(first).default_answer(rest)).await;
        let mut request = wire.request(stream);
        request["stop_sequences"] = json!(["END"]);
        let (reply, heard) = wire.ask(&endmark, &request, stream).await;
        let what = format!("{stream}: {}", reply.text());
        assert_eq!(
            (heard.text.as_str(), heard.stop.as_deref()),
            ("The harbour was quiet.", Some("stop_sequence")),
            "{what}"
        );
        assert!(reply.text().contains("\"stop_sequence\":\"END\""), "{what}");
    }
}
